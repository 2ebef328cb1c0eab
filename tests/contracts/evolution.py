"""Older and newer releases of the schema, made from a released descriptor in pools of their own: what a half-upgraded fleet speaks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.unknown_fields import UnknownFieldSet

from schemas.generate import FROZEN

if TYPE_CHECKING:
    from google.protobuf.message import Message

PACKAGE: Final = "xpulse.telemetry.v1"
NEW_NUMBER: Final = 900
NEW_NAME: Final = "from_a_later_release"
NEW_CHOICE: Final = 900


class Schema:
    """A version of the schema apart from the one this process was generated with."""

    def __init__(self, files: list[descriptor_pb2.FileDescriptorProto]) -> None:
        self._pool = descriptor_pool.DescriptorPool()
        for file in files:  # protoc writes them in the order of their imports
            self._pool.Add(file)

    def message(self, name: str) -> type[Message]:
        """The class of a message by its short name."""
        return message_factory.GetMessageClass(self._pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))


def released() -> Schema:
    """The schema as it was frozen at the last release."""
    return Schema(_files())


def older() -> Schema:
    """A release before it: each message lacks its newest field (messages with one field only are as they were)."""
    files = _files()
    for message in _messages(files):
        if len(message.field) > 1 and not message.options.map_entry:
            _drop(message, max(message.field, key=lambda f: f.number))
    return Schema(files)


def newer() -> Schema:
    """A release after it: each message has a text and a list of numbers more, each enum a value more."""
    files = _files()
    field = descriptor_pb2.FieldDescriptorProto
    for message in _messages(files):
        if not message.options.map_entry:
            message.field.add(name=NEW_NAME, number=NEW_NUMBER, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
            numbers = f"{NEW_NAME}_too"
            message.field.add(name=numbers, number=NEW_NUMBER + 1, type=field.TYPE_UINT64, label=field.LABEL_REPEATED)
    for file in files:
        if file.package == PACKAGE:
            for enum in file.enum_type:
                enum.value.add(name=f"{enum.name.upper()}_{NEW_NAME.upper()}", number=NEW_CHOICE)
    return Schema(files)


def said(message: Message, known: Any = None) -> dict[str, Any]:
    """What a message says, as plain values by name; only fields that `known` (another release's descriptor of it) has."""
    judge = known or message.DESCRIPTOR
    found: dict[str, Any] = {}
    for field, value in message.ListFields():
        theirs = judge.fields_by_name.get(field.name)
        if theirs is None:
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            found[field.name] = dict(value)
        elif field.message_type is not None:
            inner = theirs.message_type
            found[field.name] = [said(v, inner) for v in value] if field.is_repeated else said(value, inner)
        else:
            found[field.name] = list(value) if field.is_repeated else value
    return found


def unread(message: Message) -> list[int]:
    """Numbers of fields, nested ones included, that were on the wire and are not known."""
    unknown: Any = UnknownFieldSet(message)  # its stub does not say that it is a sequence
    found = [field.field_number for field in unknown]
    for inner in _nested(message):
        found += unread(inner)
    return found


def unset(message: Message, path: str = "") -> list[str]:
    """Fields, nested ones included, that a message does not set; of a oneof one member is enough."""
    here = path or message.DESCRIPTOR.name
    said_names = {field.name for field, _ in message.ListFields()}
    missing = []
    for field in message.DESCRIPTOR.fields:
        oneof = field.containing_oneof
        alternatives = {f.name for f in oneof.fields} if oneof is not None else {field.name}
        if not alternatives & said_names:
            missing.append(f"{here}.{field.name}")
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        for inner in value if field.is_repeated else [value]:
            missing += unset(inner, f"{here}.{field.name}")
    return missing


def _nested(message: Message) -> Iterator[Message]:
    for field, value in message.ListFields():
        if field.message_type is not None and not field.message_type.GetOptions().map_entry:
            yield from value if field.is_repeated else [value]


def _files() -> list[descriptor_pb2.FileDescriptorProto]:
    return list(descriptor_pb2.FileDescriptorSet.FromString(FROZEN.read_bytes()).file)


def _messages(files: list[descriptor_pb2.FileDescriptorProto]) -> Iterator[descriptor_pb2.DescriptorProto]:
    for file in files:
        if file.package == PACKAGE:
            yield from file.message_type


def _drop(message: descriptor_pb2.DescriptorProto, field: descriptor_pb2.FieldDescriptorProto) -> None:
    """Remove a field; an `optional` one stands in a oneof of its own, which goes with it."""
    alone = field.proto3_optional
    index = field.oneof_index
    message.field.remove(field)
    if alone:
        del message.oneof_decl[index]
        for other in message.field:
            if other.HasField("oneof_index") and other.oneof_index > index:
                other.oneof_index -= 1
