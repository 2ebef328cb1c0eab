"""One exporter as the plugin sees it: when to ask, what an answer or none means for its nodes, said once when it changes."""

from __future__ import annotations

import logging
from collections import Counter
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from collectors.contract import Env, NodeReading
from collectors.dcgm import parse
from collectors.dcgm.discovery import Target
from collectors.dcgm.fetch import Answer, Call, Unanswered
from collectors.dcgm.node import Node
from collectors.dcgm.page import Key, Page, Seen, sort
from collectors.events import device_event
from schemas import exposition
from schemas.dcgm import table
from schemas.identity import NodeRef
from schemas.telemetry import v1
from schemas.values import Reason

log = logging.getLogger("xpulse.agent")

NO_BOOT_ID: Final = "dcgm"
"""Boot id of nodes that the agent does not run on."""

_OLDEST_NS: Final = 3600 * 10**9
_ENERGIES: Final = frozenset(row.name for row in table().rows if row.metric == "energy_joules")


@dataclass(slots=True)
class Taken:
    """What the exporters gave in one read."""

    readings: list[NodeReading] = field(default_factory=list)
    events: list[v1.DeviceEvent] = field(default_factory=list)
    rejects: Counter[tuple[str, str]] = field(default_factory=Counter)


@dataclass(slots=True)
class Exporter:
    """`due_at` and every `at` are the monotonic clock in seconds. `owners` says which exporter speaks for a node: the first that did."""

    target: Target
    env: Env
    owners: dict[NodeRef, str]
    due_at: float = 0.0
    call: Call | None = None
    future: Future[Answer] | None = None
    slow_owed: bool = True
    trouble: str = ""
    nodes: dict[NodeRef, Node] = field(default_factory=dict)
    _wait_seconds: float = 0.0
    _energies: tuple[tuple[Key, float], ...] = ()
    _moved_at: float = 0.0

    def answered(self, answer: Answer, taken: Taken, at: float, *, interval_seconds: float, frozen_seconds: float) -> None:
        """A page came."""
        self.due_at, self._wait_seconds = max(self.due_at + interval_seconds, at), 0.0
        found = exposition.parse(answer.body, openmetrics=answer.openmetrics or None)
        page = sort(found)
        taken.rejects.update({("dcgm_line", problem): n for problem, n in found.counts.items()})
        taken.rejects.update({("dcgm_line", problem): n for problem, n in page.left_out.items()})
        if answer.cut:
            taken.rejects[("dcgm_line", "too_large")] += 1
        if not page.devices:
            self._fail("its page has no GPU: not dcgm-exporter, or it cannot reach DCGM", "error", taken, answer.taken_at_ns)
            return
        if self._stands_still(page, at, frozen_seconds):
            why = f"its energy counters have stood still for {frozen_seconds:g} s: restart dcgm-exporter and nv-hostengine"
            self._fail(why, "stale", taken, answer.taken_at_ns)
            return
        told_at_ns = _own_time(page, answer.taken_at_ns)
        slow, self.slow_owed = self.slow_owed, False
        for ref, devices in self._by_node(page).items():
            if self.owners.setdefault(ref, self.target.url) != self.target.url:
                taken.rejects[("dcgm_line", "node_told_by_another")] += 1
                continue
            node = self.nodes.get(ref)
            if node is None:
                own = ref == self.env.node
                node = self.nodes[ref] = Node(ref, self.env.boot_id if own else NO_BOOT_ID)
            understood = node.understand(parse.instances(devices), told_at_ns, slow=slow)
            taken.readings.append(understood.reading)
            taken.events += understood.events
            taken.rejects.update(understood.rejects)
        self._recover(taken, answer.taken_at_ns)

    def failed(self, why: Unanswered, taken: Taken, at: float, now_ns: int, *, interval_seconds: float, most_seconds: float) -> None:
        """No page came: its devices are absent, and it is asked again later and later."""
        self._wait_seconds = min(most_seconds, max(1.0, interval_seconds, 2 * self._wait_seconds))
        self.due_at = at + self._wait_seconds
        self._fail(str(why), "error", taken, now_ns)

    def passed_by(self, taken: Taken, now_ns: int, *, slow: bool) -> None:
        """The deadline came before its turn."""
        taken.readings += [node.absent("error", now_ns, slow=slow) for node in self.nodes.values()]

    def release(self) -> None:
        """It is no longer a target: its nodes are free for another."""
        for ref in [ref for ref, url in self.owners.items() if url == self.target.url]:
            del self.owners[ref]
        if self.call is not None:
            self.call.abort()

    def _fail(self, why: str, reason: Reason, taken: Taken, now_ns: int) -> None:
        slow, self.slow_owed = self.slow_owed, False
        if not self.trouble:
            log.warning("dcgm: %s: %s", self.target.shown, why)
            text = f"the exporter {self.target.shown} gives nothing: {why}"
            taken.events += [device_event(ref, "dcgm", "source_unavailable", now_ns, text) for ref in self._refs()]
            slow = True
        self.trouble = why
        taken.readings += [node.absent(reason, now_ns, slow=slow) for node in self.nodes.values()]
        taken.rejects[("dcgm_page", reason)] += 1

    def _recover(self, taken: Taken, now_ns: int) -> None:
        if self.trouble:
            self.trouble = ""
            text = f"the exporter {self.target.shown} answers again"
            taken.events += [device_event(ref, "dcgm", "recovered", now_ns, text, severity="info") for ref in self._refs()]

    def _refs(self) -> list[NodeRef]:
        return list(self.nodes) or [self._ref("")]

    def _ref(self, host: str) -> NodeRef:
        target = self.target
        if target.own:
            return self.env.node
        name = target.node or host or target.fallback or urlsplit(target.url).hostname or ""
        return NodeRef(target.cluster or self.env.node.cluster, name)

    def _by_node(self, page: Page) -> dict[NodeRef, dict[Key, Seen]]:
        found: dict[NodeRef, dict[Key, Seen]] = {}
        for key, seen in page.devices.items():
            found.setdefault(self._ref(key.host), {})[key] = seen
        return found

    def _stands_still(self, page: Page, at: float, frozen_seconds: float) -> bool:
        """A host engine that died leaves a page that stays as it is, with a healthy exporter before it (gpu-monitoring-tools#188)."""
        energies = tuple((key, value) for key, seen in page.devices.items() for name, value in seen.values.items() if name in _ENERGIES)
        if energies != self._energies or not energies:
            self._energies, self._moved_at = energies, at
        return at - self._moved_at >= frozen_seconds


def _own_time(page: Page, taken_at_ns: int) -> int:
    """The lines' own time where they have one (a federated page); one that is not of the last hour is no time."""
    newest = page.newest_ns
    return newest if newest is not None and 0 <= taken_at_ns - newest < _OLDEST_NS else taken_at_ns
