"""The OTLP push in the agent: nothing of it where it is off, its own numbers where it is on, a clear end where it cannot be."""

from __future__ import annotations

import subprocess
import sys

import pytest

from collectors.stats import AgentStats
from schemas.device_state import FleetState
from schemas.identity import NodeRef
from xpulse.errors import UsageError
from xpulse.health import render
from xpulse.northbound.otlp.push import OtlpTotals
from xpulse.northbound.otlp.settings import Otlp
from xpulse.northbound.settings import Northbound
from xpulse.run import otlp
from xpulse.run.report import of_agent
from xpulse.settings import Settings

NODE = NodeRef("c", "n")


def settings(**given: object) -> Settings:
    return Settings(northbound=Northbound(otlp=Otlp.model_validate(given)))


def test_off_it_is_nothing() -> None:
    assert otlp.opened(settings(), NODE, FleetState, 0) is None
    report = of_agent(AgentStats(()), None, now_ns=0, fresh_ns=1)
    assert otlp.told(report, None) is report


def test_an_agent_that_does_not_push_loads_nothing_for_it() -> None:
    """80 MB are for the agent and its plugin together; gRPC alone is 10."""
    code = "import sys, xpulse.run.agent; print([m for m in sys.modules if m.split('.')[0] in ('grpc', 'opentelemetry') or 'otlp.p' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_on_it_tells_its_own_numbers() -> None:
    push = otlp.opened(settings(enabled=True, endpoint="http://127.0.0.1:1"), NODE, FleetState, 0)
    assert push is not None
    report = otlp.told(of_agent(AgentStats(()), None, now_ns=0, fresh_ns=1), push)
    assert report.detail["otlp"] == "delivering"
    assert "xpulse_otlp_points_sent_total 0\n" in render(report.metrics)
    push.close(0)


def test_every_number_is_told() -> None:
    totals = OtlpTotals(5, {"partial": 1}, {"queue_full": 2}, {"timeout": 3}, 4, 44, 9_500_000_000)
    lines = render(otlp.self_metrics(totals)).splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        "xpulse_otlp_points_sent_total 5",
        'xpulse_otlp_points_failed_total{reason="partial"} 1',
        'xpulse_otlp_points_dropped_total{reason="queue_full"} 2',
        'xpulse_otlp_retries_total{reason="timeout"} 3',
        "xpulse_otlp_waiting_points 4",
        "xpulse_otlp_waiting_bytes 44",
        "xpulse_otlp_last_success_timestamp_seconds 9.5",
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"headers_file": "/nonexistent/headers"}, "headers_file /nonexistent/headers cannot be read"),
        ({"endpoint": "https://x:1", "ca_file": "/nonexistent/ca.pem"}, "northbound.otlp.ca_file: /nonexistent/ca.pem"),
        ({"endpoint": "https://x:1", "ca_file": "/nonexistent/ca.pem", "protocol": "grpc"}, "northbound.otlp.ca_file: /nonexistent/ca.pem"),
    ],
    ids=["headers", "ca over http", "ca over grpc"],
)
def test_what_cannot_be_is_said_at_the_start(given: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        otlp.opened(settings(enabled=True, **given), NODE, FleetState, 0)
