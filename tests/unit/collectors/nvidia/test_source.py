"""What comes out of NVML before anything is understood: union members, sums over links, 32-bit counters."""

from __future__ import annotations

from typing import Any

import pynvml
import pytest

from collectors.nvidia.reply import Count32, Failed, field_value, total
from collectors.nvidia.source import Source
from tests.fakes import nvml
from tests.fakes.nvml.fixtures import fake_nvml, fake_nvml_library

__all__ = ["fake_nvml", "fake_nvml_library"]


def value(kind: int, field: int = 1, code: int = 0, **members: Any) -> Any:
    made = pynvml.c_nvmlFieldValue_t()
    made.fieldId, made.valueType, made.nvmlReturn = field, kind, code
    for name, number in members.items():
        setattr(made.value, name, number)
    return made


@pytest.mark.parametrize(
    ("given", "reply"),
    [
        (value(0, dVal=1.5), 1.5),
        (value(0, dVal=float("nan")), Failed(999)),
        (value(1, uiVal=4_000_000_000), 4_000_000_000),
        (value(1, field=197, uiVal=5), Count32(5)),
        (value(2, ulVal=7), 7),
        (value(3, ullVal=2**63), 2**63),
        (value(3, field=197, ullVal=2**40), 2**40),
        (value(4, sllVal=-3), -3),
        (value(5, siVal=-8), -8),
        (value(6, usVal=9), 9),
        (value(1, code=3), Failed(3)),
        (value(1, code=2), Failed(3)),
        (value(1, code=15), Failed(15)),
    ],
    ids=lambda case: str(case) if not isinstance(case, pynvml.c_nvmlFieldValue_t) else f"type {case.valueType}",
)
def test_the_member_is_the_one_that_the_type_names(given: Any, reply: object) -> None:
    assert field_value(given) == reply


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


def test_a_link_that_is_down_is_not_counted(source: Source, fake_nvml: nvml.State) -> None:
    fake_nvml.set(_0__link__3__active=0, _0__link__3__replay=40)
    replies = source.slow(source.handles()[0])
    assert (replies["links_active"], replies["link_errors"]) == (17, 58)


def test_a_card_without_links_has_no_errors_of_them(source: Source, fake_nvml: nvml.State) -> None:
    fake_nvml.set(every__field__91="!3")
    replies = source.slow(source.handles()[0])
    assert (replies["links_active"], replies["link_errors"]) == (Failed(3), Failed(3))


def test_pcie_bytes_of_32_bits_are_marked(source: Source, fake_nvml: nvml.State) -> None:
    fake_nvml.every.field(197, {"value": 3_020_371_496_512, "type": 1})
    assert source.fast(source.handles()[0])["pcie_tx_bytes"] == Count32(3_020_371_496_512 % 2**32)


def test_what_is_skipped_costs_no_call(source: Source, fake_nvml: nvml.State) -> None:
    fake_nvml.set(every__fan_percent=40)
    assert source.fast(source.handles()[0], frozenset({"fan_percent"}))["fan_percent"] == Failed(3)
    assert source.fast(source.handles()[0])["fan_percent"] == 40


def test_a_text_that_is_no_utf8_is_an_error_not_an_exception(source: Source) -> None:
    def broken(*_: object) -> str:
        return b"\xff".decode()

    assert source.ask(broken) == Failed(999)


def test_profiling_needs_two_looks(source: Source) -> None:
    handle = source.handles()[0]
    first, second = source.profile(handle, "x"), source.profile(handle, "x")
    assert first == {}
    assert second == {
        "sm_active_percent": 97.5,
        "tensor_active_percent": 41.25,
        "dram_active_percent": 10.75,
        "pcie_tx_mib_s": 3.0,
        "pcie_rx_mib_s": 6.25,
    }
    source.close()


def test_fields_that_fail_as_a_whole_all_fail(source: Source, fake_nvml: nvml.State) -> None:
    handle = source.handles()[0]
    fake_nvml.set(_0__error=15)
    assert set(source.fast(handle).values()) == {Failed(15)}
