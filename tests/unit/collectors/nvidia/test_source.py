"""What comes out of NVML before anything is understood: union members, prepared calls, links, samples, and what is not asked again."""

from __future__ import annotations

import struct

import pynvml
import pytest

from collectors.nvidia.calls import number
from collectors.nvidia.fast import FIELDS, FastCalls
from collectors.nvidia.fields import FieldBatch, decode, slowdown_fields
from collectors.nvidia.gpm import Profiler
from collectors.nvidia.links import Links
from collectors.nvidia.reply import Count32, Failed, Replies, Reply, total
from collectors.nvidia.slow import SlowCalls
from collectors.nvidia.source import Source
from tests.fakes import nvml
from tests.fakes.nvml.fixtures import fake_nvml, fake_nvml_library

__all__ = ["fake_nvml", "fake_nvml_library"]


def bits(form: str, value: float) -> int:
    """The union's eight bytes with a member written to them; the rest is what was there before."""
    raw = struct.pack(f"={form}", value)
    return int.from_bytes(raw + b"\xaa" * (8 - len(raw)), "little")


@pytest.mark.parametrize(
    ("field", "kind", "code", "raw", "reply"),
    [
        (1, 0, 0, bits("d", 1.5), 1.5),
        (1, 0, 0, bits("d", float("nan")), Failed(999)),
        (1, 1, 0, bits("I", 4_000_000_000), 4_000_000_000),
        (197, 1, 0, bits("I", 5), Count32(5)),
        (1, 2, 0, bits("Q", 7), 7),
        (1, 3, 0, bits("Q", 2**63), 2**63),
        (197, 3, 0, bits("Q", 2**40), 2**40),
        (1, 4, 0, bits("q", -3), -3),
        (1, 5, 0, bits("i", -8), -8),
        (1, 6, 0, bits("H", 9), 9),
        (1, 1, 3, 0, Failed(3)),
        (1, 1, 2, 0, Failed(3)),
        (1, 1, 15, 0, Failed(15)),
    ],
)
def test_the_member_is_the_one_that_the_type_names(field: int, kind: int, code: int, raw: int, reply: Reply) -> None:
    assert decode(field, kind, code, raw) == reply


@pytest.mark.parametrize(
    ("version", "ids"),
    [
        ("535.161.08", ()),
        ("570.172.08", ()),
        ("575.57.08", (252, 253)),
        ("580.65.06", (252, 253)),
        ("590.48.01", (270, 271)),
        ("615.71", (270, 271)),
        ("", ()),
        ("nonsense", ()),
    ],
)
def test_fields_that_moved_are_asked_for_where_the_driver_has_them(version: str, ids: tuple[int, ...]) -> None:
    assert tuple(slowdown_fields(version).values()) == ids


@pytest.mark.parametrize(
    ("counters", "is_"),
    [
        ([1, 2, Failed(3)], 3),
        ([Failed(3), Failed(3)], Failed(3)),
        ([1, Failed(999), Failed(3)], Failed(999)),
        ([], Failed(3)),
        ([0, 0], 0),
    ],
    ids=["some not there", "none there", "one unreadable", "no links", "all zero"],
)
def test_a_sum_is_of_what_the_device_has_or_nothing(counters: list[int | Failed], is_: object) -> None:
    assert total(counters) == is_


@pytest.fixture
def source(fake_nvml: nvml.State) -> Source:
    made = Source()
    made.open()
    return made


def test_a_link_that_is_down_is_seen_with_its_counters(source: Source, fake_nvml: nvml.State) -> None:
    fake_nvml.set(_0__link__3__active=0)
    fake_nvml.device(0).field(161, 40, scope=3)
    count, links = Links(source, source.handles()[0]).read()
    assert count == 18
    assert [link["state"] for link in links] == [1, 1, 1, 0] + [1] * 14
    assert (links[3]["replay"], links[4]["replay"]) == (40, 0)
    assert "remote_bdf" not in links[3]
    assert "remote_bdf" in links[4]


def test_a_card_without_links_has_none(source: Source, fake_nvml: nvml.State) -> None:
    fake_nvml.set(every__field__91=nvml.code(3))
    assert Links(source, source.handles()[0]).read() == (Failed(3), [])


def test_what_no_link_has_is_not_asked_again(source: Source, fake_nvml: nvml.State) -> None:
    links = Links(source, source.handles()[0])
    links.read()
    assert links.fields is not None
    asked = {name.partition(" ")[0] for name in links.fields.names}
    assert asked.isdisjoint({"malformed", "effective", "symbol"})  # NVLink 5 only
    assert links.read()[0] == 18


def test_pcie_bytes_of_32_bits_are_marked(source: Source, fake_nvml: nvml.State) -> None:
    fake_nvml.set(every__field__197={"value": 3_020_371_496_512 % 2**32, "type": 1})
    replies: Replies = {}
    FieldBatch(source, source.handles()[0], {"pcie_tx_bytes": 197}).ask(replies)
    assert replies == {"pcie_tx_bytes": Count32(3_020_371_496_512 % 2**32)}


def test_more_fields_than_one_call_takes_are_asked_for_in_several(source: Source) -> None:
    replies: Replies = {}
    FieldBatch(source, source.handles()[0], {str(i): 82 for i in range(130)}).ask(replies)
    assert replies == {str(i): 55 for i in range(130)}


def test_a_field_that_the_driver_leaves_untouched_is_no_value(source: Source) -> None:
    batch = FieldBatch(source, source.handles()[0], {"a": 82})
    batch._parts[0]._function = lambda *_: 0
    replies: Replies = {}
    batch.ask(replies)
    assert replies == {"a": Failed(999)}


def test_what_a_card_does_not_have_costs_no_call_until_the_next_look(source: Source, fake_nvml: nvml.State) -> None:
    calls = FastCalls(source, source.handles()[0])
    looked = calls.read(everything=True)
    assert looked["fan_percent"] == Failed(3)
    fake_nvml.set(every__fan_percent=40)
    assert "fan_percent" not in calls.read(everything=False)
    assert calls.read(everything=True)["fan_percent"] == 40
    assert calls.read(everything=False)["fan_percent"] == 40


def test_a_fast_tick_asks_this_much(source: Source) -> None:
    calls = FastCalls(source, source.handles()[0])
    calls.read(everything=True)
    assert calls.count == 11  # the guide's page names them
    replies = calls.read(everything=False)
    assert set(FIELDS) - replies.keys() == {"nvlink_tx_bytes", "nvlink_rx_bytes"}


def test_a_reason_that_may_pass_is_asked_again(source: Source, fake_nvml: nvml.State) -> None:
    fake_nvml.set(every__temperature_celsius=nvml.code(999))
    calls = FastCalls(source, source.handles()[0])
    assert calls.read(everything=True)["temperature_celsius"] == Failed(999)
    fake_nvml.set(every__temperature_celsius=61)
    assert calls.read(everything=False)["temperature_celsius"] == 61


def test_an_older_call_stands_in_for_one_that_the_driver_lacks(source: Source, fake_nvml: nvml.State) -> None:
    fake_nvml.fail("nvmlDeviceGetTemperatureV", 25)
    fake_nvml.fail("nvmlDeviceGetMemoryInfo_v2", 13)
    fake_nvml.fail("nvmlDeviceGetCurrentClocksEventReasons", 13)
    calls = FastCalls(source, source.handles()[0])
    for everything in (True, False):
        replies = calls.read(everything=everything)
        assert replies["temperature_celsius"] == 59
        assert replies["memory_total_bytes"] == 85_520_809_984
        assert replies["clock_reasons"] == 0
    assert "memory_reserved_bytes" not in replies


def test_a_symbol_that_is_missing_is_not_found(source: Source) -> None:
    replies: Replies = {}
    number(source, "x", "nvmlDeviceGetNothing", source.handles()[0]).run(replies)
    assert replies == {"x": Failed(13)}


def test_a_text_that_is_no_utf8_is_an_error_not_an_exception(source: Source) -> None:
    def broken(*_: object) -> str:
        return b"\xff".decode()

    assert source.ask(broken) == Failed(999)


def test_profiling_needs_two_looks(source: Source) -> None:
    profiler = Profiler(source, source.handles()[0])
    first, second = profiler.read(), profiler.read()
    assert first == {}
    assert second["sm_active_percent"] == 97.5
    assert second["fp16_active_percent"] == 38.5
    assert (second["pcie_tx_mib_s"], second["pcie_rx_mib_s"]) == (3.0, 6.25)
    profiler.close()


def test_profiling_that_fails_leaves_the_older_look(source: Source, fake_nvml: nvml.State) -> None:
    profiler = Profiler(source, source.handles()[0])
    profiler.read()
    profiler.read()
    fake_nvml.fail("nvmlGpmSampleGet", 999)
    assert set(profiler.read().values()) == {Failed(999)}
    fake_nvml.fail("nvmlGpmSampleGet", 0)
    assert profiler.read()["sm_active_percent"] == 97.5
    profiler.close()


def test_the_20_ms_window_is_measured_only_where_nothing_counts_bytes(source: Source, fake_nvml: nvml.State) -> None:
    fake_nvml.data["pcie_window_us"] = 0
    fake_nvml.set(every__pcie_tx_kilobytes_per_second=352, every__pcie_rx_kilobytes_per_second=329)
    slow = SlowCalls(source, source.handles()[0], "590.48.01")
    assert "pcie_tx_kilobytes_per_second" not in slow.read(counts_pcie_bytes=True)
    assert slow.read(counts_pcie_bytes=False)["pcie_rx_kilobytes_per_second"] == 329
    off = SlowCalls(source, source.handles()[0], "590.48.01", pcie_window=False)
    assert "pcie_tx_kilobytes_per_second" not in off.read(counts_pcie_bytes=False)


def test_what_fails_as_a_whole_fails_everywhere(source: Source, fake_nvml: nvml.State) -> None:
    calls = FastCalls(source, source.handles()[0])
    fake_nvml.lose(0)
    assert set(calls.read(everything=True).values()) == {Failed(15)}


def test_the_bindings_struct_is_the_one_that_is_packed_here() -> None:
    assert pynvml.sizeof(pynvml.c_nvmlFieldValue_t) == 40
    assert pynvml.sizeof(pynvml.c_nvmlGpmMetric_t) == 40
