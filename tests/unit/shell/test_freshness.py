"""Readiness is freshness: old readings with a good face were the defect of others (peers.md D51, D79)."""

from __future__ import annotations

from typing import Any

import pytest

from collectors.stats import AgentStats, PluginStats
from xpulse.health import render
from xpulse.run.freshness import readiness
from xpulse.run.report import SELF_METRICS, of_agent

S = 10**9
NOW = 1000 * S
LIMIT = 8 * S


def plugin(name: str = "nvidia", state: str = "reading", ago: float | None = 1, **more: Any) -> PluginStats:
    said: dict[str, Any] = {
        "reason": "",
        "devices": 8,
        "reads": 10,
        "read_seconds": 0.5,
        "last_read_seconds": 0.04,
        "ticks_skipped": 0,
        "restarts": 0,
        "rejects": {("fan_ratio", "not_supported"): 8},
        "dropped": {"bus_full": 2},
        **more,
    }
    return PluginStats(name=name, state=state, last_success_ns=0 if ago is None else NOW - round(ago * S), **said)  # type: ignore[arg-type]  # a State


KERNEL = plugin("kernel", devices=0)


@pytest.mark.parametrize(
    ("plugins", "ready", "words"),
    [
        ([], False, ""),
        ([plugin()], True, ""),
        ([plugin(), KERNEL], True, ""),
        ([KERNEL], True, ""),  # the only plugin that was wanted
        ([plugin(state="starting", ago=None)], False, "nvidia: starting"),
        # peers.md D51: gpu-monitoring-tools#188: the daemon restarts, metrics go stale, /health says OK
        ([plugin("dcgm", ago=60), plugin()], False, "dcgm: last success 60 s ago (reading)"),
        ([plugin(state="restarting", ago=12, reason="hangs")], False, "nvidia: last success 12 s ago (hangs)"),
        ([plugin(state="unavailable", ago=30, reason="driver unloaded"), KERNEL], False, "nvidia: last success 30 s ago (driver unloaded)"),
        # peers.md D79: coverage that never began is not hidden by a log reader that works
        ([plugin(state="unavailable", ago=None, reason="no driver"), KERNEL], False, "nvidia: no driver"),
        ([plugin("dcgm", "unavailable", ago=None, reason="no exporter"), plugin()], True, "dcgm: no exporter"),
        ([plugin(state="maintenance", ago=500, reason="lease file")], True, "nvidia: lease file"),
        ([plugin(state="maintenance", ago=500, reason="lease file"), KERNEL], True, "nvidia: lease file"),
        ([plugin("x", "skipped", ago=None, reason="not here"), plugin()], True, "x: not here"),
        ([plugin(ago=-3600)], True, ""),  # the clock was set back
    ],
)
def test_readiness(plugins: list[PluginStats], ready: bool, words: str) -> None:
    assert readiness(plugins, NOW, LIMIT) == (ready, words)


def test_an_agent_without_a_bus_is_ready_and_says_so() -> None:
    report = of_agent(AgentStats((plugin(),)), None, now_ns=NOW, fresh_ns=LIMIT)
    assert report.ready
    assert report.detail["delivery"] == "no bus: northbound.kafka is off"
    assert "xpulse_bus" not in render(report.metrics)


def test_an_agent_whose_loop_stands_still_is_not_ready() -> None:
    report = of_agent(AgentStats((plugin(),)), None, now_ns=NOW + 60 * S, fresh_ns=LIMIT)
    assert not report.ready
    assert report.why_not == "nvidia: last success 61 s ago (reading)"


def test_each_plugin_tells_duration_success_age_and_rejects() -> None:
    lines = render(of_agent(AgentStats((plugin(),)), None, now_ns=NOW, fresh_ns=LIMIT).metrics).splitlines()
    assert {
        'xpulse_plugin_up{plugin="nvidia"} 1',
        'xpulse_plugin_devices{plugin="nvidia"} 8',
        'xpulse_plugin_reads_total{plugin="nvidia"} 10',
        'xpulse_plugin_read_seconds_total{plugin="nvidia"} 0.5',
        'xpulse_plugin_last_read_seconds{plugin="nvidia"} 0.04',
        'xpulse_plugin_last_success_timestamp_seconds{plugin="nvidia"} 999',
        'xpulse_plugin_last_success_age_seconds{plugin="nvidia"} 1',
        'xpulse_plugin_rejects_total{metric="fan_ratio",plugin="nvidia",reason="not_supported"} 8',
        'xpulse_dropped_total{plugin="nvidia",reason="bus_full"} 2',
    } <= set(lines)


def test_a_plugin_that_never_read_has_no_time_of_success() -> None:
    text = render(of_agent(AgentStats((plugin(ago=None, state="starting"),)), None, now_ns=NOW, fresh_ns=LIMIT).metrics)
    assert "xpulse_plugin_last_success_age_seconds{" not in text


def test_counters_of_the_closed_list_end_in_total_and_gauges_do_not() -> None:
    assert {name: kind for name, (kind, _) in SELF_METRICS.items() if (kind == "counter") != name.endswith("_total")} == {}
