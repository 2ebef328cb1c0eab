"""The plugin against real HTTP: every way an exporter can fail stays its own, and is said once."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from collectors.contract import Env, NodeReading, Reading, Ready, Unavailable
from collectors.dcgm.plugin import Plugin, create
from collectors.worker import FAST, FAST_AND_SLOW
from schemas.identity import NodeRef
from schemas.telemetry import v1
from tests.fakes.exporter import FakeExporter, How, serving
from tests.unit.collectors.dcgm.pages import ENV, H100, MIG, UID, absences

Make = Callable[..., Plugin]
KIND = v1.DeviceEventKind


@pytest.fixture
def exporter() -> Iterator[FakeExporter]:
    with serving(FakeExporter(H100)) as fake:
        yield fake


@pytest.fixture
def make(exporter: FakeExporter) -> Iterator[Make]:
    made: list[Plugin] = []

    def one(env: Env = ENV, **settings: Any) -> Plugin:
        given = {"endpoints": [exporter.url]} if "file_sd" not in settings and "endpoints" not in settings else {}
        made.append(create({"interval_seconds": 0, "timeout_seconds": 1, **given, **settings}, env))
        return made[-1]

    yield one
    for plugin in made:
        plugin.close()


def read(plugin: Plugin, *, slow: bool = True, seconds: float = 30) -> Reading:
    return plugin.read(FAST_AND_SLOW if slow else FAST, time.monotonic() + seconds)


def kinds(reading: Reading) -> list[tuple[int, str]]:
    return [(event.kind, event.node) for event in reading.events if isinstance(event, v1.DeviceEvent)]


def of(reading: Reading, node: str) -> NodeReading:
    (only,) = [part for part in reading.samples if part.node is not None and part.node.node == node]
    return only


def until(plugin: Plugin, good: Callable[[Reading], bool]) -> Reading:
    """Read until a reading is good; what comes late comes with a later read."""
    for _ in range(400):
        reading = read(plugin)
        if good(reading):
            return reading
        time.sleep(0.01)
    raise AssertionError("never")


def test_probe_and_read(make: Make, exporter: FakeExporter) -> None:
    plugin = make()
    found = plugin.probe()
    assert isinstance(found, Ready)
    assert found.devices[0] == UID
    part = of(read(plugin), "gpu-node-1")
    assert [sample.uid for sample in part.samples] == list(found.devices)
    assert part.node == ENV.node
    assert part.boot_id == ENV.boot_id
    assert exporter.asked[0]["Accept-Encoding"] == "gzip"


def test_a_loopback_exporter_is_the_agents_own_node_whatever_it_calls_itself(make: Make) -> None:
    plugin = make(Env(NodeRef("c", "k8s-node"), "boot", "0.1", 10**9))
    assert of(read(plugin), "k8s-node").samples


def test_an_exporter_behind_another_address_may_be_the_agents_own(make: Make, exporter: FakeExporter) -> None:
    exporter.page = H100.replace("gpu-node-1", "dcgm-exporter-x7k2p")
    assert of(read(make(endpoints=[{"url": exporter.url, "own": True}])), "gpu-node-1").samples


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("slow_first_byte", "no answer within"),
        ("drip", "no answer within"),
        ("cut_short", "before its announced length"),
        ("closed", "closed connection"),
        ("redirect", "a redirect, which is not followed"),
        ("error", "503"),
        ("html", "no GPU"),
    ],
)
def test_an_exporter_that_fails_is_absent_with_one_event_and_recovers(make: Make, exporter: FakeExporter, how: How, says: str) -> None:
    plugin = make(timeout_seconds=0.2, retry_max_seconds=0.01)
    assert not read(plugin).events
    exporter.how = how
    failed = until(plugin, lambda reading: bool(reading.events))
    assert kinds(failed) == [(KIND.DEVICE_EVENT_KIND_SOURCE_UNAVAILABLE, "gpu-node-1")]
    assert says in failed.events[0].text  # type: ignore[union-attr]  # kinds() has seen that it is a DeviceEvent
    part = of(failed, "gpu-node-1")
    assert part.samples[0].uid == UID
    assert set(absences(part.samples[0]).values()) == {"error"}
    assert part.samples[0].info.model == "NVIDIA H100 80GB HBM3"
    until(plugin, lambda reading: bool(reading.samples) and not reading.events)
    exporter.how = "well"
    exporter.release.set()
    back = until(plugin, lambda reading: bool(reading.events))
    assert kinds(back) == [(KIND.DEVICE_EVENT_KIND_RECOVERED, "gpu-node-1")]
    assert of(back, "gpu-node-1").samples[0].HasField("power_watts")


def test_a_redirect_is_not_followed(make: Make, exporter: FakeExporter) -> None:
    with serving(FakeExporter(H100)) as other:
        exporter.how, exporter.location = "redirect", other.url
        found = make(bearer_token="s3cret").probe()
    assert isinstance(found, Unavailable)
    assert other.asked == []


def test_a_page_without_end_is_cut_at_its_limit(make: Make, exporter: FakeExporter) -> None:
    exporter.how = "endless"
    reading = read(make(most_bytes=100_000))
    assert reading.rejects["dcgm_line", "too_large"] == 1


def test_what_comes_before_the_limit_counts(make: Make, exporter: FakeExporter) -> None:
    exporter.page = H100 + "# " + "x" * 20_000 + "\n"
    reading = read(make(most_bytes=len(H100) + 100))
    assert len(of(reading, "gpu-node-1").samples) == 2
    assert reading.rejects["dcgm_line", "too_large"] == 1


def test_nobody_answers(make: Make) -> None:
    found = make(endpoints=["http://127.0.0.1:1/metrics", "http://127.0.0.1:2/metrics"]).probe()
    assert isinstance(found, Unavailable)
    assert "http://127.0.0.1:1/metrics" in found.reason
    assert "and 1 more" in found.reason
    assert found.retry_s == 30


def test_one_dead_exporter_delays_no_other(make: Make, exporter: FakeExporter) -> None:
    with serving(FakeExporter(MIG, how="slow_first_byte")) as dead:
        endpoints = [{"url": exporter.url, "node": "a"}, {"url": dead.url, "node": "b"}]
        plugin = make(endpoints=endpoints, timeout_seconds=0.2)
        until(plugin, lambda reading: bool(reading.events))
        dead_at = len(dead.asked)
        for _ in range(20):
            assert of(read(plugin), "a").samples[0].HasField("power_watts")
        assert len(dead.asked) == dead_at, "it is asked again later and later"


def test_bearer_token_and_basic_authentication(make: Make, exporter: FakeExporter, tmp_path: Path) -> None:
    exporter.authorization = "Bearer one"
    token = tmp_path / "token"
    token.write_text("two\n")
    plugin = make(bearer_token_file=str(token))
    found = plugin.probe()
    assert isinstance(found, Unavailable)
    assert "401" in found.reason
    assert "two" not in found.reason
    token.write_text("one\n")
    assert isinstance(plugin.probe(), Ready)
    exporter.authorization = "Basic dTpw"
    assert isinstance(make(username="u", password="p").probe(), Ready)
    token.unlink()
    missing = plugin.probe()
    assert isinstance(missing, Unavailable)
    assert "bearer_token_file" in missing.reason


def test_no_secret_is_in_what_is_said(make: Make, exporter: FakeExporter, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("hush\nhush")
    found = make(endpoints=[exporter.url + "?key=hush"], bearer_token_file=str(token)).probe()
    assert isinstance(found, Unavailable)
    assert "bearer_token" in found.reason
    assert "hush" not in found.reason
    assert exporter.asked == []


def test_past_the_deadline_every_device_is_listed_and_nothing_is_asked(make: Make, exporter: FakeExporter) -> None:
    plugin = make()
    read(plugin)
    asked = len(exporter.asked)
    late = read(plugin, slow=False, seconds=-1)
    assert set(absences(of(late, "gpu-node-1").samples[0]).values()) == {"error"}
    assert len(exporter.asked) == asked


def test_between_two_reads_of_an_exporter_nothing_is_said(make: Make, exporter: FakeExporter) -> None:
    plugin = make(interval_seconds=10)
    assert read(plugin).samples
    assert read(plugin).samples == ()
    assert len(exporter.asked) == 1


def test_an_interval_of_one_tick_is_one_tick(make: Make, exporter: FakeExporter) -> None:
    plugin = make(Env(ENV.node, "boot", "0.1", 10 * 10**9), interval_seconds=10)
    read(plugin)
    (one,) = plugin._exporters.values()
    one.due_at -= 6  # as if the next read came 6 s later, and 4 s too soon
    assert read(plugin).samples
    assert len(exporter.asked) == 2


def test_many_exporters_are_spread_over_the_interval(make: Make, exporter: FakeExporter, tmp_path: Path) -> None:
    address = exporter.url.removesuffix("/metrics")
    groups = [{"targets": [f"{address}/metrics?n={n}"], "labels": {"node": f"n{n}"}} for n in range(8)]
    file = tmp_path / "targets.json"
    file.write_text(json.dumps(groups))
    plugin = make(file_sd=str(file), interval_seconds=10, workers=2)
    assert len(read(plugin).samples) == 8
    due = [one.due_at - time.monotonic() for one in plugin._exporters.values()]
    assert all(-1 < at <= 10 for at in due)
    assert max(due) - min(due) > 2


def test_slow_fields_that_were_due_between_two_reads_come_with_the_next(make: Make) -> None:
    plugin = make(interval_seconds=1.0)
    read(plugin, slow=False)
    read(plugin, slow=True)
    time.sleep(1.05)
    part = of(read(plugin, slow=False), "gpu-node-1")
    assert part.samples[0].HasField("memory_total_bytes")


def test_many_exporters_by_file_sd_each_its_own_node(make: Make, tmp_path: Path) -> None:
    names = [f"node-{n}" for n in range(12)]
    with ExitStack() as stack:
        fakes = [stack.enter_context(serving(FakeExporter(H100.replace("gpu-node-1", name)))) for name in names]
        file = tmp_path / "targets.json"
        file.write_text(json.dumps([{"targets": [fake.url.split("/")[2] for fake in fakes], "labels": {"cluster": "west"}}]))
        plugin = make(file_sd=str(file), timeout_seconds=3)
        reading = read(plugin)
        assert {part.node for part in reading.samples} == {NodeRef("west", name) for name in names}
        assert {part.boot_id for part in reading.samples} == {"dcgm"}
        file.write_text(json.dumps([{"targets": [fakes[0].url.split("/")[2]], "labels": {"node": "mine"}}]))
        plugin._look_at = 0
        assert [part.node for part in read(plugin).samples] == [NodeRef("c", "mine")]
        file.write_text("[{")
        plugin._look_at = 0
        assert [part.node for part in read(plugin).samples] == [NodeRef("c", "mine")], "a broken file stands for what it said before"


def test_a_federated_page_has_many_nodes_and_its_own_time(make: Make, exporter: FakeExporter) -> None:
    at = time.time_ns() // 10**6 * 10**6 - 5 * 10**9
    lines = [line for page in (H100, MIG) for line in page.splitlines() if line[0] != "#"]
    exporter.page = "\n".join(f"{line} {at // 10**6}" for line in lines) + "\n"
    with serving(FakeExporter()):
        plugin = make(endpoints=[{"url": exporter.url, "cluster": "east"}])
        reading = read(plugin)
    assert {part.node for part in reading.samples} == {NodeRef("east", "gpu-node-1"), NodeRef("east", "gpu-node-2")}
    assert {part.taken_at_ns for part in reading.samples} == {at}


def test_two_exporters_of_one_node_are_read_once(make: Make, exporter: FakeExporter) -> None:
    with serving(FakeExporter(H100)) as twin:
        plugin = make(endpoints=[exporter.url, twin.url])
        reading = read(plugin)
        assert len(reading.samples) == 1
        assert reading.rejects["dcgm_line", "node_told_by_another"] == 1


def test_openmetrics_is_read_as_such(make: Make, exporter: FakeExporter) -> None:
    exporter.page = H100 + "# EOF\n"
    exporter.content_type = "application/openmetrics-text; version=1.0.0"
    assert len(of(read(make()), "gpu-node-1").samples) == 2


def test_after_close_nothing_is_held(make: Make) -> None:
    plugin = make()
    read(plugin)
    plugin.close()
    assert isinstance(plugin.probe(), Ready)
    assert read(plugin).samples


@pytest.mark.parametrize("how", ["error", "closed", "html", "cut_short"])
def test_an_exporter_that_keeps_failing_costs_no_file_descriptors(make: Make, exporter: FakeExporter, how: How) -> None:
    plugin = make(retry_max_seconds=0.01)
    read(plugin)
    exporter.how = how
    until(plugin, lambda reading: bool(reading.events))
    (one,) = plugin._exporters.values()
    asked, open_files = len(exporter.asked), descriptors()

    def asked_often(_: Reading) -> bool:
        one.due_at = 0.0
        return len(exporter.asked) >= asked + 20

    until(plugin, asked_often)
    assert descriptors() <= open_files + 4  # a request may be under way, both its ends in this process


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())
