"""The screen shows what others named, and obeys none of it."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from xpulse.view.model import AlertRow, DeviceRow, ForecastRow, Screen, StageRow
from xpulse.view.render import draw


@pytest.mark.parametrize("name", ["[/x]", "[red]hot", "[link=file:///x]a[/link]", ":smile:"])
def test_markup_in_a_name_is_shown_as_it_is(name: str) -> None:
    unknown = None
    screen = Screen(
        cluster=name,
        simulated=True,
        seconds=1,
        devices=[DeviceRow("c", name, 0, "u", name, name, unknown, unknown, unknown, unknown, unknown, 1.0)],
        alerts=[AlertRow("critical", name, name, name, name, 1.0)],
        forecasts=[ForecastRow(name, "m", "1 s", 1.0, 0.5, name)],
        stages=[],
        resolved_total=0,
        notes=[name],
        memory_bytes=1,
    )
    drawn = io.StringIO()
    Console(file=drawn, width=220).print(draw(screen))
    assert drawn.getvalue().count(name) == 11


@pytest.mark.parametrize("more", ["", "-of-the-second-hall.example.internal" * 3])
@pytest.mark.parametrize(("width", "height"), [(160, 48), (120, 40), (100, 30), (80, 24)])
def test_no_number_is_cut_in_a_narrow_window_and_nothing_runs_over(width: int, height: int, more: str) -> None:
    devices = [
        DeviceRow("c", f"sim-node-1{more}", i, f"u{i}", "Simulated H100 80GB", "research/translate", 0.47, 8e10, 8.6e10, 52, 388, 1)
        for i in range(16)
    ]
    alerts = [AlertRow("critical", "memory_nearly_full", "sim-node-1 #2", "serving/code", "memory is full " * 9, 100) for _ in range(12)]
    screen = Screen(
        cluster="local",
        simulated=True,
        seconds=100,
        devices=devices,
        alerts=alerts,
        forecasts=[ForecastRow("sim-node-1 #2", "memory_used_bytes", "18 s", 18.0, 1.0, "holt")] * 4,
        stages=[StageRow(role, "starting", 32.6, 0, 1, 12) for role in ("attribute", "detect", "alert") * 3],
        resolved_total=1,
        notes=["a note " * 40] * 5,
        memory_bytes=500 << 20,
    )
    drawn = io.StringIO()
    Console(file=drawn, width=width).print(draw(screen, height, width))
    lines = drawn.getvalue().splitlines()
    assert len(lines) <= height
    assert "SIMULATED" in lines[0]
    assert "Ctrl-C stops" in lines[0]
    row = next(line for line in lines if "388 W" in line)
    for part in ("sim-node-1", "research/translate", "47%", "93%", "52 °C", "388 W", "1 s"):
        assert part in row
    assert "critical" in drawn.getvalue()
    assert sum("starting restarts 1 dlq 12" in line for line in lines) == (3 if width == 160 else 5)
