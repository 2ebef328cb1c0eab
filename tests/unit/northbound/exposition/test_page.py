"""The page as HTTP clients get it: names, formats, compression, token."""

from __future__ import annotations

import gzip

import pytest

from collectors.contract import NodeReading, Reading
from schemas.builder import SampleBuilder
from schemas.identity import NodeRef
from schemas.telemetry import v1
from xpulse.health import SelfMetric
from xpulse.listener import Answer, Request
from xpulse.northbound.exposition.journal import Journal
from xpulse.northbound.exposition.page import MetricsPage
from xpulse.northbound.latest import Latest
from xpulse.northbound.several import Several

NODE = NodeRef("c", "n")
S = 10**9


class Clock:
    now_ns = 100 * S

    def __call__(self) -> int:
        return self.now_ns


def page(token: str = "", clock: Clock | None = None, devices: int = 8) -> MetricsPage:
    latest = Latest(NODE, interval_ns=S, slow_interval_ns=60 * S)
    journal = Journal(NODE)
    samples = [
        SampleBuilder(f"nvidia:GPU-{n}", n).set("power_watts", 100.0 + n).info(v1.DeviceInfo(vendor="nvidia")).build()
        for n in range(devices)
    ]
    Several(latest, journal).observe("nvidia", Reading((NodeReading(100 * S, tuple(samples)),)))
    own = SelfMetric("xpulse_ready", "gauge", "1 when ready.", [({}, 1)])
    return MetricsPage(latest, journal, lambda: [own], token=token, now_ns=clock or Clock())


def ask(of: MetricsPage, parameters: dict[str, str] | None = None, **headers: str) -> Answer:
    return of(Request("GET", "/metrics", parameters or {}, {name.replace("_", "-"): value for name, value in headers.items()}))


def test_devices_and_the_agent_itself_are_on_one_page() -> None:
    answer = ask(page())
    assert answer.code == 200
    assert answer.content_type == "text/plain; version=0.0.4; charset=utf-8"
    text = answer.body.decode()
    assert "xpulse_device_power_watts{" in text
    assert text.endswith("xpulse_ready 1\n")


def test_openmetrics_where_it_is_wanted() -> None:
    answer = ask(page(), accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    assert answer.content_type == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert answer.body.endswith(b"xpulse_ready 1\n# EOF\n")
    assert answer.body.count(b"# EOF") == 1


def test_dcgms_names_are_text_whatever_is_accepted_and_hold_nothing_else() -> None:
    answer = ask(page(), {"names": "dcgm"}, accept="application/openmetrics-text")
    assert answer.content_type.startswith("text/plain; version=0.0.4")
    assert b"DCGM_FI_DEV_POWER_USAGE{" in answer.body
    assert b"xpulse" not in answer.body


def test_unknown_names_are_refused_with_those_there_are() -> None:
    answer = ask(page(), {"names": "nvml"})
    assert (answer.code, answer.body) == (400, b"names is one of xpulse, dcgm\n")


@pytest.mark.parametrize(
    ("accept_encoding", "packed"),
    [("gzip", True), ("deflate, GZIP;q=0.5", True), ("*", True), ("", False), ("gzip;q=0", False), ("gzip; q=0.0", False), ("br", False)],
)
def test_gzip_where_it_is_taken(accept_encoding: str, packed: bool) -> None:
    answer = ask(page(), accept_encoding=accept_encoding)
    assert (answer.headers.get("Content-Encoding") == "gzip") is packed
    text = gzip.decompress(answer.body) if packed else answer.body
    assert b"xpulse_device_power_watts" in text
    assert answer.headers["Vary"] == "Accept, Accept-Encoding"


def test_a_small_page_is_not_packed() -> None:
    assert "Content-Encoding" not in ask(page(devices=0), {"names": "dcgm"}, accept_encoding="gzip").headers


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer wrong", "Basic dG9rZW4=", "bearer token\u00e9"])
def test_without_the_token_there_is_nothing_to_read(given: str) -> None:
    of = page(token="token")
    answer = ask(of, authorization=given)
    assert answer.code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert b"token)" in answer.body
    assert b"xpulse_device" not in answer.body
    assert of.unauthorized == 1


@pytest.mark.parametrize("given", ["Bearer token", "bearer  token "])
def test_with_the_token(given: str) -> None:
    assert ask(page(token="token"), authorization=given).code == 200


# peers.md D43: nvitop#106: series remain after what they were of is gone; D51: gpu-monitoring-tools#188: stale metrics with /health OK.
def test_a_device_that_is_silent_vanishes() -> None:
    clock = Clock()
    of = page(clock=clock)
    clock.now_ns = 115 * S
    assert b"xpulse_device_power_watts{" in ask(of).body
    clock.now_ns = 117 * S
    assert b"xpulse_device" not in ask(of).body
    assert ask(of, {"names": "dcgm"}).body == b""


def test_scrapes_are_counted() -> None:
    of = page()
    ask(of)
    ask(of)
    ask(of, {"names": "dcgm"})
    assert {names: count for names, (count, _) in of.scrapes().items()} == {"xpulse": 2, "dcgm": 1}
    assert of.scrapes()["xpulse"][1] > 0
