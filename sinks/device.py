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
from sinks.points import Point, checked_time, sane, tag
from sinks.text import MAX_FIELD_CHARACTERS, clean

if TYPE_CHECKING:
    from schemas.store import Scalar
    from schemas.telemetry import v1

_ALL: Final = tuple(m.name for m in CATALOGUE)
_FAST: Final = tuple(m.name for m in FAST)
# One call for all fields takes a sixth of the time of ListFields (20 µs for 20 fields); only a value that reads as 0 is asked for presence.
_READ_ALL: Final = attrgetter(*_ALL)
_READ_FAST: Final = attrgetter(*_FAST)
_INFO: Final = MEASUREMENTS["device"].columns["DeviceInfo"]


_Tags = dict[str, tuple[str, ...]]


class DevicePoints:
    """Turns batches into points; remembers the tags of each node's devices, as they are the same for years."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities
        self._tags: dict[tuple[str, str], _Tags] = {}
        self._version = identities.version

    def learn(self, batch: v1.SampleBatch) -> None:
        """Take the identities of a batch's full samples in."""
        for sample in batch.devices:
            if sample.full and sample.HasField("info"):
                self._identities.learn(Device(batch.cluster, batch.node, sample.uid), sample.info)

    def unknown(self, batch: v1.SampleBatch) -> list[Device]:
        """Devices of the batch whose identity is not known yet."""
        tags = self._of_node(batch)
        devices = (Device(batch.cluster, batch.node, sample.uid) for sample in batch.devices if sample.uid not in tags)
        return [device for device in devices if not self._tags_of(tags, device)]

    def points(self, batch: v1.SampleBatch) -> list[Point]:
        """One point per device, at the batch's `taken_at_ns`. Every identity must be known (`unknown`).

        Raises Rejected for an impossible time.
        """
        time_ns = checked_time(batch.taken_at_ns)
        head: dict[str, Scalar] = {"seq": min(batch.sequence, INT63), "epoch": min(batch.agent_epoch, INT63)}
        tags = self._of_node(batch)
        found = []
        for sample in batch.devices:
            # slow fields travel in full samples only, and are stored with them only: nothing is to be remembered here
            names, values = (_ALL, _READ_ALL(sample)) if sample.full else (_FAST, _READ_FAST(sample))
            fields = head | {name: value for name, value in zip(names, values, strict=True) if value or sample.HasField(name)}
            fields = _fitting(fields)
            if sample.full or sample.absences:
                fields |= _full(batch, sample)
            if sample.vendor_metrics:
                fields["vendor_metrics"] = _extras(sample)
            series = tags.get(sample.uid) or self._tags_of(tags, Device(batch.cluster, batch.node, sample.uid))
            if series is None:
                raise LookupError(f"{sample.uid}: the identity is not known; ask unknown() first")
            found.append(Point("device", series, fields, time_ns))
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
    fields |= {
        "index": sample.index,
        "driver_epoch": min(batch.driver_epoch, INT63),
        "interval_ns": min(batch.interval_ns, INT63),
        "simulated": batch.simulated,
    }
    texts = {"source": batch.source, "boot_id": batch.boot_id, "driver_version": sample.info.driver_version or batch.driver_version}
    fields |= {name: clean(text, MAX_FIELD_CHARACTERS) for name, text in texts.items() if text}
    return fields | sane(flatten(_INFO, sample.info))


def _extras(sample: v1.DeviceSample) -> str:
    finite = {clean(name, 256): value for name, value in sample.vendor_metrics.items() if isfinite(value)}
    return clean(json.dumps(finite, sort_keys=True, separators=(",", ":")), MAX_FIELD_CHARACTERS)
