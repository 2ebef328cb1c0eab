"""`xpulse up`: decides what to run, runs it under the supervisor, shows it, and writes the summary."""

from __future__ import annotations

import ctypes
import json
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from schemas.store import Store
from schemas.topics import ALERT_STATE
from sinks.open import open_store, settle_store
from xpulse.bus.producer import Publisher
from xpulse.errors import UsageError
from xpulse.local.fakenvml import FakeDriver
from xpulse.local.lock import StackLock
from xpulse.local.plan import Options, Shape, Where
from xpulse.local.reseed import reseed
from xpulse.local.runfiles import forget
from xpulse.local.status import Poller
from xpulse.local.summary import not_stored, summarise
from xpulse.local.supervisor import Supervisor
from xpulse.local.tally import Epoch, Tally
from xpulse.local.watch import Watch
from xpulse.process import stop_on_signals
from xpulse.view.model import DeviceRow, Screen, alert_rows, device_rows, forecast_rows, stage_rows

if TYPE_CHECKING:
    from sinks.settings import Sinks
    from xpulse.bus.settings import Bus
    from xpulse.settings import Settings

log = logging.getLogger(__name__)

Show = Callable[[Screen], None]

DEFAULT_SHAPE: Final = Shape(1, 2, 8)
DRAIN_SECONDS: Final = 20.0
"""Longest wait, after the readings have ended, for the rest of the line to finish."""


def accelerator_library() -> str | None:
    """Name of the vendor library that can be loaded here; None where no accelerator's is installed."""
    for name in ("libnvidia-ml.so.1",):
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return name
    return None


def decide(settings: Settings, options: Options) -> tuple[Options, list[str]]:
    """Simulate where it was asked for, or where there is nothing real to watch; the notes say which and why."""
    if options.simulate:
        return options, []
    if options.fake_nvml:
        if options.faults:
            raise UsageError("--fault needs the simulated fleet: it does not go with --fake-nvml")
        return options, [
            f"{options.fake_nvml.count} fake {options.fake_nvml.profile} under the NVIDIA collector: all readings are simulated"
        ]
    others = {name for name, plugin in settings.collectors.plugins.items() if plugin.enabled} - {"nvidia", "kernel"}
    if others:  # somebody chose what to read
        if options.faults:
            raise UsageError("--fault needs --simulate 2x8 beside it: the plugins of the settings are read as they are")
        return options, []
    if accelerator_library() is None:
        note = (
            f"no accelerator library on this machine: a simulated fleet of {DEFAULT_SHAPE.nodes}x{DEFAULT_SHAPE.devices} devices is shown"
        )
        return replace(options, simulate=DEFAULT_SHAPE), [note]
    if options.faults:
        raise UsageError("--fault needs simulated devices: add --simulate 2x8")
    return options, []


class Run:
    """One `xpulse up` from start to summary."""

    def __init__(
        self, settings: Settings, options: Options, say: Callable[[str], None], screen: Callable[[bool], AbstractContextManager[Show]]
    ) -> None:
        self._open_screen = screen
        self._options, notes = decide(settings, options)
        self._settings = settings
        self._say = say
        self.notes: list[str] = []
        for note in notes:
            self._note(note)
        check_faults(self._options, settings.cluster or "local", time.time_ns())
        simulated = self._options.simulated
        fake = self._options.fake_nvml
        self._fake = FakeDriver.build(fake, settings.state()) if fake else None
        external = "brokers" in settings.bus.model_fields_set and not settings.bus.embedded
        self.started_at_ns = time.time_ns()
        self._where = Where(
            brokers=settings.bus.brokers,
            embedded=not external,
            store=settings.sinks.store if external else "sqlite",
            state=settings.state(),
            cluster=settings.cluster or "local",
            scenario_started_at_ns=self.started_at_ns if simulated else 0,
            extra=demo(settings) if simulated else {},
            agent=self._fake.environment() if self._fake else {},
        )
        self._began = time.monotonic()
        self._first_row_seconds: float | None = None
        self._ending = threading.Event()
        """Set by SIGUSR1: the run ends now as if --for had passed, with its drain and summary."""
        self._tally = Tally(detailed=self._options.for_seconds is not None)
        self._watch: Watch | None = None
        self._store: Store | None = None
        self._shown: list[DeviceRow] = []
        self._before: dict[str, tuple[float, int]] = {}

    def _note(self, text: str) -> None:
        self.notes.append(text)
        self._say(text)

    def run(self) -> int:
        """Until Ctrl-C or the end of --for. 0, or 1 where something was lost in a run that was counted."""
        with StackLock(self._where.state):
            forget(self._where.state)
            try:
                with self._fake.running(self._options.seed) if self._fake else nullcontext():
                    return self._locked()
            finally:
                forget(self._where.state)

    def _locked(self) -> int:
        stop = stop_on_signals()
        signal.signal(signal.SIGUSR1, lambda *_: self._ending.set())
        supervisor = Supervisor(self._settings, self._options, self._where, self._note)
        supervisor.on_new_bus = self._follow
        try:
            if not self._where.embedded:
                self._follow(self._where.brokers)
            supervisor.start(time.monotonic())
            poller = Poller(supervisor.ports())
            with self._open_screen(self._options.view) as show:
                self._loop(supervisor, poller, stop.wait, stop.is_set, show)
            poller.close()
            return self._finish(supervisor, interrupted=stop.is_set())
        finally:
            if self._watch:
                self._watch.close()
            seconds = supervisor.stop()
            self._say(f"everything stopped in {seconds:.1f} s")
            if self._store:
                self._store.close()
            settle_store(self._sinks(), self._where.state)

    def _follow(self, brokers: str) -> None:
        """Watch a bus that has come up. Where another was before it, give it back what the store knows, before any role starts."""
        again = self._watch is not None
        if self._watch:
            self._watch.close()
        bus = self._settings.bus.model_copy(update={"brokers": brokers, "embedded": self._where.embedded})
        if again:
            self._reseed(bus)
        self._watch = Watch(bus, self._tally)

    def _reseed(self, bus: Bus) -> None:
        publisher = Publisher(bus, bus.group("reseed"))
        try:
            outs = reseed(self._open(), time.time_ns())
            publisher.publish(outs)
            alerts = sum(out.topic == ALERT_STATE for out in outs)
            self._note(f"taken back from the store: {alerts} open alerts, {len(outs) - alerts} devices")
        except ConnectionError as error:
            self._note(f"the store does not answer, so open alerts are not taken back: {error}")
        finally:
            publisher.close()

    def _loop(
        self,
        supervisor: Supervisor,
        poller: Poller,
        wait: Callable[[float], bool],
        stopped: Callable[[], bool],
        show: Show,
    ) -> None:
        last_shown = 0.0
        while not stopped():
            now = time.monotonic()
            supervisor.step(now, rows=self._first_row_seconds is not None)
            for role, port in supervisor.ports().items():
                poller.set_port(role, port)
            if now - last_shown >= 1.0:
                last_shown = now
                show(self._screen(supervisor, poller, now))
            if self._ending.is_set() or (self._options.for_seconds is not None and now - self._began >= self._options.for_seconds):
                return
            wait(0.1)

    def _screen(self, supervisor: Supervisor, poller: Poller, now: float) -> Screen:
        now_ns = time.time_ns()
        devices = self._devices(now_ns)
        if devices and self._first_row_seconds is None:
            self._first_row_seconds = now - self._began
        by_uid = {(row.cluster, row.uid): row for row in devices}
        statuses = poller.latest()
        stages = stage_rows(supervisor.everything(), statuses, self._before, now)
        for name, status in statuses.items():
            then = self._before.get(name)
            if status and (then is None or now - then[0] >= 4.0):
                self._before[name] = (now, status.processed_total)
        assert self._watch is not None
        with self._watch.lock:
            return Screen(
                cluster=self._where.cluster,
                simulated=self._options.simulated,
                seconds=now - self._began,
                devices=devices,
                alerts=alert_rows(self._tally, now_ns, by_uid),
                forecasts=forecast_rows(self._tally, by_uid, now_ns),
                stages=stages,
                resolved_total=sum(n for (_, _, status), n in self._tally.transitions.items() if status == "resolved"),
                notes=self.notes,
                memory_bytes=sum(child.peak_pss_bytes for child in supervisor.everything()),
            )

    def _devices(self, now_ns: int) -> list[DeviceRow]:
        """The store's newest rows; what was shown last where it does not answer (its writer may not have made it yet)."""
        try:
            self._shown = device_rows(self._open(), now_ns)
        except ConnectionError as error:
            log.debug("the store does not answer", extra={"reason": str(error)})
        return self._shown

    def _open(self) -> Store:
        if self._store is None:
            self._store = open_store(self._sinks(), self._where.state)
        return self._store

    def _sinks(self) -> Sinks:
        return self._settings.sinks.model_copy(update={"store": self._where.store})

    def _finish(self, supervisor: Supervisor, *, interrupted: bool) -> int:
        """Let what was published until now go through to its end, with the agent still reading (a silent node would be a finding)."""
        if self._options.for_seconds is None:
            return 0
        assert self._watch is not None
        self._watch.drain(1.0)
        with self._watch.lock:
            counted = self._tally.snapshot()
        until = time.monotonic() + (0.0 if interrupted else DRAIN_SECONDS)  # Ctrl-C ends everything within 5 s
        missing = self._missing(counted)
        while time.monotonic() < until and (missing or not counted.all_joined()):
            supervisor.step(time.monotonic(), rows=True)
            time.sleep(0.5)
            with self._watch.lock:
                counted.joined, counted.owners = set(self._tally.joined), self._tally.owners.copy()
            missing = self._missing(counted)
        body = summarise(
            counted,
            missing=missing,
            children=supervisor.everything(),
            seconds_to_first_row=self._first_row_seconds,
            seconds=time.monotonic() - self._began,
            started_at_ns=self.started_at_ns,
            simulated=self._options.simulated,
            seed=self._options.seed if self._options.simulated else None,
            faults=self._options.faults,
            bus_restarts=supervisor.bus_restarts,
        )
        body["interrupted"] = interrupted
        self._write(body)
        return 1 if body["samples"]["missing"] and not interrupted else 0

    def _missing(self, counted: Tally) -> dict[Epoch, list[int]]:
        try:
            return not_stored(counted, self._open())
        except ConnectionError:  # nothing can be shown to be stored
            return {epoch: sorted(seen) for epoch, seen in counted.published.items()}

    def _write(self, body: dict[str, Any]) -> None:
        samples = body["samples"]
        self._say(
            f"published {samples['published']}, joined {samples['joined']}, stored {samples['stored']}, missing {samples['missing']}; "
            f"memory {body['peak_memory_total_bytes'] / 2**20:.0f} MiB"
        )
        if self._options.summary:
            text = json.dumps(body, indent=2, sort_keys=False) + "\n"
            if str(self._options.summary) == "-":
                sys.stdout.write(text)
            else:
                self._options.summary.parent.mkdir(parents=True, exist_ok=True)
                self._options.summary.write_text(text, encoding="utf-8")


def demo(settings: Settings) -> dict[str, str]:
    """Environment of a simulated stack: the forecaster's demo profile and quick slow fields, where the user set neither themselves."""
    from forecasting.settings import Forecasting, demo_profile

    found: dict[str, str] = {}
    if "slow_interval_seconds" not in settings.collectors.model_fields_set:
        found["XPULSE_COLLECTORS__SLOW_INTERVAL_SECONDS"] = "5"
    if settings.forecasting == Forecasting():
        profile, plain = demo_profile().model_dump(mode="json"), Forecasting().model_dump(mode="json")
        for name, value in profile.items():
            if value != plain[name]:
                found[f"XPULSE_FORECASTING__{name.upper()}"] = value if isinstance(value, str) else json.dumps(value)
    return found


def check_faults(options: Options, cluster: str, started_at_ns: int) -> None:
    """Raise UsageError where a fault names a card, node or rack that the simulated fleet does not have."""
    if not options.faults or options.simulate is None:
        return
    from collectors.simulated.fleet import Fleet
    from collectors.simulated.settings import Simulated

    shape = options.simulate
    simulated = Simulated(
        clusters=tuple(shape.cluster_names(cluster)),
        nodes=shape.nodes,
        devices_per_node=shape.devices,
        seed=options.seed,
        faults=options.faults,
    )
    try:
        Fleet(simulated, clusters=shape.cluster_names(cluster), started_at_ns=started_at_ns)
    except ValueError as error:
        raise UsageError(f"--fault: {error}") from None


def screen(view: bool) -> AbstractContextManager[Show]:
    """The live screen, or lines."""
    from xpulse.view.live import lines, live

    return live() if view else lines()


def run(
    settings: Settings,
    options: Options,
    say: Callable[[str], None],
    open_screen: Callable[[bool], AbstractContextManager[Show]] = screen,
) -> int:
    """Run until Ctrl-C or the end of --for; the exit code. `open_screen` shows each Screen (docs/screenshot.py keeps them)."""
    return Run(settings, options, say, open_screen).run()


__all__ = ["Run", "check_faults", "decide", "demo", "run", "screen"]
