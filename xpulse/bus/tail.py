"""Any topic of ours as readable lines, and the dead letters as rows that can be sent back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from google.protobuf import text_format

from schemas.codec import decode
from schemas.flow import Rejected
from schemas.topics import DLQ, topic
from xpulse.bus.dlq import Letter, read_letter, replayed
from xpulse.bus.reader import BusReader
from xpulse.errors import UsageError

if TYPE_CHECKING:
    from schemas.flow import Emitted, Record
    from xpulse.bus.settings import Bus

_PAUSE_SECONDS: Final = 0.3
_SHOWN_BYTES: Final = 64


def tail(
    bus: Bus,
    topic_name: str,
    *,
    since_ns: int | None = None,
    last: int | None = None,
    follow: bool = False,
    stop: threading.Event | None = None,
) -> Iterator[str]:
    """Lines `time partition/offset key message`, partition by partition.

    `since_ns` leaves out older records, `last` keeps so many of each partition; with `follow` new ones are waited for until `stop`.
    Raises UsageError on a name that is no topic of ours (prefixes come from the settings), MissingTopic where the broker lacks it.
    """
    name = known_topic(bus, topic_name)
    stop = stop or threading.Event()
    with BusReader(bus, stop=stop) as reader:
        ends = {partition: reader.bounds(name, partition) for partition in range(reader.partitions(name))}
        starts = {partition: low if last is None else max(low, high - last) for partition, (low, high) in ends.items()}
        while True:
            for partition in starts:
                for record in reader.read_from(name, partition, starts[partition]):
                    starts[partition] = record.offset + 1
                    if since_ns is None or record.timestamp_ns >= since_ns:
                        yield line(record)
            if not follow or stop.wait(_PAUSE_SECONDS):
                return


def known_topic(bus: Bus, name: str) -> str:
    """The unprefixed name of a topic given with or without our prefix. Raises UsageError listing the topics."""
    for candidate in (name, name.removeprefix(bus.topic_prefix)):
        try:
            return topic(candidate).name
        except KeyError:
            continue
    try:
        topic(name)
    except KeyError as error:
        raise UsageError(f"{error.args[0]}") from None
    raise AssertionError  # the loop has returned it


def line(record: Record) -> str:
    """One record on one line; control characters are escaped (a terminal must not obey a message)."""
    at = datetime.fromtimestamp(record.timestamp_ns / 1e9, UTC).isoformat(timespec="milliseconds")
    key = "-" if record.key is None else printable(record.key)
    return f"{at} {record.partition}/{record.offset} {key} {_message(record)}"


def printable(raw: bytes) -> str:
    """UTF-8 text with everything escaped that is not printable."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in raw.decode(errors="backslashreplace"))


def letters(reader: BusReader) -> Iterator[Letter | str]:
    """Every dead letter there is; a record that is none of ours as the reason why."""
    for partition in range(reader.partitions(DLQ)):
        for record in reader.read(DLQ, partition):
            try:
                yield read_letter(record)
            except Rejected as error:
                yield error.reason


def replay(
    reader: BusReader,
    publish: Callable[[Sequence[Emitted]], None],
    wanted: Sequence[tuple[int, int]],
    *,
    value: bytes | None = None,
    set_headers: Mapping[str, str] | None = None,
) -> list[str]:
    """Send dead letters (partition, offset) back to where they came from; why each refused one was refused.

    Raises UsageError where one value is given for several letters, or a letter does not exist.
    """
    if value is not None and len(wanted) != 1:
        raise UsageError(f"a repaired value is for one dead letter, {len(wanted)} are named")
    refused: list[str] = []
    for partition, offset in wanted:
        found = next((r for r in reader.read_from(DLQ, partition, offset) if r.offset >= offset), None)
        if found is None or found.offset != offset:
            raise UsageError(f"no dead letter {partition}/{offset}; list them with: xpulse dlq list")
        try:
            publish([replayed(read_letter(found), value=value, set_headers=set_headers)])
        except Rejected as error:
            refused.append(error.reason)
    return refused


def _message(record: Record) -> str:
    if record.topic == DLQ:
        try:
            letter = read_letter(record)
        except Rejected as error:
            return f"unreadable: {printable(error.reason.encode())}"
        size = "null" if letter.size_bytes is None else f"{letter.size_bytes} B"
        source = f"{letter.topic} {letter.source_partition}/{letter.source_offset}"
        return printable(f"group={letter.group} from={source} attempt={letter.attempt} size={size} reason={letter.reason}".encode())
    if topic(record.topic).message is None and record.value is not None:
        return printable(record.value)
    try:
        message = decode(record)
    except Rejected as error:
        shown = "null" if record.value is None else record.value[:_SHOWN_BYTES].hex()
        return f"unreadable: {printable(error.reason.encode())} ({shown})"
    if message is None:
        return "deleted"
    return printable(text_format.MessageToString(message, as_one_line=True, as_utf8=True).encode())
