"""What the agent says of messages that do not get through."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import pytest

from xpulse.bus.totals import AgentTotals
from xpulse.health import render
from xpulse.run.delivery import catching_up, delivery_trouble
from xpulse.run.report import of_agent

SPOOLED: Final[Any] = {"spool_records": 5700, "spool_bytes": 12 * 2**20, "spool_limit_bytes": 512 * 2**20, "unacknowledged": 5705}


@pytest.mark.parametrize(
    ("totals", "words"),
    [
        (AgentTotals(), ""),
        (AgentTotals(unacknowledged=3), ""),
        (AgentTotals(**SPOOLED), ""),
        (AgentTotals(silent_seconds=95.2, **SPOOLED), "bus unreachable for 95 s; 5,700 messages spooled (12 MiB of 512 MiB)"),
        (
            AgentTotals(silent_seconds=95, spool_full_seconds=5400.0, **SPOOLED),
            "bus unreachable for 95 s; 5,700 messages spooled (12 MiB of 512 MiB, full in 90 min)",
        ),
        (
            AgentTotals(silent_seconds=95, spool_full_seconds=90_000.0, **SPOOLED),
            "bus unreachable for 95 s; 5,700 messages spooled (12 MiB of 512 MiB, full in 25 h)",
        ),
        (
            AgentTotals(silent_seconds=95, spool_full_seconds=0.0, **SPOOLED),
            "bus unreachable for 95 s; 5,700 messages spooled (12 MiB of 512 MiB, full)",
        ),
        (
            AgentTotals(silent_seconds=6, silent_why="1/1 brokers are down", unacknowledged=7),
            "bus unreachable for 6 s (1/1 brokers are down); 7 messages wait in memory",
        ),
        (
            AgentTotals(silent_seconds=6, unacknowledged=7, spool_trouble="no spool: it is a file"),
            "bus unreachable for 6 s; 7 messages wait in memory; no spool: it is a file",
        ),
        (
            AgentTotals(stuck={"t": "Unknown topic", "a": ""}, spool_records=1, spool_bytes=1_234_000, spool_limit_bytes=10**8),
            "the broker does not take a (no answer), t (Unknown topic); see: xpulse topics create; 1 messages spooled (1.2 MiB of 95 MiB)",
        ),
    ],
    ids=["nothing", "in-flight", "catching-up", "silent", "full-soon", "full-late", "full", "why", "no-spool", "stuck"],
)
def test_words(totals: AgentTotals, words: str) -> None:
    assert delivery_trouble(totals) == words


def test_catching_up_is_said_and_is_no_trouble() -> None:
    totals = AgentTotals(spool_oldest_seconds=61.4, **SPOOLED)
    assert catching_up(totals) == "sending 5,700 messages from the spool, the oldest 61 s old"
    assert catching_up(AgentTotals()) == ""
    assert of_agent(None, totals).detail["delivery"] == catching_up(totals)


def test_an_agent_whose_bus_is_away_is_not_ready_and_says_both_reasons() -> None:
    report = of_agent(None, AgentTotals(silent_seconds=95, **SPOOLED))
    assert not report.ready
    assert report.why_not == "bus unreachable for 95 s; 5,700 messages spooled (12 MiB of 512 MiB); no plugin has answered yet"


def test_every_number_of_the_spool_is_a_metric() -> None:
    totals = AgentTotals(
        silent_seconds=95,
        sent_twice=4,
        replayed=9,
        spool_oldest_seconds=90,
        spool_full_seconds=5400.0,
        failed=Counter(spool_full=3),
        spool_dropped_bytes=Counter(spool_full=999),
        **SPOOLED,
    )
    lines = render(of_agent(None, totals).metrics).splitlines()
    assert {
        "xpulse_bus_silent_seconds 95",
        "xpulse_bus_sent_twice_total 4",
        "xpulse_spool_records 5700",
        "xpulse_spool_bytes 12582912",
        "xpulse_spool_limit_bytes 536870912",
        "xpulse_spool_oldest_age_seconds 90",
        "xpulse_spool_full_in_seconds 5400",
        "xpulse_spool_replayed_records_total 9",
        'xpulse_spool_dropped_bytes_total{reason="spool_full"} 999',
        'xpulse_dropped_total{plugin="",reason="spool_full"} 3',
    } <= set(lines)
    assert not any("xpulse_spool" in line for line in render(of_agent(None, AgentTotals()).metrics).splitlines())
