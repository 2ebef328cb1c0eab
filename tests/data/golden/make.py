"""Writes the golden messages of a release: one of each type with every field set, as bytes and as text.

`python -m tests.data.golden.make` writes `v<major>.<minor>/` for the schema as it is now, and never changes what is there: the bytes of
a release are what its producers sent, and every later release must read them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor as F

from schemas.codec import MAJOR, MINOR
from schemas.topics import TOPICS

if TYPE_CHECKING:
    from google.protobuf.message import Message

FOLDER: Final = Path(__file__).parent
TIME_NS: Final = 1_796_000_000_000_000_000
"""2026-11-29; each time in a message is a little later than the one before."""

SECOND_NS: Final = 1_000_000_000
TYPES: Final = tuple(dict.fromkeys(row.message for row in TOPICS if row.message is not None))


class _Filler:
    """Sets every field of a message by its number, so that no two have the same value."""

    def __init__(self) -> None:
        self._time_ns = TIME_NS

    def fill(self, message: Message, *, only: str = "") -> None:
        """`only` names the member of a oneof that is set; the others are left out."""
        for field in message.DESCRIPTOR.fields:
            real_oneof = field.containing_oneof is not None and len(field.containing_oneof.fields) > 1
            if real_oneof and field.name != only:
                continue
            self._set(message, field)

    def _set(self, message: Any, field: Any) -> None:
        target = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            value = field.message_type.fields_by_name["value"]
            target[f"{field.name}.a"] = self._scalar(value)
            target[f"{field.name}.b"] = self._scalar(value)
        elif field.is_repeated and field.message_type is not None:
            for _ in range(2):
                self.fill(target.add())
        elif field.is_repeated:
            target.extend([self._scalar(field), self._scalar(field)])
        elif field.message_type is not None:
            self.fill(target)
        else:
            setattr(message, field.name, self._scalar(field))

    def _scalar(self, field: Any) -> Any:
        number = field.number
        match field.type:
            case F.TYPE_STRING:
                return f"{field.name}-é{number}"
            case F.TYPE_BOOL:
                return True
            case F.TYPE_ENUM:
                assert field.enum_type is not None
                return field.enum_type.values[-1].number
            case F.TYPE_FLOAT | F.TYPE_DOUBLE:
                return number / 128 if field.name.endswith("_ratio") else number + 0.25  # the same in 32 and 64 bits
            case F.TYPE_FIXED64:
                self._time_ns += SECOND_NS
                return self._time_ns
            case F.TYPE_UINT64:
                return 2**40 + number
            case F.TYPE_INT64:
                return -number
        return number


def filled(kind: type[Message], *, only: str = "") -> Message:
    """A message of that type with every field set, nested ones included."""
    message = kind()
    _Filler().fill(message, only=only)
    return message


def variants(kind: type[Message]) -> Iterator[tuple[str, Message]]:
    """Names and messages: one for each member of a oneof at the top."""
    descriptor = kind.DESCRIPTOR
    members = [f.name for oneof in descriptor.oneofs if len(oneof.fields) > 1 for f in oneof.fields]
    if not members:
        yield descriptor.name, filled(kind)
    for member in members:
        yield f"{descriptor.name}.{member}", filled(kind, only=member)


def main() -> int:
    folder = FOLDER / f"v{MAJOR}.{MINOR}"
    folder.mkdir(exist_ok=True)
    written = 0
    for kind in TYPES:
        for name, message in variants(kind):
            binary, text = folder / f"{name}.binpb", folder / f"{name}.txtpb"
            if binary.exists():
                continue
            binary.write_bytes(message.SerializeToString(deterministic=True))
            text.write_text(text_format.MessageToString(message, as_utf8=True), encoding="utf-8")
            written += 1
    sys.stdout.write(f"{folder}: {written} written, {len(list(folder.glob('*.binpb'))) - written} were there\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
