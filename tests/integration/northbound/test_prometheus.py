"""The agent's page as a real Prometheus takes it: linted, scraped in both sets of names, and every value the one that the page has."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.exposition import parse
from tests.fakes import nvml
from tests.fakes.nvml.fixtures import fake_nvml_library
from tests.integration.servers.fixtures import give_up
from tests.integration.servers.ports import free_ports
from tests.integration.servers.prometheus import PrometheusServer, lint
from tests.integration.servers.toolchain import Missing

__all__ = ["fake_nvml_library"]
pytestmark = [pytest.mark.integration, pytest.mark.slow]
TOKEN = "a-token-of-this-test"
Series = tuple[str, tuple[tuple[str, str], ...]]


class Agent:
    """`xpulse agent` without a bus, on three fake boards of which one is cut into instances."""

    def __init__(self, folder: Path, library: Path) -> None:
        (self.port,) = free_ports(1)
        self.state = nvml.State(folder / "nvml.json", "h100", count=3)
        self.state.mig(2, ["3g.40gb", "1g.10gb"])
        kept = {k: v for k, v in os.environ.items() if not k.startswith("XPULSE_")}
        settings = {
            "LD_LIBRARY_PATH": str(library.parent),
            nvml.STATE_VARIABLE: str(self.state.path),
            "XPULSE_NORTHBOUND__KAFKA": "false",
            "XPULSE_NORTHBOUND__EXPOSITION__TOKEN": TOKEN,
            "XPULSE_STATE_DIR": str(folder / "state"),
            "XPULSE_CLUSTER": "prod-a",
            "XPULSE_NODE": "gpu-7",
            "XPULSE_HEALTH__PORT": str(self.port),
            "XPULSE_COLLECTORS__PLUGINS": '{"nvidia": {"settings": {"processes": false, "pci_check": false}}}',
        }
        self._process = subprocess.Popen([sys.executable, "-m", "xpulse.cli.main", "agent"], env=kept | settings, cwd=folder)

    def page(self, path: str = "/metrics", accept: str = "text/plain") -> str:
        headers = {"Accept": accept, "Authorization": f"Bearer {TOKEN}"}
        with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers), timeout=10) as reply:
            return str(reply.read(), "utf-8")

    def until_it_reads(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert self._process.poll() is None, "the agent ended"
            try:
                if "xpulse_device_sm_active_ratio{" in self.page():  # activity comes with the second read
                    return
            except (OSError, urllib.error.URLError):
                pass
            time.sleep(0.2)
        pytest.fail("the agent did not read its cards in 60 s")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(20)


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory, fake_nvml_library: Path) -> Iterator[Agent]:
    made = Agent(tmp_path_factory.mktemp("agent"), fake_nvml_library)
    try:
        made.until_it_reads()
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def prometheus(agent: Agent) -> Iterator[PrometheusServer]:
    target = {"static_configs": [{"targets": [f"127.0.0.1:{agent.port}"]}], "authorization": {"credentials": TOKEN}}
    server = PrometheusServer([{"job_name": "xpulse", **target}, {"job_name": "dcgm", "params": {"names": ["dcgm"]}, **target}])
    try:
        server.start()
        deadline = time.monotonic() + 30
        while {t["health"] for t in server.targets()} != {"up"}:
            assert time.monotonic() < deadline, [(t["scrapePool"], t["health"], t["lastError"]) for t in server.targets()]
            time.sleep(0.3)
        yield server
    except Missing as missing:
        give_up(missing)
    finally:
        server.close()


def ours(page: str, prefix: str) -> dict[Series, float]:
    found = parse(page)
    assert not found.skipped, found.skipped
    return {(s.name, tuple(sorted(dict(s.labels).items()))): s.value for s in found.samples if s.name.startswith(prefix)}


def theirs(server: PrometheusServer, job: str, prefix: str) -> dict[Series, float]:
    rows = server.query(f'{{job="{job}", __name__=~"{prefix}.+"}}')
    own = ("__name__", "job", "instance")
    found = {}
    for row in rows:
        labels = tuple(sorted((k, v) for k, v in row["metric"].items() if k not in own))
        found[row["metric"]["__name__"], labels] = float(row["value"][1])
    return found


@pytest.mark.parametrize("path", ["/metrics", "/metrics?names=dcgm"])
def test_promtool_has_nothing_against_it(agent: Agent, path: str) -> None:
    try:
        complaint = lint(agent.page(path))
    except Missing as missing:
        give_up(missing)
    if "dcgm" in path:  # names, units and types are dcgm-exporter's: what promtool says of them it says of theirs
        complaint = "\n".join(line for line in complaint.splitlines() if not line.startswith("DCGM_"))
    assert complaint == ""


def of_one_reading(agent: Agent, server: PrometheusServer) -> tuple[dict[Series, float], dict[Series, float]]:
    """The page, and what Prometheus scraped of the same read of the devices."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        page, scraped = ours(agent.page(), "xpulse_device_"), theirs(server, "xpulse", "xpulse_device_")
        if _read_at(page) == _read_at(scraped):
            return page, scraped
        time.sleep(0.1)
    pytest.fail("in 30 s no scrape was of the reading that the page shows")


def _read_at(values: dict[Series, float]) -> dict[Series, float]:
    return {series: value for series, value in values.items() if series[0] == "xpulse_device_read_timestamp_seconds"}


def test_every_value_is_the_one_on_the_page(agent: Agent, prometheus: PrometheusServer) -> None:
    page, scraped = of_one_reading(agent, prometheus)
    assert len(page) > 400
    assert scraped.keys() == page.keys()
    assert {series: (value, scraped[series]) for series, value in page.items() if value != scraped[series]} == {}


def test_both_formats_say_the_same(agent: Agent) -> None:
    for _ in range(20):  # until both are of one reading
        text, open_metrics = agent.page(), agent.page(accept="application/openmetrics-text; version=1.0.0")
        if _read_at(ours(text, "xpulse_device_")) == _read_at(ours(open_metrics, "xpulse_device_")):
            break
    assert open_metrics.endswith("# EOF\n")
    assert "# EOF" not in text
    assert ours(text, "xpulse_device_") == ours(open_metrics, "xpulse_device_")


def test_dashboards_of_dcgm_exporter_find_its_series(agent: Agent, prometheus: PrometheusServer) -> None:
    page, scraped = ours(agent.page("/metrics?names=dcgm"), "DCGM_"), theirs(prometheus, "dcgm", "DCGM_")
    assert scraped == page
    for expression in (
        "avg(DCGM_FI_DEV_GPU_TEMP)",
        "sum(DCGM_FI_DEV_POWER_USAGE)",
        'DCGM_FI_DEV_FB_USED{gpu="0"} / (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE)',
        "sum(rate(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION[1m]))",
        'DCGM_FI_DEV_FB_USED{GPU_I_PROFILE="3g.40gb"}',
    ):
        deadline = time.monotonic() + 15  # a rate needs two scrapes
        while not (found := prometheus.query(expression)):
            assert time.monotonic() < deadline, expression
            time.sleep(0.5)
        assert found, expression


def test_a_lost_card_vanishes_from_the_next_scrape(agent: Agent, prometheus: PrometheusServer) -> None:
    uuid = next(dict(labels)["uid"] for _, labels in ours(agent.page(), "xpulse_device_power_watts"))
    assert prometheus.query(f'xpulse_device_power_watts{{uid="{uuid}"}}')
    for number in range(3):
        agent.state.lose(number, 15)
    try:
        deadline = time.monotonic() + 40
        while prometheus.query('xpulse_device_power_watts{job="xpulse"}'):
            assert time.monotonic() < deadline, f"{uuid} is lost, and Prometheus still has its power"
            time.sleep(0.5)
        lost = prometheus.query(f'xpulse_device_events_total{{uid="{uuid}", event="lost"}}')
        assert [float(row["value"][1]) for row in lost] == [1.0]
    finally:
        for number in range(3):
            agent.state.recover(number)


def test_without_the_token_there_is_nothing(agent: Agent) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"http://127.0.0.1:{agent.port}/metrics", timeout=10)
    with refused.value as answer:
        assert answer.code == 401
    with urllib.request.urlopen(f"http://127.0.0.1:{agent.port}/healthz", timeout=10) as reply:
        assert reply.status == 200
