"""The node agent: one watched process per plugin, one loop that hears them all, and messages handed to the shell's publish."""

from __future__ import annotations

import contextlib
import logging
import platform
import selectors
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from collectors.addresses import Addresses
from collectors.child import end_all
from collectors.coverage import Coverage, priority
from collectors.doubles import Doubles
from collectors.epoch import next_epoch
from collectors.maintenance import Maintenance
from collectors.observer import Observer
from collectors.outlet import Outlet, Shared
from collectors.publisher import Publisher
from collectors.registry import Registered, chosen, installed
from collectors.settings import HOLD_NO_DRIVER, Collectors
from collectors.stats import AgentStats, Tally
from collectors.supervised import Limits, Stop, Supervised
from schemas.flow import Out
from schemas.identity import NodeRef
from schemas.telemetry import v1

log = logging.getLogger("xpulse.agent")

_POLL_SECONDS: Final = 0.25
"""How long the loop may sleep: the longest wait of a stop, a restart or a hang report."""

_STOOD_STILL_SECONDS: Final = 2.0
"""So long a round of the loop is none: the agent was stopped, or its machine."""

_STATS_SECONDS: Final = 1.0
_READS_NOTHING: Final = frozenset({"unavailable", "skipped"})


def run(
    settings: Collectors,
    node: NodeRef,
    publish: Callable[[Sequence[Out]], None] | None,
    *,
    stop: threading.Event,
    clock: Callable[[], int] = time.time_ns,
    on_stats: Callable[[AgentStats], None] = lambda stats: None,
    observer: Observer | None = None,
    requests: Mapping[str, Callable[[], str]] | None = None,
    state_dir: Path | None = None,
    plugins: Mapping[str, Registered] | None = None,
) -> int:
    """Read until `stop` is set; every plugin's process is gone when this returns, within 2 s of the stop.

    `publish` takes messages without blocking and raises schemas.flow.Busy where its queue is full: samples are then dropped and
    counted, events and inventory wait; None: there is no bus. `observer` hears readings and events too.
    `requests` (by the name of where they come from) say
    why the driver is to be let go, "" for no reason; they return at once. `state_dir` keeps which card sat
    at which PCI address, and what plugins keep.
    `clock` gives ns UTC. `on_stats` gets a snapshot each second and at the end. `plugins` are
    the installed ones unless given. Returns 0 after a stop, 1 where a source with on_unavailable: fail is unavailable, 2 where a
    plugin or its settings are wrong; raises collectors.registry.Misconfigured where `settings.plugins` names what is not installed.
    """
    info = node_info(node, settings.labels)
    shared = Shared(node, publish, clock, Addresses(node, state_dir / "addresses.json" if state_dir else None))
    if observer is not None:
        shared.observer = observer
    known = installed() if plugins is None else plugins
    priorities = {name: priority(name, settings.plugins[name].priority) for name in chosen(settings.plugins, known)}
    interval_ns = round(settings.interval_seconds * 1e9)
    shared.coverage, shared.doubles = Coverage(priorities, interval_ns=interval_ns), Doubles(interval_ns=interval_ns)
    epoch = next_epoch(clock(), state_dir / "epoch" if state_dir else None)
    supervised = _supervised(settings, info, shared, known, state_dir, epoch)
    asked = _Asked(Maintenance(settings.maintenance.max_seconds), dict(requests or {}))
    code = 0
    with selectors.DefaultSelector() as selector:
        try:
            _loop(supervised, selector, stop, on_stats, asked, shared)
        except Stop as ending:
            log.error("%s", ending)
            code = ending.code
        finally:
            end_all([child for one in supervised for child in one.children()])
    _pass_on(supervised, shared.doubles.flush())
    for one in supervised:
        one.outlet.end()
    on_stats(AgentStats(tuple(one.tally.snapshot() for one in supervised)))
    return code


@dataclass(slots=True)
class _Asked:
    """Who wants the driver."""

    maintenance: Maintenance
    requests: Mapping[str, Callable[[], str]]

    def now(self, at: float) -> str:
        for source, request in self.requests.items():
            self.maintenance.see(source, request(), at)
        for request_text in self.maintenance.overdue(at):
            log.warning("%s: nobody has ended it for %g s; the plugins come back", request_text, self.maintenance.max_seconds)
        return self.maintenance.stands(at)


def _loop(
    supervised: list[Supervised],
    selector: selectors.BaseSelector,
    stop: threading.Event,
    on_stats: Callable[[AgentStats], None],
    asked: _Asked,
    shared: Shared,
) -> None:
    stats_at = 0.0
    at = time.monotonic()
    while not stop.is_set():
        before, at = at, time.monotonic()
        wanted = asked.now(at)
        for one in supervised:
            one.rest(wanted, at, shared.clock())
            if one.start_if_due(at) and one.child is not None:
                selector.register(one.child.fd, selectors.EVENT_READ, one)
        for key, _ in selector.select(_POLL_SECONDS):
            one = key.data
            if not one.hear(time.monotonic()):
                selector.unregister(key.fd)
        at = time.monotonic()
        for one in supervised if at - before > _STOOD_STILL_SECONDS else ():
            one.stood_still(at - before, at)
        for one in supervised:
            fd = one.child.fd if one.child is not None else -1
            if one.hangs(at) or one.tries_again(at):
                selector.unregister(fd)
        shared.doubles.expected = any(one.tally.name == "kernel" and one.tally.state not in _READS_NOTHING for one in supervised)
        _pass_on(supervised, shared.doubles.due(shared.clock()))
        if at >= stats_at:
            stats_at = at + _STATS_SECONDS
            for one in supervised:
                one.outlet.retry()
            on_stats(AgentStats(tuple(one.tally.snapshot() for one in supervised)))


def _pass_on(supervised: list[Supervised], events: Sequence[v1.DeviceEvent]) -> None:
    """Events that waited go out where they came in; those of a plugin that calls its source otherwise go out all the same."""
    if not events:
        return
    by_name = {one.tally.name: one for one in supervised}
    for event in events:
        by_name.get(event.source, supervised[0]).outlet.send_events([event])


def _supervised(
    settings: Collectors, info: v1.NodeInfo, shared: Shared, known: Mapping[str, Registered], state_dir: Path | None, epoch: int
) -> list[Supervised]:
    interval_ns = round(settings.interval_seconds * 1e9)
    limits = Limits(settings.hang_seconds, settings.restart_min_seconds, settings.restart_max_seconds)
    found = []
    for name, registered in chosen(settings.plugins, known).items():
        plugin = settings.plugins[name]
        order = {
            "name": name,
            "target": registered.target,
            "settings": plugin.settings,
            "node": list(shared.node),
            "boot_id": info.boot_id,
            "agent_version": info.agent_version,
            "state_dir": str(state_dir) if state_dir else "",
            "interval_ns": interval_ns,
            "slow_every": max(1, round(settings.slow_interval_seconds / settings.interval_seconds)),
            "read_deadline_seconds": settings.read_deadline_seconds,
            "alive_seconds": min(1.0, settings.hang_seconds / 4),
        }
        publisher = Publisher(
            name,
            shared.node,
            agent_epoch=epoch,
            interval_ns=interval_ns,
            full_every=settings.full_every,
            boot_id=info.boot_id,
            node_info=info,
        )
        tally = Tally(name)
        releases = plugin.release_on_maintenance if plugin.release_on_maintenance is not None else name not in HOLD_NO_DRIVER
        outlet = Outlet(tally, publisher, shared)
        found.append(Supervised(order, plugin.on_unavailable, limits, outlet, tally, releases=releases))
    return found


def node_info(node: NodeRef, labels: Mapping[str, str]) -> v1.NodeInfo:
    """What is known of this host; what cannot be read (a serial needs root) is left empty."""
    return v1.NodeInfo(
        cluster=node.cluster,
        node=node.node,
        host_serial=_first_line("/sys/class/dmi/id/product_serial"),
        labels=labels,
        boot_id=_first_line("/proc/sys/kernel/random/boot_id"),
        agent_version=_version(),
        kernel=platform.release(),
    )


def _first_line(path: str) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text(errors="replace").strip()
    return ""


def _version() -> str:
    try:
        return version("xpulse")
    except PackageNotFoundError:  # run from a bare checkout
        return ""
