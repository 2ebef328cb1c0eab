"""A late batch is the same batch with another time of sending and a mark."""

from __future__ import annotations

from schemas.codec import decode, encode
from schemas.flow import Out, Record
from schemas.telemetry import v1
from schemas.topics import DEVICE_EVENTS, MAX_VALUE_BYTES, SAMPLES
from streams.operators.detect.columns import Reader, Taken
from streams.operators.detect.fleet import Fleet
from streams.operators.detect.table import Table
from xpulse.northbound.spool.stamp import sent_again


def batch(devices: int = 2) -> v1.SampleBatch:
    made = v1.SampleBatch(cluster="c", node="n", source="s", agent_epoch=1, sequence=7, taken_at_ns=5, sent_at_ns=6, driver_version="1")
    for i in range(devices):
        made.devices.add(uid=f"nvidia:{i}", index=i, power_watts=100.0 + i)
    return made


def test_only_the_time_of_sending_and_the_mark_differ() -> None:
    late = sent_again(encode(SAMPLES, b"c/n", batch()), 2**62)
    message = decode(Record(SAMPLES, 0, 0, late.key, late.value, late.headers, 1))
    assert isinstance(message, v1.SampleBatch)
    wanted = batch()
    wanted.sent_at_ns, wanted.replayed = 2**62, True
    assert message == wanted


def test_a_batch_sent_late_twice_has_the_last_time() -> None:
    late = sent_again(sent_again(encode(SAMPLES, b"c/n", batch()), 10), 11)
    assert v1.SampleBatch.FromString(late.value or b"").sent_at_ns == 11


def test_other_messages_are_left_alone() -> None:
    for out in (Out(DEVICE_EVENTS, b"k", b"v"), Out(SAMPLES, b"k", None), Out(SAMPLES, b"k", b"x" * MAX_VALUE_BYTES)):
        assert sent_again(out, 1) is out


def test_readers_of_raw_bytes_read_it_as_any_other() -> None:
    """Detect reads a hundred devices and more side by side from their bytes."""
    late = sent_again(encode(SAMPLES, b"c/n", batch(200)), 9).value or b""
    columns = Reader(("power_watts",)).read([Taken(v1.SampleBatch.FromString(late), late)], Fleet(Table()))
    assert columns.values[:, 0].tolist() == [100.0 + i for i in range(200)]
