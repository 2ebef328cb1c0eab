"""The agent with real processes: a plugin that hangs, dies, raises or has no source never stops another, and none is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from collectors import agent
from collectors.contract import OnUnavailable
from collectors.registry import Misconfigured, Registered
from collectors.settings import Collectors, PluginSettings
from collectors.stats import AgentStats, PluginStats
from schemas import topics
from schemas.codec import decode
from schemas.flow import Busy, Out, Record
from schemas.identity import NodeRef
from schemas.telemetry import v1
from tests.fakes import nvml
from tests.fakes.nvml.fixtures import fake_nvml_library

__all__ = ["fake_nvml_library"]
NODE = NodeRef("c", "n")
FAKES = {
    name: Registered(name, f"tests.fakes.plugins:{name}") for name in ("Fake", "Hangs", "Raises", "Dies", "Missing", "Shrinks", "Newer")
} | {"nvidia": Registered("nvidia", "collectors.nvidia.plugin:create")}
PATIENCE_SECONDS = 30.0


class Running:
    """An agent in a thread of this process, with everything it published."""

    def __init__(self, plugins: Mapping[str, PluginSettings], **settings: Any) -> None:
        self.outs: list[Out] = []
        self.stats = AgentStats(())
        self.code: int | None = None
        self.full = False
        self.asked = ""
        self._stop = threading.Event()
        quick = {"interval_seconds": 0.05, "hang_seconds": 3.0, "read_deadline_seconds": 1.0, "restart_min_seconds": 0.1}
        self._settings = Collectors(plugins=dict(plugins), **(quick | settings))
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self.code = agent.run(
            self._settings,
            NODE,
            self._publish,
            stop=self._stop,
            on_stats=self._on_stats,
            requests={"test": lambda: self.asked},
            plugins=FAKES,
        )

    def _publish(self, outs: Sequence[Out]) -> None:
        if self.full:
            raise Busy(1.0, "full")
        self.outs += outs

    def _on_stats(self, stats: AgentStats) -> None:
        self.stats = stats

    def until(self, happened: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not happened():
            if time.monotonic() > deadline:
                pytest.fail(f"it did not happen in {PATIENCE_SECONDS:g} s; events: {self.events()}, stats: {self.stats}")
            time.sleep(0.02)

    def messages(self, topic: str) -> list[Any]:
        return [decode(Record(o.topic, 0, 0, o.key, o.value, o.headers, 0)) for o in list(self.outs) if o.topic == topic]

    def batches(self, source: str) -> list[v1.SampleBatch]:
        return [batch for batch in self.messages(topics.SAMPLES) if batch.source == source]

    def events(self) -> list[tuple[str, str]]:
        return [
            (event.source, v1.DeviceEventKind.Name(event.kind).removeprefix("DEVICE_EVENT_KIND_").lower())
            for event in self.messages(topics.DEVICE_EVENTS)
        ]

    def plugin(self, name: str) -> PluginStats:
        return next(one for one in self.stats.plugins if one.name == name)

    def stop(self) -> float:
        """Seconds the stop took."""
        started = time.monotonic()
        self._stop.set()
        self._thread.join(PATIENCE_SECONDS)
        return time.monotonic() - started

    def wait_for_end(self) -> None:
        self._thread.join(PATIENCE_SECONDS)


@pytest.fixture
def started() -> Iterator[Callable[..., Running]]:
    agents: list[Running] = []

    def start(plugins: Mapping[str, PluginSettings], **settings: Any) -> Running:
        agents.append(Running(plugins, **settings))
        return agents[-1]

    yield start
    for one in agents:
        one.stop()


@pytest.fixture
def flag(tmp_path: Path) -> Path:
    path = tmp_path / "flag"
    path.touch()
    return path


def plugin(flag: Path | None = None, policy: OnUnavailable = "retry", **settings: Any) -> PluginSettings:
    return PluginSettings(on_unavailable=policy, settings=settings | ({} if flag is None else {"flag": str(flag)}))


def workers_of_this_process() -> set[int]:
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == os.getpid() and fields[0] != "Z" and b"collectors.worker" in (entry / "cmdline").read_bytes():
                    found.add(int(entry.name))
            except OSError:
                continue  # it ended meanwhile
    return found


def test_readings_arrive_numbered_and_the_stop_is_quick_and_leaves_no_process(started: Callable[..., Running]) -> None:
    running = started({"Fake": plugin()}, labels={"rack": "r7"})
    running.until(lambda: len(running.batches("Fake")) >= 5)
    seconds = running.stop()
    batches = running.batches("Fake")
    assert [batch.sequence for batch in batches] == list(range(len(batches)))
    assert len({batch.agent_epoch for batch in batches}) == 1
    assert batches[0].boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert [d.full for d in batches[0].devices] == [True, True]
    node = next(record.node for record in running.messages(topics.INVENTORY) if record.HasField("node"))
    assert node.labels == {"rack": "r7"}
    stats = running.plugin("Fake")
    assert (stats.state, stats.devices, stats.restarts, stats.dropped) == ("reading", 2, 0, {})
    assert stats.rejects["fan_ratio", "not_supported"] == 2 * stats.reads
    assert running.code == 0
    assert seconds < 2
    assert not workers_of_this_process()


def test_reads_are_aligned_to_the_interval(started: Callable[..., Running]) -> None:
    running = started({"Fake": plugin()}, interval_seconds=0.25)
    running.until(lambda: len(running.batches("Fake")) >= 4)
    late = [batch.taken_at_ns % 250_000_000 for batch in running.batches("Fake")[1:]]
    assert min(late) < 100_000_000


def test_a_hang_is_reported_and_ended_while_the_others_go_on(started: Callable[..., Running], flag: Path) -> None:
    running = started({"Hangs": plugin(flag), "Fake": plugin()})
    running.until(lambda: ("Hangs", "hang") in running.events())
    during = len(running.batches("Fake"))
    flag.unlink()
    running.until(lambda: ("Hangs", "recovered") in running.events())
    running.until(lambda: len(running.batches("Fake")) > during)
    assert during > 10
    assert [event for event in running.events() if event[0] == "Fake"] == []
    batches = running.batches("Hangs")
    assert [batch.sequence for batch in batches] == list(range(len(batches)))


def test_a_plugin_that_hangs_does_not_delay_the_stop(started: Callable[..., Running], flag: Path) -> None:
    running = started({"Hangs": plugin(flag)}, hang_seconds=20)
    running.until(lambda: len(running.batches("Hangs")) == 2)
    time.sleep(0.3)
    assert running.stop() < 2
    assert not workers_of_this_process()


@pytest.mark.parametrize(
    ("name", "reason"), [("Raises", "OSError: the bus is on fire"), ("Dies", "was killed by SIGSEGV")], ids=["raises", "segfault"]
)
def test_a_plugin_that_dies_is_reported_with_its_reason_and_started_again(
    started: Callable[..., Running], flag: Path, name: str, reason: str
) -> None:
    running = started({name: plugin(flag)})
    running.until(lambda: (name, "source_unavailable") in running.events())
    flag.unlink()
    running.until(lambda: (name, "recovered") in running.events() and running.plugin(name).state == "reading")
    assert reason in running.messages(topics.DEVICE_EVENTS)[0].text
    assert running.plugin(name).restarts >= 1


def test_an_unavailable_source_is_asked_again_and_reported_once(started: Callable[..., Running], flag: Path) -> None:
    running = started({"Missing": plugin(flag)})
    running.until(lambda: bool(running.stats.plugins) and running.plugin("Missing").state == "unavailable")
    assert running.plugin("Missing").reason == "no driver; load it"
    time.sleep(0.3)
    flag.unlink()
    running.until(lambda: len(running.batches("Missing")) > 2)
    assert running.events() == [("Missing", "source_unavailable"), ("Missing", "recovered")]


def test_a_source_that_may_be_missing_is_left_out(started: Callable[..., Running], flag: Path) -> None:
    running = started({"Missing": plugin(flag, "skip"), "Fake": plugin()})
    running.until(lambda: bool(running.stats.plugins) and running.plugin("Missing").state == "skipped")
    count = len(running.batches("Fake"))
    running.until(lambda: len(running.batches("Fake")) > count + 3)
    assert len(workers_of_this_process()) == 1


def test_a_source_that_must_be_there_ends_the_agent(started: Callable[..., Running], flag: Path, caplog: pytest.LogCaptureFixture) -> None:
    running = started({"Missing": plugin(flag, "fail"), "Fake": plugin()})
    running.wait_for_end()
    assert running.code == 1
    assert "collectors.plugins.Missing: no driver; load it (on_unavailable is fail)" in caplog.text
    assert not workers_of_this_process()


@pytest.mark.parametrize(
    ("plugins", "says"),
    [({"Newer": plugin()}, "speaks contract version 99"), ({"Fake": plugin(devises=1)}, "unknown key 'devises'")],
    ids=["contract", "settings"],
)
def test_what_a_restart_cannot_mend_ends_the_agent(
    started: Callable[..., Running], caplog: pytest.LogCaptureFixture, plugins: Mapping[str, PluginSettings], says: str
) -> None:
    running = started(plugins)
    running.wait_for_end()
    assert running.code == 2
    assert says in caplog.text


def test_an_unknown_plugin_is_refused_before_anything_starts() -> None:
    settings = Collectors(plugins={"nowhere": PluginSettings()})
    with pytest.raises(Misconfigured, match="no such plugin"):
        agent.run(settings, NODE, lambda outs: None, stop=threading.Event(), plugins=FAKES)


def test_a_vanished_device_is_told_and_its_return_too(started: Callable[..., Running], flag: Path) -> None:
    flag.unlink()
    running = started({"Shrinks": plugin(flag)})
    running.until(lambda: len(running.batches("Shrinks")) >= 2)
    flag.touch()
    running.until(lambda: ("Shrinks", "lost") in running.events())
    flag.unlink()
    running.until(lambda: ("Shrinks", "returned") in running.events())
    assert [event.uid for event in running.messages(topics.DEVICE_EVENTS)] == ["fake:1", "fake:1"]


def test_a_full_bus_drops_samples_keeps_events_and_sends_all_again(started: Callable[..., Running], flag: Path) -> None:
    flag.unlink()
    running = started({"Shrinks": plugin(flag)})
    running.until(lambda: len(running.batches("Shrinks")) >= 2)
    running.full = True
    flag.touch()
    running.until(lambda: running.plugin("Shrinks").dropped.get("bus_full", 0) > 3 and running.plugin("Shrinks").devices == 1)
    before = running.batches("Shrinks")[-1].sequence
    running.full = False
    running.until(lambda: running.batches("Shrinks")[-1].sequence > before)
    next_batch = next(batch for batch in running.batches("Shrinks") if batch.sequence > before)
    assert next_batch.sequence > before + 3
    assert next_batch.devices[0].full
    assert running.events() == [("Shrinks", "lost")]


def test_the_whole_agent_reads_a_card_through_its_library(
    started: Callable[..., Running], fake_nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = nvml.State(tmp_path / "nvml.state")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(fake_nvml_library.parent))
    monkeypatch.setenv(nvml.STATE_VARIABLE, str(state.path))
    running = started({"nvidia": plugin()})
    running.until(lambda: len(running.batches("nvidia")) > 2)
    state.set(_0__error=15)
    running.until(lambda: ("nvidia", "lost") in running.events())
    first = running.batches("nvidia")[0]
    assert first.devices[0].power_watts == pytest.approx(588.39)
    assert (first.driver_version, first.devices[0].info.model) == ("590.48.01", "NVIDIA H100 80GB HBM3")


def test_a_killed_agent_leaves_no_process(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"""
import pathlib, threading
from collectors import agent
from collectors.registry import Registered
from collectors.settings import Collectors, PluginSettings
from schemas.identity import NodeRef
flag = pathlib.Path({str(tmp_path / "flag")!r}); flag.touch()
settings = Collectors(interval_seconds=0.05, plugins={{"Hangs": PluginSettings(settings={{"flag": str(flag)}})}})
known = {{"Hangs": Registered("Hangs", "tests.fakes.plugins:Hangs")}}
def publish(outs):
    me = pathlib.Path("/proc/self/task")
    children = [c for t in me.iterdir() for c in (t / "children").read_text().split()]
    pathlib.Path({str(pids)!r}).write_text(" ".join(children))
agent.run(settings, NodeRef("c", "n"), publish, stop=threading.Event(), plugins=known)
"""
    path = os.pathsep.join([str(Path(__file__).parents[3]), *filter(None, [os.environ.get("PYTHONPATH")])])
    parent = subprocess.Popen([sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": path})
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (pids.exists() and pids.read_text().strip()):
            assert time.monotonic() < deadline, "the agent did not start its plugin"
            time.sleep(0.05)
        time.sleep(0.5)  # into the hang
        children = [int(pid) for pid in pids.read_text().split()]
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    deadline = time.monotonic() + 2
    while any(alive(pid) for pid in children):
        assert time.monotonic() < deadline, f"{children} outlived their agent"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def workers() -> list[int]:
    """Pids of the plugin processes of this test's agent."""
    own = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat, command = (folder / "stat").read_text(), (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if b"collectors.worker" in command and int(stat.rpartition(")")[2].split()[1]) == os.getpid():
            own.append(int(folder.name))
    return own


@pytest.mark.parametrize("number", [signal.SIGUSR2, signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_reaches_the_whole_service_ends_no_plugin_by_itself(started: Callable[..., Running], number: signal.Signals) -> None:
    """`systemctl kill -s SIGUSR2` signals every process of the cgroup: a plugin that holds no driver is to go on reading."""
    running = started({"Fake": PluginSettings()})
    running.until(lambda: len(running.batches("Fake")) > 2)
    before, (pid,) = len(running.batches("Fake")), workers()
    os.kill(pid, number)
    running.until(lambda: len(running.batches("Fake")) > before + 3)
    assert (workers(), running.events()) == ([pid], [])


def test_on_request_the_process_goes_and_comes_back_and_nothing_is_lost(started: Callable[..., Running]) -> None:
    running = started({"Fake": PluginSettings()})
    running.until(lambda: len(running.batches("Fake")) > 2)
    running.asked = "mig=pending"
    running.until(lambda: running.plugin("Fake").state == "maintenance")
    running.until(lambda: workers() == [])
    before = len(running.batches("Fake"))
    time.sleep(0.3)
    assert len(running.batches("Fake")) == before
    running.asked = ""
    running.until(lambda: len(running.batches("Fake")) > before)
    assert running.events() == [("Fake", "maintenance"), ("Fake", "maintenance_ended")]
    said = running.messages(topics.DEVICE_EVENTS)[0]
    assert said.text == "the driver was let go on request (test: mig=pending)"
    assert said.first_at_ns == said.at_ns <= said.last_at_ns


def test_a_request_nobody_ends_is_over_at_the_maximum(started: Callable[..., Running]) -> None:
    running = started({"Fake": PluginSettings()}, maintenance={"max_seconds": 0.5})
    running.until(lambda: len(running.batches("Fake")) > 1)
    running.asked = "forgotten"
    running.until(lambda: ("Fake", "maintenance_ended") in running.events())
    before = len(running.batches("Fake"))
    running.until(lambda: len(running.batches("Fake")) > before + 1)


def test_a_process_that_does_not_go_is_killed(started: Callable[..., Running], flag: Path) -> None:
    flag.touch()
    running = started({"Hangs": PluginSettings(settings={"flag": str(flag)})}, hang_seconds=60.0, read_deadline_seconds=1.0)
    running.until(lambda: len(running.batches("Hangs")) >= 2)
    time.sleep(0.2)
    running.asked = "now"
    running.until(lambda: workers() == [])
    assert [kind for _, kind in running.events()] == ["maintenance"]


def test_a_plugin_that_holds_no_driver_stays(started: Callable[..., Running]) -> None:
    running = started({"Fake": PluginSettings(release_on_maintenance=False)})
    running.until(lambda: len(running.batches("Fake")) > 1)
    running.asked = "now"
    before = len(running.batches("Fake"))
    running.until(lambda: len(running.batches("Fake")) > before + 3)
    assert running.events() == []
