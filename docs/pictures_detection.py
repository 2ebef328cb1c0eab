"""Pictures of the detection guide: each a scenario of the simulated fleet with what the shipped detectors made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from collectors.simulated.fleet import SECOND_NS, Fleet
from collectors.simulated.settings import Simulated
from docs.drawing import BLUE, GREY, ORANGE, PALE, RED, SKY, level, save, sheet, span, spiky, thinned
from docs.story import CLUSTER, STARTED_AT_NS, play
from schemas.telemetry import v1
from sinks.notify.incidents import Told, take
from streams.operators.detect import bursts
from streams.operators.detect.anomaly import ensemble
from streams.operators.detect.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

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


def series(hours: float, metric: str, every_seconds: int = 10, **settings: Any) -> tuple[Fleet, NDArray[np.float64]]:
    """A scenario's fleet and the metric of all its cards, shape (steps, devices)."""
    fleet = Fleet(Simulated(clusters=(CLUSTER,), **settings), clusters=(CLUSTER,), started_at_ns=STARTED_AT_NS)
    rows = []
    for second in range(every_seconds, round(hours * 3600) + 1, every_seconds):
        fleet.advance(STARTED_AT_NS + second * SECOND_NS)
        rows.append(fleet.view().columns[metric].astype(np.float64))
    return fleet, np.stack(rows)


def anomaly() -> Path:
    """One card's temperature over four short days, what was expected, and the score; its cooling fails for ten minutes."""
    hours, begin, length = 24.0, 1290, 10
    fleet, celsius = series(
        hours, "temperature_celsius", nodes=1, seed=7, faults=(f"thermal@{begin}m+{length}m",), diurnal_period_seconds=21600
    )
    values = celsius[:, fleet.faults[0].cards[0]]
    table, options = Table(), ensemble.Options()
    ensemble.define(table, 1, options)
    row = np.array([table.new_row()], np.intp)
    found = [
        ensemble.score(table, row, np.array([STARTED_AT_NS + (n + 1) * 10 * SECOND_NS]), np.array([[value]]), options)
        for n, value in enumerate(values)
    ]
    low, high, news, lasting = (np.array([getattr(f, name)[0, 0] for f in found]) for name in ("low", "high", "score", "lasting"))
    at = np.arange(1, len(values) + 1) / 360
    figure, axes = sheet(2, height=4.4, sharex=True, height_ratios=(3, 2))
    above, below = axes[:, 0]
    above.fill_between(*thinned(at, low, high), color=PALE, alpha=0.5, linewidth=0, label="expected")
    above.plot(*spiky(at, values), color=BLUE, label="temperature")
    span(above, begin / 60, (begin + length) / 60, "cooling fails")
    above.set_ylabel("°C")
    above.set_ylim(np.nanmin(values) - 4, np.nanmax(values) + 6)
    above.legend(loc="upper left")
    above.set_title("A card through four short days (6 h each), and a fault: what is new in the first is usual later")
    below.plot(*spiky(at, lasting), color=SKY, label="lasting: for how long a finding stands")
    below.plot(*spiky(at, news), color=BLUE, label="news")
    level(below, 0.5, "0.5")
    odd = np.flatnonzero(news >= 0.5)
    for n in odd[np.diff(odd, prepend=-1000) > 100]:
        below.text(at[n], 0.94, ensemble.DETECTORS[int(found[n].detector[0, 0])], fontsize=7, ha="center", rotation=45, color=RED)
    below.set_ylim(0, 1)
    below.set_ylabel("score")
    below.set_xlabel("hours")
    below.legend(loc="upper right", bbox_to_anchor=(0.86, 1.0))
    return save(figure, "detect-anomaly")


def burst() -> Path:
    """Two counters: what each grew by in a minute, and the score. What bursts is said at once, what creeps in minutes."""
    hours, begin, length = 4.0, 150, 40
    figure, axes = sheet(2, 2, height=3.8, sharex=True, sharey="row", height_ratios=(3, 2))
    scenes = (
        ("pcie_replays", "pcie_replays", "PCIe replays: a burst"),
        ("ecc_growth", "ecc_corrected_volatile_errors", "corrected errors that creep up"),
    )
    for (above, below), (fault, metric, title) in zip(axes.T, scenes, strict=True):
        fleet, counts = series(hours, metric, 60, nodes=1, seed=7, faults=(f"{fault}@{begin}m+{length}m",))
        counter = counts[:, fleet.faults[0].cards[0]]
        table, options = Table(), bursts.Bursts()
        bursts.define(table, 1)
        row, epoch = np.array([table.new_row()], np.intp), np.ones(1, np.int64)
        score = np.array(
            [
                bursts.score(table, row, np.array([STARTED_AT_NS + (n + 1) * 60 * SECOND_NS]), epoch, np.array([[value]]), options).score[
                    0, 0
                ]
                for n, value in enumerate(counter)
            ]
        )
        minutes = np.arange(1, len(counter) + 1)
        above.bar(minutes[1:], np.diff(counter), width=1.0, color=BLUE)
        span(above, begin, begin + length)
        above.set_title(title)
        below.plot(minutes, score, color=BLUE)
        below.set_ylim(0, 1)
        below.set_xlim(100, minutes[-1])
        below.axhline(0.5, color=RED, linestyle="--", linewidth=1)
        below.set_xlabel("minutes")
    axes[0, 0].set_ylabel("growth a minute")
    axes[1, 0].set_ylabel("score")
    return save(figure, "detect-burst")


def peers() -> Path:
    """The cards of a node under load; one is slow, and says nothing of it."""
    begin, length = 60, 60
    story = play(140 * 60, ["sm_clock_hertz", "power_watts"], nodes=1, seed=7, faults=(f"slow_card@{begin}m+{length}m",))
    card = story.card()
    about = [f for f in story.about(card) if f.rule == "slow_card"]
    figure, axes = sheet(2, height=4.2, sharex=True)
    for plot, metric, unit, name in ((axes[0, 0], "sm_clock_hertz", 1e9, "core clock, GHz"), (axes[1, 0], "power_watts", 1.0, "power, W")):
        minutes, lines = thinned(story.minutes, story.columns[metric].T / unit, points=140)
        busy = lines.mean(axis=1) > 0.5 * lines[card].mean()
        busy[card] = False
        plot.plot(minutes, lines[busy].T, color=PALE, linewidth=0.8)
        plot.plot(minutes, lines[card], color=BLUE)
        bounded = [f for f in about if f.active and f.metric == metric and f.HasField("expected_low")]
        expected = [(story.minute(f.observed_at_ns), f.expected_low / unit) for f in bounded]
        if len(expected) > 20:
            plot.plot(*zip(*expected, strict=True), ".", color=RED, markersize=2, label="least that its like makes likely")
            plot.legend(loc="center left")
        span(plot, begin, begin + length)
        plot.set_ylabel(name)
    raised = [story.minute(f.observed_at_ns) for f in about if f.active]
    for plot in axes[:, 0]:
        plot.axvline(raised[0], color=RED, linewidth=1)
        plot.axvline(story.minute(about[-1].observed_at_ns), color=RED, linewidth=1)
    axes[1, 0].set_xlabel("minutes")
    axes[0, 0].set_title(
        f"A card slower than its like for an hour: raised after {raised[0] - begin:.0f} min, cleared when it was over (red)"
    )
    return save(figure, "detect-peers")


def load() -> Path:
    """A rack that loses its cooling: all cards of a node alike, and for long none beyond a limit."""
    begin, length = 100, 14
    faults = (f"cooling_loss@{begin}m+{length}m:rack=r1",)
    story = play(135 * 60, ["temperature_celsius", "power_watts"], nodes=2, nodes_per_rack=2, seed=4, faults=faults)
    about = [f for f in story.findings if f.rule == "cooling_degraded" and f.active]
    card = next(d.number for d in story.fleet.layout.devices if about and about[0].entity == f"device/{d.uid}")
    figure, axes = sheet(2, height=4.2, sharex=True)
    for plot, metric, name in ((axes[0, 0], "temperature_celsius", "temperature, °C"), (axes[1, 0], "power_watts", "power, W")):
        minutes, lines = thinned(story.minutes, story.columns[metric].T, points=140)
        plot.plot(minutes, lines.T, color=PALE, linewidth=0.8)
        plot.plot(minutes, lines[card], color=BLUE)
        span(plot, begin, begin + length, "cooling fails" if plot is axes[0, 0] else "")
        plot.set_xlim(60, minutes[-1])
        plot.set_ylabel(name)
    mine = [f for f in about if f.entity == about[0].entity]
    expected = [(story.minute(f.observed_at_ns), f.expected_high) for f in mine]
    axes[0, 0].plot(*zip(*expected, strict=True), ".", color=RED, markersize=2, label="most that its power makes likely")
    level(axes[0, 0], 89, "slows down")
    axes[0, 0].legend(loc="center left")
    axes[0, 0].axvline(expected[0][0], color=RED, linewidth=1)
    axes[0, 0].set_title(
        f"{len({f.entity for f in about})} cards of a rack warm alike: raised after {expected[0][0] - begin:.0f} min (red)"
    )
    axes[1, 0].set_xlabel("minutes")
    return save(figure, "detect-load")


PICTURES: Final[dict[str, Callable[[], Path]]] = {
    "detect-anomaly": anomaly,
    "detect-burst": burst,
    "detect-peers": peers,
    "detect-load": load,
    "incident": incident,
}
