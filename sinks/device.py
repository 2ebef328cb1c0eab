"""Makes the points of a SampleBatch: what was read this tick, and in full samples what a device is; the hot path of a store."""

from __future__ import annotations

import json
from math import isfinite
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from schemas.catalogue import BY_NUMBER, CATALOGUE, FAST
from schemas.identity import vendor_of
from schemas.values import REASON_OF_NUMBER
from sinks.flatten import INT63, flatten
from sinks.identities import Device, Identities
from sinks.measurements import MEASUREMENTS
from sinks.points import Point, sane, tag
from sinks.table import Points, Table
from sinks.text import MAX_FIELD_CHARACTERS, clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from schemas.store import Scalar
    from schemas.telemetry import v1
    from sinks.thin import Thin

FEW: Final = 100
"""Fewer samples are read one by one: numpy's cost of each call is then not worth it. Taken over from detect, not measured here."""

_ALL: Final = tuple(m.name for m in CATALOGUE)
_FAST: Final = tuple(m.name for m in FAST)
# One call for all fields takes a sixth of the time of ListFields (20 µs for 20 fields); only a value that reads as 0 is asked for presence.
_READ_ALL: Final = attrgetter(*_ALL)
_READ_FAST: Final = attrgetter(*_FAST)
_INFO: Final = MEASUREMENTS["device"].columns["DeviceInfo"]
_HEAD: Final = {"seq": "sequence", "epoch": "agent_epoch"}
"""Fields that every point of a batch has, and what of the batch they are."""

_Tags = dict[str, tuple[str, ...]]


class Samples:
    """Batches with the bytes they were parsed from. Where they are many, plain samples are read from the bytes, all at once."""

    def __init__(self, batches: Sequence[tuple[v1.SampleBatch, bytes]]) -> None:
        self.batches = [batch for batch, _ in batches]
        self.thin: Thin | None = None
        if sum(len(batch.devices) for batch in self.batches) >= FEW:
            from sinks.thin import read  # numpy is needed by busy stores only

            heads = {name: [min(getattr(batch, of), INT63) for batch in self.batches] for name, of in _HEAD.items()}
            self.thin = read([raw for _, raw in batches], heads)

    def others(self) -> Iterator[tuple[int, v1.SampleBatch, v1.DeviceSample]]:
        """The samples to be read one by one, each with its number among all."""
        number = 0
        if self.thin is None:
            for batch in self.batches:
                for sample in batch.devices:
                    yield number, batch, sample
                    number += 1
            return
        others = iter(self.thin.others)
        other = next(others, None)
        for batch, count in zip(self.batches, self.thin.counts, strict=True):
            while other is not None and other < number + count:
                yield other, batch, batch.devices[other - number]
                other = next(others, None)
            number += count

    def uids(self) -> Iterator[tuple[v1.SampleBatch, list[str]]]:
        """Uids of each batch's devices."""
        start = 0
        for position, batch in enumerate(self.batches):
            if self.thin is None:
                yield batch, [sample.uid for sample in batch.devices]
            else:
                end = start + self.thin.counts[position]
                yield batch, self.thin.uids[start:end]
                start = end


class DevicePoints:
    """Turns batches into points; remembers the tags of each node's devices, as they are the same for years."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities
        self._tags: dict[tuple[str, str], _Tags] = {}
        self._version = identities.version

    def learn(self, samples: Samples) -> None:
        """Take the identities of full samples in."""
        for _, batch, sample in samples.others():
            if sample.full and sample.HasField("info"):
                self._identities.learn(Device(batch.cluster, batch.node, sample.uid), sample.info)

    def unknown(self, samples: Samples) -> set[Device]:
        """Devices whose identity is not known yet."""
        found = set()
        for batch, uids in samples.uids():
            tags = self._of_node(batch)
            for uid in uids:
                if uid not in tags and not self._tags_of(tags, device := Device(batch.cluster, batch.node, uid)):
                    found.add(device)
        return found

    def points(self, samples: Samples) -> tuple[Points, list[int]]:
        """One point per device, at its batch's `taken_at_ns`, and for each the position of its batch.

        Every identity must be known (`unknown`), every time possible.
        """
        series: list[tuple[str, ...]] = []
        times: list[int] = []
        batch_of: list[int] = []
        for position, (batch, uids) in enumerate(samples.uids()):
            tags = self._of_node(batch)
            series += [tags.get(uid) or self._named(tags, batch, uid) for uid in uids]
            times += [batch.taken_at_ns] * len(uids)
            batch_of += [position] * len(uids)
        single, order = [], []
        for i, batch, sample in samples.others():
            single.append(Point("device", series[i], _fields(batch, sample), times[i]))
            order.append(i)
        tables = []
        for names, who, columns in samples.thin.alike if samples.thin is not None else ():
            if len(who) == len(series):
                tables.append(Table("device", names, series, times, columns))
                return Points([], tables), batch_of
            tables.append(Table("device", names, [series[i] for i in who], [times[i] for i in who], columns))
            order += who
        return Points(single, tables), [batch_of[i] for i in order]

    def _named(self, tags: _Tags, batch: v1.SampleBatch, uid: str) -> tuple[str, ...]:
        found = self._tags_of(tags, Device(batch.cluster, batch.node, uid))
        if found is None:
            raise LookupError(f"{uid}: the identity is not known; ask unknown() first")
        return found

    def _of_node(self, batch: v1.SampleBatch) -> _Tags:
        if self._version != self._identities.version:
            self._tags.clear()
            self._version = self._identities.version
        return self._tags.setdefault((batch.cluster, batch.node), {})

    def _tags_of(self, tags: _Tags, device: Device) -> tuple[str, ...] | None:
        identity = self._identities.of(device)
        if identity is None:
            return None
        found = (tag(device.cluster), tag(device.node), tag(vendor_of(device.uid)), tag(device.uid), *identity)
        tags[device.uid] = found
        return found


def _fields(batch: v1.SampleBatch, sample: v1.DeviceSample) -> dict[str, Scalar]:
    head: dict[str, Scalar] = {name: min(getattr(batch, of), INT63) for name, of in _HEAD.items()}
    # slow fields travel in full samples only, and are stored with them only: nothing is to be remembered here
    names, values = (_ALL, _READ_ALL(sample)) if sample.full else (_FAST, _READ_FAST(sample))
    fields = _fitting(head | {name: value for name, value in zip(names, values, strict=True) if value or sample.HasField(name)})
    if sample.full or sample.absences:
        fields |= _full(batch, sample)
    if sample.vendor_metrics:
        fields["vendor_metrics"] = _extras(sample)
    return fields


def _fitting(fields: dict[str, Scalar]) -> dict[str, Scalar]:
    """Without NaN and infinities, and no integer above 63 bits; one look at all values in the usual case that nothing is wrong."""
    values = fields.values()
    if isfinite(sum(values)) and max(values) <= INT63:  # type: ignore[arg-type,operator]  # only numbers so far
        return fields
    return {name: min(v, INT63) if isinstance(v, int) else v for name, v in sane(fields).items()}


def _full(batch: v1.SampleBatch, sample: v1.DeviceSample) -> dict[str, Scalar]:
    absent = ((m.name, REASON_OF_NUMBER.get(a.reason, "error")) for a in sample.absences for n in a.field_number if (m := BY_NUMBER.get(n)))
    fields: dict[str, Scalar] = {"absent": ",".join(sorted(f"{name}={reason}" for name, reason in absent))}
    if not sample.full:
        return fields
    if sample.links:
        fields["links"] = _links(sample)
    fields |= {
        "index": sample.index,
        "driver_epoch": min(batch.driver_epoch, INT63),
        "interval_ns": min(batch.interval_ns, INT63),
        "simulated": batch.simulated,
    }
    texts = {"source": batch.source, "boot_id": batch.boot_id, "driver_version": sample.info.driver_version or batch.driver_version}
    fields |= {name: clean(text, MAX_FIELD_CHARACTERS) for name, text in texts.items() if text}
    return fields | sane(flatten(_INFO, sample.info))


def _links(sample: v1.DeviceSample) -> str:
    rows = [
        {field.name: value for field, value in link.ListFields() if not isinstance(value, float) or isfinite(value)}
        for link in sample.links
    ]
    return clean(json.dumps(rows, separators=(",", ":")), MAX_FIELD_CHARACTERS)


def _extras(sample: v1.DeviceSample) -> str:
    finite = {clean(name, 256): value for name, value in sample.vendor_metrics.items() if isfinite(value)}
    return clean(json.dumps(finite, sort_keys=True, separators=(",", ":")), MAX_FIELD_CHARACTERS)
