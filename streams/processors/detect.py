"""The detect role: everything that was said in, Findings out; it knows nothing of episodes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from schemas import topics
from schemas.codec import decode, encode
from schemas.flow import DeadLetter, Emitted, Partition, Reader, Record, Rejected, Tick
from schemas.identity import device_entity, finding_key, node_key, partition_of
from schemas.telemetry import v1
from streams.operators.detect import events, explained, fleetwide, forecasts, restored, samples, services, silence
from streams.operators.detect.clocks import Clocks
from streams.operators.detect.columns import Taken
from streams.operators.detect.fleet import is_whole
from streams.operators.detect.labels import Labels
from streams.operators.detect.levels import LevelKey
from streams.operators.detect.roster import Removed, Roster, ended, ended_samples
from streams.operators.detect.samples import Standing, Times
from streams.operators.detect.scoring import Detectors
from streams.rules import load_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from google.protobuf.message import Message

    from streams.operators.detect.fleet import Device
    from streams.operators.detect.samples import Samples
    from streams.rules import Rule
    from streams.settings import Detect

FORGET_NS: Final = 24 * 3600 * 1_000_000_000
"""Devices, services and owners not heard of for so long are forgotten; nodes never are: they are missed until somebody says otherwise."""

_LOOK_NS: Final = 3600 * 1_000_000_000
_MAINTENANCE: Final = {
    v1.DeviceEventKind.DEVICE_EVENT_KIND_MAINTENANCE: True,
    v1.DeviceEventKind.DEVICE_EVENT_KIND_MAINTENANCE_ENDED: False,
}


_OF_A_NODE: Final = (v1.SampleBatch, v1.AttributedBatch, v1.DeviceEvent, v1.InferenceWindow, v1.Forecast, v1.PeerStats)


class DetectProcessor:
    """Holds the operators' states and hands each what it is for.

    Within one call labels (owner, context) are taken in first, then events and forecasts, then samples: what a finding is does not
    depend on that order, only how much is known of it. Times by a node's wrong clock are brought to the broker's before.
    `counters` says what was skipped and why, by the name of the metric.
    """

    role: Final = "detect"
    inputs: Final = (
        topics.SAMPLES,
        topics.USAGE,
        topics.DEVICE_EVENTS,
        topics.CONTEXT_EVENTS,
        topics.INFERENCE,
        topics.FORECASTS,
        topics.INVENTORY,
        topics.PEER_STATS,
    )
    silent_rebuild: Final = True

    def __init__(
        self,
        rules: Sequence[Rule],
        *,
        detectors: Detectors,
        times: Times,
        silence_seconds: float,
        context_events: int,
        explain_seconds: float,
        rewind_seconds: float,
    ) -> None:
        self.rewind_seconds = rewind_seconds
        self.rules = tuple(rules)
        self._roster = Roster()
        self._is_mine: Callable[[str, str], bool] = lambda *_: False
        self._labels = Labels(context_events)
        self._clocks = Clocks()
        self._samples = samples.start(rules, detectors, times)
        self._services = services.start(rules, times)
        self._silence = silence.start(rules, silence_seconds, times)
        self._events = events.start(rules, times)
        self._forecasts = forecasts.start(rules, times)
        self._fleetwide = fleetwide.start(rules, detectors.peers, times)
        self._explained = explained.Explained(round(explain_seconds * 1e9), owners=self._owners)
        self._counts: Counter[str] = Counter()
        self._next_look_ns = 0
        labels, fleet = self._labels, self._samples.fleet
        self._samples.about = labels.about_device
        self._samples.owner = lambda d: labels.owner(d.node.cluster, d.node.name, d.uid)
        self._samples.standing = self._standing
        self._events.about = lambda event, entity: labels.about_event(event, entity, fleet)
        self._events.owner = lambda event: labels.owner(event.cluster, event.node, event.uid)
        self._forecasts.about = lambda forecast: labels.about_forecast(forecast, fleet)
        self._forecasts.owner = lambda forecast: labels.owner(forecast.cluster, forecast.node, forecast.uid)

    @classmethod
    def of(cls, settings: Detect, *, rebuild_seconds: float) -> DetectProcessor:
        """From the settings of the role and of all streams. Raises RulesError where the rules cannot be used."""
        return cls(
            load_rules(settings.rules),
            detectors=Detectors.every(settings.point_seconds, seasonal=settings.seasonal),
            times=Times(round(settings.repeat_seconds * 1e9), round(settings.valid_seconds * 1e9)),
            silence_seconds=settings.silence_seconds,
            context_events=settings.context_events_per_entity,
            explain_seconds=settings.explain_seconds,
            rewind_seconds=rebuild_seconds,
        )

    @property
    def counters(self) -> Counter[str]:
        """`samples_duplicate_total`, `samples_old_epoch_total`, `counter_went_back_total`, ..."""
        found = Counter(self._counts)
        found.update({f"samples_{name}_total": n for name, n in self._samples.counts.items() if name != "counter_went_back"})
        found["clocks_wrong"] = self._clocks.wrong()
        found["counter_went_back_total"] = self._samples.counts["counter_went_back"]
        found.update({f"inference_{name}_total": n for name, n in self._services.counts.items()})
        return found

    @property
    def dropped(self) -> Counter[str]:
        """What was left out, by reason: batches and windows taken in before, or that no service can be named for; `state_unreadable`,
        records that a restore could not read; `forgotten_node`, what was said of a node before `xpulse node forget` and read after;
        `…_forgotten`, what was known of an entity and made room for others."""
        found = Counter({f"sample_batch_{name}": n for name, n in self._samples.counts.items() if name != "counter_went_back"})
        found.update({f"inference_{name}": n for name, n in self._services.counts.items()})
        found["state_unreadable"] = self._counts["restore_rejected_total"]
        found["context_forgotten"] = self._labels.context.dropped + self._explained.events.dropped
        found["event_forgotten"] = self._events.ended_ns.dropped + self._events.raised_ns.dropped
        found["forecast_forgotten"] = self._forecasts.made_ns.dropped
        found["forgotten_node"] = self._counts["forgotten_node_total"]
        return +found

    @property
    def samples(self) -> Samples:
        """State of the operator on samples: a bench hands it columns that no message carried."""
        return self._samples

    @property
    def watched(self) -> tuple[int, int]:
        """Nodes and devices that are known."""
        return len(self._samples.fleet.nodes), len(self._samples.table)

    def restore(self, reader: Reader, owned: frozenset[Partition]) -> None:
        """Forget nodes of partitions that are no longer owned; learn those of the owned ones from the inventory (all its partitions: a
        device's key hashes elsewhere than its node's), what was done lately, and which findings stand from alert-state."""
        partitions = reader.partitions(topics.SAMPLES)
        mine = {p.partition for p in owned if p.topic == topics.SAMPLES}

        def is_mine(cluster: str, node: str) -> bool:
            return partition_of(node_key(cluster, node), partitions) in mine

        kept = {(n.cluster, n.name) for n in self._samples.fleet.nodes.values() if n.taken}
        for cluster, node in set(self._samples.fleet.nodes) | set(self._silence.nodes):
            if not is_mine(cluster, node):
                self._forget(cluster, node)
        devices, nodes, refused, self._roster = restored.inventory(reader)
        self._is_mine = is_mine
        for node_info in nodes:
            self._listed(node_info)
        for device_info in devices:
            self._listed(device_info)
        happened, unknown = restored.context(reader)
        for event in happened:
            self._labels.happened(event)
        explained.step(self._explained, happened)
        standing, unread = restored.standing(reader)
        self._counts["restore_rejected_total"] += refused + unknown + unread
        for finding in standing:
            if is_mine(finding.cluster, finding.node) and (finding.cluster, finding.node) not in kept:
                restored.seed(finding, self._samples, self._silence, self._events)

    def process(self, records: Sequence[Record]) -> Sequence[Emitted]:
        letters: list[Emitted] = []
        batches: list[Taken] = []
        heard: list[silence.Heard | silence.Excused] = []
        windows: list[v1.InferenceWindow] = []
        device_events: list[v1.DeviceEvent] = []
        foretold: list[v1.Forecast] = []
        told: list[v1.PeerStats] = []
        found: list[v1.Finding] = []
        for record in records:
            try:
                message = decode(record)
            except Rejected as rejected:
                letters.append(DeadLetter(record, rejected.reason))
                continue
            if record.topic == topics.INVENTORY:
                found += self._inventory(record, message)
                continue
            if self._is_past(record, message):
                self._counts["forgotten_node_total"] += 1
                continue
            match message:
                case v1.SampleBatch():
                    if not message.replayed:  # its way to the broker was as long as an outage
                        self._clocks.sent(message.cluster, message.node, message.sent_at_ns, record.timestamp_ns)
                    message.taken_at_ns = self._clocks.corrected(message.cluster, message.node, message.taken_at_ns)
                    batches.append(Taken(message, record.value))
                    heard.append(silence.Heard(message.cluster, message.node, record.timestamp_ns, message.simulated))
                case v1.AttributedBatch():
                    self._labels.used(message)
                case v1.DeviceEvent():
                    message.at_ns = self._clocks.corrected(message.cluster, message.node, message.at_ns)
                    device_events.append(message)
                    if (on := _MAINTENANCE.get(message.kind)) is not None:
                        heard.append(silence.Excused(message.cluster, message.node, message.source, on, record.timestamp_ns))
                case v1.ContextEvent():
                    self._labels.happened(message)
                    explained.step(self._explained, [message])
                case v1.InferenceWindow():
                    message.ended_at_ns = self._clocks.corrected(message.cluster, message.node, message.ended_at_ns)
                    windows.append(message)
                case v1.Forecast():
                    foretold.append(message)
                case v1.PeerStats():
                    told.append(message)
                case _:
                    letters.append(DeadLetter(record, f"detect does not read {record.topic}"))
        found += silence.step(self._silence, heard)[1]
        found += events.step(self._events, device_events)[1]
        found += forecasts.step(self._forecasts, foretold)[1]
        found += samples.step(self._samples, batches)[1]
        found += services.step(self._services, windows)[1]
        found += events.step(self._events, self._seen())[1]
        found += fleetwide.step(self._fleetwide, told)[1]
        return [*letters, *self._outs(found), *self._told()]

    def tick(self, tick: Tick) -> Sequence[Emitted]:
        found = silence.step(self._silence, [tick])[1]
        found += events.step(self._events, [tick])[1]
        found += forecasts.step(self._forecasts, [tick])[1]
        found += fleetwide.step(self._fleetwide, [tick])[1]
        if tick.at_ns >= self._next_look_ns:
            self._next_look_ns = tick.at_ns + _LOOK_NS
            self._counts["forgotten_devices_total"] += samples.forget_older(self._samples, tick.at_ns - FORGET_NS)
            self._counts["forgotten_services_total"] += services.forget_older(self._services, tick.at_ns - FORGET_NS)
            self._labels.forget_older(tick.at_ns - FORGET_NS)
        return list(self._outs(found))

    def _outs(self, found: Sequence[v1.Finding]) -> Iterable[Emitted]:
        """What is sent of what was found: with its place, and without what a context event explains."""
        for finding in found:
            self._labels.placed(finding)
        for finding in explained.step(self._explained, found)[1]:
            yield encode(topics.FINDINGS, finding_key(finding.rule, finding.entity), finding)

    def _told(self) -> Iterable[Emitted]:
        """What this process has to say of its devices to the one that compares those of a model."""
        stats, self._samples.stats = self._samples.stats, []
        for told in stats:
            yield encode(topics.PEER_STATS, f"{told.cluster}/{told.model}".encode(), told)

    def _standing(self, device: Device) -> Sequence[Standing]:
        """Rules of events and forecasts that stand for a device."""
        entity, cluster = device_entity(device.uid), device.node.cluster
        found = [Standing(e.rule.name) for e in self._events.rules if LevelKey(e.rule.name, cluster, entity) in self._events.levels]
        for rule, when in self._forecasts.rules:
            if LevelKey(rule.name, cluster, entity) in self._forecasts.levels:
                found.append(Standing(rule.name, when.metric))
        return found

    def _owners(self, finding: v1.Finding) -> Iterable[v1.Workload]:
        if not finding.entity.startswith("device/"):
            return ()
        return self._labels.lately(finding.cluster, finding.node, finding.entity.removeprefix("device/"))

    def _seen(self) -> list[events.Seen]:
        """For each finding that a sample would end: when its device, or its source, was last read."""
        found = []
        for key, level in self._events.levels.active.items():
            node = self._samples.fleet.nodes.get((key.cluster, level.finding.node))
            if node is None:
                continue
            uid = key.entity.removeprefix("device/") if key.entity.startswith("device/") else ""
            if uid:
                device = node.devices.get(uid)
                at_ns = 0 if device is None else int(self._samples.table["seen_ns"][device.row])
            else:
                at_ns = node.newest_ns.get(level.source, 0)
            found.append(events.Seen(key.cluster, node.name, uid, level.source, at_ns))
        return found

    def _inventory(self, record: Record, message: Message | None) -> list[v1.Finding]:
        """A record of the inventory. What it says of nodes of other processes is theirs to know."""
        if self._roster.known(record):
            return []
        if isinstance(message, v1.InventoryRecord):
            said = message.device if message.HasField("device") else message.node
            if not self._roster.is_past(said.cluster, said.node, record.timestamp_ns):
                self._listed(said)
            return []
        removed = self._roster.removed(record)
        return [] if removed is None else self._removed(removed)

    def _listed(self, said: v1.NodeInfo | v1.DeviceInfo) -> None:
        if not self._is_mine(said.cluster, said.node):
            return
        if isinstance(said, v1.DeviceInfo):
            device = self._samples.fleet.device(self._samples.fleet.node(said.cluster, said.node), said.uid)
            device.index, device.model, device.whole = said.index, said.model, is_whole(said)
        self._labels.listed(said)
        # a simulated node that was never heard is a fleet that is not simulated today, not an incident
        if not said.simulated:
            silence.step(self._silence, [silence.Expected(said.cluster, said.node)])

    def _removed(self, gone: Removed) -> list[v1.Finding]:
        """End what stands of the node or device, and know nothing of it any more; one that has spoken since is back already."""
        cluster, name, uid, at_ns = gone
        last, node = self._silence.nodes.get((cluster, name)), self._samples.fleet.nodes.get((cluster, name))
        if last is not None and (last.at_ns or 0) > at_ns:
            return []
        devices = [] if node is None else [d for d in node.devices.values() if uid in ("", d.uid)]
        entity = device_entity(uid) if uid else ""
        found = ended_samples(self._samples, devices, at_ns)
        for levels in (self._silence.levels, self._events.levels, self._forecasts.levels, self._fleetwide.levels):
            found += ended(levels, cluster, name, at_ns, entity)
        if not uid:
            self._forget(cluster, name)
        else:
            for device in devices:
                self._samples.fleet.forget_device(device)
        return found

    def _is_past(self, record: Record, message: Message | None) -> bool:
        """Whether it was said of a node before the inventory dropped it, and read only after."""
        if not self._roster.gone or not isinstance(message, _OF_A_NODE):
            return False
        return self._roster.is_past(message.cluster, message.node, record.timestamp_ns)

    def _forget(self, cluster: str, node: str) -> None:
        self._samples.fleet.forget(cluster, node)
        self._labels.forget(cluster, node)
        self._clocks.forget(cluster, node)
        self._silence.nodes.pop((cluster, node), None)
        for levels in (self._silence.levels, self._events.levels, self._forecasts.levels, self._fleetwide.levels):
            levels.forget(cluster, node)
