"""One fault is one row and one line, with the number of its other alerts."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from schemas.telemetry import v1
from xpulse.local.tally import Tally
from xpulse.view.live import lines
from xpulse.view.model import AlertRow, Screen, alert_rows
from xpulse.view.render import draw

S = 1_000_000_000
WARNING, CRITICAL = v1.Severity.SEVERITY_WARNING, v1.Severity.SEVERITY_CRITICAL


def alert(number: int, *, incident: int = 0, severity: v1.Severity = WARNING) -> v1.Alert:
    return v1.Alert(
        fingerprint=f"f{number}",
        episode=f"f{number}-1",
        incident=f"f{incident}-1",
        status=v1.AlertStatus.ALERT_STATUS_FIRING,
        severity=severity,
        rule="thermal_throttle",
        node="n",
        entity=f"device/{number}",
        at_ns=number * S,
        started_at_ns=number * S,
    )


def rows(*alerts: v1.Alert) -> list[AlertRow]:
    return alert_rows(Tally(alerts={one.fingerprint: one for one in alerts}), 100 * S, {})


def screen(alerts: list[AlertRow], seconds: float = 1) -> Screen:
    return Screen("c", True, seconds, [], alerts, [], [], 0, [], 1)


def test_the_leader_stands_for_its_incident() -> None:
    assert [(row.where, row.others) for row in rows(*(alert(n) for n in range(64)), alert(70, incident=70))] == [
        ("device/70", 0),
        ("device/0", 63),
    ]


def test_what_is_graver_stands_before_the_leader() -> None:
    assert [(row.where, row.others) for row in rows(alert(0), alert(1), alert(2, severity=CRITICAL))] == [("device/2", 2)]


def test_an_alert_of_an_older_release_is_its_own_incident() -> None:
    old = [alert(n) for n in range(2)]
    for one in old:
        one.ClearField("incident")
    assert [row.others for row in rows(*old)] == [0, 0]


@pytest.mark.parametrize("width", [160, 80])
def test_the_screen_says_how_many_more(width: int) -> None:
    drawn = io.StringIO()
    Console(file=drawn, width=width).print(draw(screen(rows(*(alert(n) for n in range(64)))), 30, width))
    row = next(line for line in drawn.getvalue().splitlines() if "thermal" in line)
    assert "+63" in row
    assert ("64 open alerts in 1 incident" if width == 160 else "64 open alerts") in drawn.getvalue()


def test_a_line_tells_of_an_incident_when_it_begins_gets_worse_and_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    with lines() as show:
        show(screen(rows(alert(0))))
        show(screen(rows(alert(0), alert(1))))
        show(screen(rows(alert(0), alert(1), alert(2, severity=CRITICAL))))
        show(screen(rows(alert(1))))
        show(screen([]))
    said = [line.split("s  ", 1)[1] for line in capsys.readouterr().err.splitlines() if "device/" in line]
    assert said == [
        "ALERT    thermal_throttle device/0: warning ",
        "ALERT    thermal_throttle device/2: critical  (+2)",
        "RESOLVED thermal_throttle device/2",
    ]
