"""The screen shows what others named, and obeys none of it."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from xpulse.view.model import AlertRow, DeviceRow, ForecastRow, Screen
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
