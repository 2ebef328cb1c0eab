"""No answer of a driver raises, and none becomes a value outside the catalogue's range."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.nvidia.device_info import device_info, set_fabric
from collectors.nvidia.fast_fields import Memory, fast_fields
from collectors.nvidia.fields import decode
from collectors.nvidia.links import link_fields
from collectors.nvidia.reply import Count32, Failed, Replies
from collectors.nvidia.slow_fields import Limits, slow_fields
from collectors.nvidia.unified import unified_memory
from schemas.builder import SampleBuilder
from schemas.catalogue import BY_NAME, CATALOGUE
from schemas.telemetry import v1
from tests.unit.collectors.nvidia.test_fast_fields import FAST_REPLIES, PROFILE
from tests.unit.collectors.nvidia.test_slow_fields import SLOW_REPLIES

NUMBERS = st.one_of(
    st.sampled_from(
        (0, 1, -1, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 2**63, -(2**63), 4_294_967_295, 200_000, 2_147_483_632, 9_223_372_036_854_775_792)
    ),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(),
)
REPLY = st.one_of(NUMBERS, st.text(max_size=12), st.builds(Failed, st.integers(0, 1000)), st.builds(Count32, st.integers(0, 2**32 - 1)))


def replies(*names: str) -> st.SearchStrategy[Replies]:
    return st.dictionaries(st.sampled_from(names), REPLY, max_size=len(names))


def in_range(sample: v1.DeviceSample) -> None:
    for metric in CATALOGUE:
        if sample.HasField(metric.name):
            value = float(getattr(sample, metric.name))
            assert math.isfinite(value)
            # A float field keeps 24 bits: the limit itself may be rounded.
            assert BY_NAME[metric.name].valid(value) or math.isclose(value, metric.maximum or 0, rel_tol=1e-6) or value == metric.minimum


@settings(max_examples=200, deadline=None)
@given(replies(*FAST_REPLIES, "nvlink_tx_bytes", "power_milliwatts"), replies(*PROFILE, "pcie_tx_mib_s"), st.booleans(), st.floats(0, 1e6))
def test_a_tick(answers: Replies, profile: Replies, mig: bool, seconds: float) -> None:
    builder, memory = SampleBuilder("nvidia:x"), Memory()
    for _ in range(2):
        fast_fields(builder, answers, profile, memory, mig=mig, seconds=seconds)
    in_range(builder.build())


@settings(max_examples=200, deadline=None)
@given(replies(*SLOW_REPLIES, "mig_mode_pending", "reset_wanted", "drain_and_reset_wanted"))
def test_the_slow_fields(answers: Replies) -> None:
    builder = SampleBuilder("nvidia:x")
    slow_fields(builder, answers, Limits())
    in_range(builder.build())


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(REPLY, st.integers(1, 3)),
    st.lists(
        replies("replay", "crc", "tx_bytes", "rx_kibibytes", "symbol", "version", "speed_megabytes", "remote_type", "remote_bdf"),
        max_size=3,
    ),
)
def test_links(count: object, links: list[Replies]) -> None:
    builder = SampleBuilder("nvidia:x")
    link_fields(builder, len(links) if isinstance(count, int) else count, [{"state": 1} | link for link in links])  # type: ignore[arg-type]  # any reply
    in_range(builder.build())


@settings(max_examples=200, deadline=None)
@given(replies("uuid", "bdf", "name", "serial", "module", "numa_node", "minor_number", "tray", "architecture", "chassis_serial", "slot"))
def test_identity(answers: Replies) -> None:
    info = device_info(answers, "n", 0)
    if info is not None:
        assert info.uid.startswith("nvidia:")
        set_fabric(info, answers)


@given(st.integers(0, 400), st.integers(0, 9), st.integers(0, 1000), st.integers(0, 2**64 - 1))
def test_field_values(number: int, kind: int, result: int, raw: int) -> None:
    reply = decode(number, kind, result, raw)
    assert not isinstance(reply, float) or math.isfinite(reply)


@given(st.text(max_size=200))
def test_meminfo(text: str) -> None:
    found = unified_memory(text)
    assert found is None or 0 <= found[1] <= found[0]
