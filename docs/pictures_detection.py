"""Pictures of the detection guide: each a scenario of the simulated fleet with what the shipped detectors made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from docs.drawing import BLUE, GREY, ORANGE, RED, SKY, level, save, sheet, span, thinned
from docs.story import play
from schemas.telemetry import v1
from sinks.notify.incidents import Told, take

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FIRING: Final = v1.AlertStatus.ALERT_STATUS_FIRING


def incident() -> Path:
    """A rack whose cooling fails: 64 cards, as many alerts and more, one incident, two messages."""
    story = play(40 * 60, ["temperature_celsius"], nodes=8, nodes_per_rack=8, seed=7, faults=("cooling_loss@10m+12m:rack=r1",))
    told, messages = Told(), []
    alerts = [alert for alert in story.alerts if alert.mode == v1.AlertMode.ALERT_MODE_NOTIFY]
    for alert in alerts:
        messages += [(story.minute(alert.at_ns), notice.alert) for notice in take(told, alert)]
    figure, axes = sheet(2, height=4.2, sharex=True, height_ratios=(3, 2))
    above, below = axes[:, 0]
    minutes, celsius = thinned(story.minutes, story.columns["temperature_celsius"].T, points=100)
    above.plot(minutes, np.round(celsius.T, 1), color=SKY, linewidth=0.4, alpha=0.7)
    span(above, 10, 22, "cooling of the rack fails")
    level(above, 89, "slows down")
    above.set_ylim(35, 100)
    above.set_ylabel("temperature, °C")
    above.set_title("64 cards of a rack ...")
    cards = {f"device/{device.uid}": device.number for device in story.fleet.layout.devices}
    for rule, colour, marker in (("temperature_near_slowdown", ORANGE, "."), ("thermal_throttle", BLUE, "x")):
        fired = [(story.minute(a.at_ns), cards[a.entity]) for a in alerts if a.rule == rule and a.status == FIRING]
        below.plot(*zip(*fired, strict=True), marker, color=colour, markersize=4, linestyle="none", label=f"{len(fired)} × {rule}")
    for at, alert in messages:
        below.axvline(at, color=RED, linewidth=1.4)
        below.text(
            at,
            66,
            "begins " if alert.status == FIRING else " over",
            color=RED,
            fontsize=8,
            ha="right" if alert.status == FIRING else "left",
        )
    incidents = len({alert.incident for alert in alerts})
    below.set_title(f"... {sum(a.status == FIRING for a in alerts)} alerts, {incidents} incident, {len(messages)} messages (red)", pad=14)
    below.set_ylabel("card")
    below.set_xlabel("minutes")
    below.legend(loc="center right")
    below.tick_params(colors=GREY)
    return save(figure, "incident")


PICTURES: Final[dict[str, Callable[[], Path]]] = {"incident": incident}
