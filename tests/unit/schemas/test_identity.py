"""Names are exact: no two devices, entities or alerts share one, and a key lands where Kafka's own clients put it."""

import pytest

from schemas.identity import complete_info, device_uid, fingerprint, murmur2, normal_bdf, partition_of
from schemas.telemetry import v1


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("00000000:3B:00.0", "0000:3b:00.0"),
        ("3b:00.0", "0000:3b:00.0"),
        ("0000:3b:00", "0000:3b:00.0"),
        ("0009:01:00.0", "0009:01:00.0"),
        ("00010000:3B:00.0", "10000:3b:00.0"),
    ],
)
def test_bdf(text: str, normal: str) -> None:
    assert normal_bdf(text) == normal


def test_bad_bdf_is_named() -> None:
    with pytest.raises(ValueError, match="GPU-1"):
        normal_bdf("GPU-1")


def test_uid_needs_something_unique() -> None:
    assert device_uid("nvidia", unique="GPU-1") == "nvidia:GPU-1"
    assert device_uid("nvidia", node="n1", bdf="3b:00.0") == "nvidia:n1:0000:3b:00.0"
    with pytest.raises(ValueError, match="node"):
        device_uid("nvidia", bdf="3b:00.0")


@pytest.mark.parametrize(
    ("data", "expected"),
    # The values of Apache Kafka's own UtilsTest.testMurmur2.
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    ],
)
def test_murmur2_is_kafkas(data: bytes, expected: int) -> None:
    assert murmur2(data) == expected & 0xFFFFFFFF


def test_partition_is_in_range() -> None:
    assert {partition_of(f"c/{i}".encode(), 12) for i in range(400)} == set(range(12))


def test_fingerprint_does_not_join_parts() -> None:
    assert fingerprint("a", "bc", "d") != fingerprint("ab", "c", "d")
    assert len(fingerprint("a", "b", "c")) == 16


def test_complete_info_puts_back_what_the_batch_says() -> None:
    batch = v1.SampleBatch(cluster="c", node="n", driver_version="570", simulated=True)
    sample = v1.DeviceSample(uid="nvidia:GPU-1", index=3, info=v1.DeviceInfo(model="H100", serial="1"))
    info = complete_info(batch, sample)
    assert (info.uid, info.vendor, info.index, info.driver_version) == ("nvidia:GPU-1", "nvidia", 3, "570")
    assert (info.cluster, info.node, info.simulated, info.model) == ("c", "n", True, "H100")
    assert sample.info.uid == ""
