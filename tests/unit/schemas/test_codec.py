"""What is malformed is said once, here, with its reason; what is newer is accepted."""

import pytest

from schemas import topics
from schemas.codec import HEADERS, decode, encode, tombstone
from schemas.flow import Headers, Record, Rejected
from schemas.telemetry import v1

BATCH = v1.SampleBatch(cluster="c", node="n", source="s", agent_epoch=1, sequence=1, taken_at_ns=1)


def record(value: bytes | None, *, topic: str = topics.SAMPLES, headers: Headers = HEADERS) -> Record:
    return Record(topic, 0, 0, b"c/n", value, headers, 0)


def test_round_trip() -> None:
    out = encode(topics.SAMPLES, b"c/n", BATCH)
    assert decode(record(out.value, headers=out.headers)) == BATCH


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (record(None), "null value"),
        (record(b""), "empty value"),
        (record(b"\xff\xff\xff"), "malformed SampleBatch"),
        (record(BATCH.SerializeToString(), headers=()), "no schema-version"),
        (record(BATCH.SerializeToString(), headers=(("schema-version", b"2.0"),)), "schema major 2 was sent, this release understands 1"),
        (record(BATCH.SerializeToString(), headers=(("schema-version", b"one"),)), "is not major.minor"),
        (record(BATCH.SerializeToString(), headers=(("schema-version", b"9" * 5000 + b".0"),)), "is not major.minor"),
        (record(v1.SampleBatch(cluster="c", node="n", source="s", agent_epoch=1, taken_at_ns=2**63).SerializeToString()), "year 2262"),
        (record(b"\x0a\x01c" + b"\x00" * 2_000_000), "2000003 bytes"),
        (record(v1.SampleBatch(cluster="c", source="s").SerializeToString()), "SampleBatch without node"),
        (record(v1.SampleBatch(cluster="c", node="n", source="s", agent_epoch=1).SerializeToString()), "without taken_at_ns"),
        (record(v1.InventoryRecord(observed_at_ns=1).SerializeToString(), topic=topics.INVENTORY), "without device or node"),
        (record(b"x", topic=topics.ALERTS_JSON), "no protobuf"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_rejected_with_its_reason(given: Record, reason: str) -> None:
    with pytest.raises(Rejected, match=reason.replace("(", r"\(")):
        decode(given)


def test_a_newer_minor_with_unknown_fields_is_accepted() -> None:
    newer = BATCH.SerializeToString() + b"\xf2\x7f\x03abc" + b"\xf8\x7f\x05"  # fields 2046 and 2047, of a later release
    assert decode(record(newer, headers=(("schema-version", b"1.99"),))) is not None


def test_deletion_only_where_the_topic_is_compacted() -> None:
    assert decode(record(None, topic=topics.INVENTORY)) is None
    assert tombstone(topics.ALERT_STATE, b"k").value is None
    with pytest.raises(ValueError, match="not compacted"):
        tombstone(topics.SAMPLES, b"k")


def test_too_large_to_send() -> None:
    with pytest.raises(Rejected, match="split it"):
        encode(topics.DEVICE_EVENTS, b"c/n", v1.DeviceEvent(text="x" * 2_000_000))


def test_every_protobuf_topic_says_what_makes_its_message_usable() -> None:
    for row in topics.TOPICS:
        if row.message is not None:
            unusable = b"\xf8\x7f\x05"  # one unknown field: parses, and says nothing
            with pytest.raises(Rejected, match="without"):
                decode(record(unusable, topic=row.name))
