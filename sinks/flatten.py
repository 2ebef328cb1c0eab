"""Turns a protobuf message into flat typed fields by its descriptor, so that a new optional field reaches the stores by itself.

An enum becomes its name in lower case, a map or a list JSON text, a histogram three fields (sum, count, buckets), and a nested
message its own fields. What is not set is left out: unknown is never zero.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from google.protobuf.descriptor import FieldDescriptor as F

from schemas.values import name_of
from sinks.text import MAX_FIELD_CHARACTERS, clean

if TYPE_CHECKING:
    from collections.abc import Collection

    from schemas.store import Scalar

FieldType = Literal["float", "int", "uint", "bool", "string"]
INT63: Final = 2**63 - 1

_TYPES: Final[dict[int, FieldType]] = {
    F.TYPE_DOUBLE: "float",
    F.TYPE_FLOAT: "float",
    F.TYPE_INT64: "int",
    F.TYPE_UINT64: "uint",
    F.TYPE_FIXED64: "uint",
    F.TYPE_UINT32: "uint",
    F.TYPE_BOOL: "bool",
    F.TYPE_STRING: "string",
    F.TYPE_ENUM: "string",
}
_UNITS: Final = {"ns": "ns", "seconds": "s", "bytes": "By", "watts": "W", "ratio": "1", "joules": "J", "celsius": "Cel", "hertz": "Hz"}


@dataclass(frozen=True, slots=True)
class Column:
    """One field: `read` takes the message and gives its value, or None where nothing was said."""

    name: str
    type: FieldType
    unit: str
    source: str
    read: Callable[[Any], Scalar | None]


_MakeColumn = Callable[[str, FieldType, Callable[[Any], Any]], Column]


def columns(descriptor: Any, *, skip: Collection[str] = ()) -> tuple[Column, ...]:
    """Columns of a message (by its DESCRIPTOR) in field order.

    `skip` holds names, or `<path>.<name>` where a nested message has the same name.
    """
    return tuple(c for f in descriptor.fields for c in _columns(f, skip, lambda message: message, ""))


def flatten(found: tuple[Column, ...], message: object) -> dict[str, Scalar]:
    """The fields of one message that were said."""
    return {c.name: value for c in found if (value := c.read(message)) is not None}


def _columns(field: F, skip: Collection[str], at: Callable[[Any], Any], path: str) -> list[Column]:
    name = field.name
    if name in skip or f"{path}{name}" in skip:
        return []
    source = f"{_owner(field)}.{name}"

    def column(suffix: str, kind: FieldType, read: Callable[[Any], Scalar | None]) -> Column:
        return Column(name + suffix, kind, _unit(name), source, read)

    if field.is_repeated:
        return [column("", "string", _json(at, name, is_map=_is_map(field), shorten=field.type in (F.TYPE_DOUBLE, F.TYPE_FLOAT)))]
    if field.message_type is not None:
        if field.message_type.name == "Histogram":
            return _histogram(column, at, name)
        return [
            inner
            for f in field.message_type.fields
            for inner in _columns(f, skip, lambda message: _child(at(message), name), f"{path}{name}.")
        ]
    if field.type not in _TYPES:
        raise TypeError(f"{source}: no stored type for protobuf type {field.type}; add it to {__name__}")
    return [column("", _TYPES[field.type], _scalar(field, at))]


def _owner(field: F) -> str:
    return field.containing_type.name if field.containing_type is not None else ""


def _child(message: Any, name: str) -> Any:
    return getattr(message, name) if message is not None and message.HasField(name) else None


def _scalar(field: F, at: Callable[[Any], Any]) -> Callable[[Any], Scalar | None]:
    name, optional, enum = field.name, field.has_presence, field.enum_type
    kind = _TYPES[field.type]
    # a time, a text or a choice that was not given reads as 0, "" or UNSPECIFIED; a plain number or flag is always meant
    blank_means_unset = enum is not None or kind == "string" or name.endswith("_ns")

    def read(message: Any) -> Scalar | None:
        owner = at(message)
        if owner is None or (optional and not owner.HasField(name)):
            return None
        value = getattr(owner, name)
        if not optional and blank_means_unset and not value:
            return None
        if enum is not None:
            return name_of(enum, value)
        if kind == "string":
            return clean(value, MAX_FIELD_CHARACTERS)
        return min(value, INT63) if kind == "uint" else value  # type: ignore[no-any-return]  # a protobuf scalar

    return read


def _json(at: Callable[[Any], Any], name: str, *, is_map: bool, shorten: bool) -> Callable[[Any], Scalar | None]:
    """A map or a list as text; of the numbers of a list seven digits are kept: a forecast's 90 would take twice the room."""

    def read(message: Any) -> Scalar | None:
        owner = at(message)
        value = None if owner is None else getattr(owner, name)
        if not value:
            return None
        if shorten:
            value = [float(f"{number:.7g}") for number in value]
        # allow_nan=False would raise on a foreign producer's NaN; as text it does no harm
        return json.dumps(dict(value) if is_map else list(value), sort_keys=True, separators=(",", ":"))

    return read


def _is_map(field: F) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _histogram(column: _MakeColumn, at: Callable[[Any], Any], name: str) -> list[Column]:
    def part(read: Callable[[Any], Scalar]) -> Callable[[Any], Scalar | None]:
        def of(message: Any) -> Scalar | None:
            histogram = _child(at(message), name)
            return None if histogram is None else read(histogram)

        return of

    return [
        column("_sum", "float", part(lambda h: h.sum)),
        column("_count", "uint", part(lambda h: min(sum(h.count), INT63))),
        column("_bounds", "string", part(lambda h: json.dumps(list(h.bound), separators=(",", ":")))),
        column("_buckets", "string", part(lambda h: json.dumps(list(h.count), separators=(",", ":")))),
    ]


def _unit(name: str) -> str:
    return _UNITS.get(name.rpartition("_")[2], "1")
