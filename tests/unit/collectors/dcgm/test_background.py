"""Profiling figures at hand: fresh ones only, and a reason where there are none."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from collectors.dcgm.background import Background
from tests.fakes.exporter import FakeExporter, serving
from tests.unit.collectors.dcgm.pages import GPU, H100


@pytest.fixture
def exporter() -> Iterator[FakeExporter]:
    with serving(FakeExporter(H100)) as fake:
        yield fake


def until(good: Callable[[], bool]) -> None:
    for _ in range(500):
        if good():
            return
        time.sleep(0.01)
    raise AssertionError("never")


def test_values_come_and_go_with_the_exporter(exporter: FakeExporter) -> None:
    background = Background(exporter.url, interval_seconds=0.01, max_age_seconds=0.3)
    try:
        until(lambda: bool(background.values(GPU)))
        assert background.values(GPU)["tensor_active_ratio"] == pytest.approx(0.40122)
        assert background.values("GPU-other") == {}
        assert background.trouble == ""
        exporter.how = "error"
        until(lambda: not background.values(GPU))
        assert "503" in background.trouble
    finally:
        background.close()


def test_a_page_without_profiling_says_so(exporter: FakeExporter) -> None:
    exporter.page = 'DCGM_FI_DEV_GPU_TEMP{UUID="GPU-a"} 5\n'
    background = Background(exporter.url, interval_seconds=0.01)
    until(lambda: "no profiling fields" in background.trouble)
    background.close()


def test_close_ends_a_request_that_hangs(exporter: FakeExporter) -> None:
    exporter.how = "slow_first_byte"
    background = Background(exporter.url, timeout_seconds=30)
    until(lambda: bool(exporter.asked))
    background.close()
    assert not background._thread.is_alive()


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(ValueError, match="is not an address"):
        Background("localhost:9400")
