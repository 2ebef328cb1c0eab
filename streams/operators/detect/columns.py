"""Turns batches of samples into columns, once for all rules: row, time and one value per metric that some rule looks at."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from schemas.catalogue import BY_NAME
from schemas.telemetry import v1
from schemas.wire import FIXED32, FIXED64, LENGTH, VARINT, Buffer, Unusual
from streams.operators.detect.fleet import is_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from streams.operators.detect.fleet import Device, Fleet

FEW: Final = 100
"""Below this many devices reading message by message is as fast as reading bytes side by side (measured)."""

_WIRE: Final = {"float": FIXED32, "double": FIXED64, "uint32": VARINT, "uint64": VARINT, "bool": VARINT}
_DEVICES: Final = v1.SampleBatch.DESCRIPTOR.fields_by_name["devices"].number
_UID: Final = v1.DeviceSample.DESCRIPTOR.fields_by_name["uid"].number
_ABSENCES: Final = v1.DeviceSample.DESCRIPTOR.fields_by_name["absences"].number
_INFO: Final = v1.DeviceSample.DESCRIPTOR.fields_by_name["info"].number


class Taken(NamedTuple):
    """A batch, and the bytes it was parsed from where they are at hand: many are read faster from their bytes."""

    batch: v1.SampleBatch
    raw: bytes | None = None


class Columns(NamedTuple):
    """N device samples in the order they came. `values` (N, M) is NaN where not due; `absent` marks what was said to be absent.

    `batch` (N,) numbers the batches they came in; None: each node in one at most. `users` (N,): processes on each device, NaN where its
    batch had no list of them.
    """

    devices: list[Device]
    rows: NDArray[np.intp]
    at_ns: NDArray[np.int64]
    epoch: NDArray[np.int64]
    values: NDArray[np.float64]
    absent: NDArray[np.bool_] | None
    batch: NDArray[np.intp] | None = None
    users: NDArray[np.float64] | None = None


class _Read(NamedTuple):
    devices: list[Device]
    counts: list[int]
    values: NDArray[np.float64]
    gone: list[tuple[int, int]]


class Reader:
    """Reads the given metrics."""

    def __init__(self, metrics: Sequence[str]) -> None:
        self._pairs = tuple((name, column) for column, name in enumerate(metrics))
        self._of_number = {BY_NAME[name].number: (column, BY_NAME[name].wire) for name, column in self._pairs}
        self._wanted = frozenset((_UID, _ABSENCES, _INFO, *self._of_number))

    def read(self, taken: Sequence[Taken], fleet: Fleet) -> Columns:
        """Columns of all devices in the batches; devices that are new get a row in `fleet`."""
        read = self._from_bytes(taken, fleet) or self._from_messages(taken, fleet)
        infinite = np.isinf(read.values)
        absent = None
        if read.gone or infinite.any():
            absent = infinite
            for place, column in read.gone:
                absent[place, column] = True
            read.values[absent] = np.nan
        return Columns(
            devices=read.devices,
            rows=np.fromiter((d.row for d in read.devices), np.intp, len(read.devices)),
            at_ns=np.repeat(np.array([t.batch.taken_at_ns for t in taken], np.int64), read.counts),
            epoch=np.repeat(np.array([hash((t.batch.boot_id, t.batch.driver_epoch)) for t in taken], np.int64), read.counts),
            values=read.values,
            absent=absent,
            batch=np.repeat(np.arange(len(taken)), read.counts),
            users=_users(taken, read),
        )

    def _from_messages(self, taken: Sequence[Taken], fleet: Fleet) -> _Read:
        """Message by message. Measured: `HasField` 70 ns, reading a set field 150 ns, so only set fields are read."""
        devices: list[Device] = []
        counts: list[int] = []
        values: list[float] = []
        places: list[int] = []
        gone: list[tuple[int, int]] = []
        width, base = len(self._pairs), 0
        for batch, _ in taken:
            node = fleet.node(batch.cluster, batch.node)
            for sample in batch.devices:
                device = node.devices.get(sample.uid) or fleet.device(node, sample.uid)
                if device.index is None or sample.HasField("info"):
                    _identify(device, sample)
                gone += [(len(devices), column) for column in self._absent(sample)]
                devices.append(device)
                has = sample.HasField
                for name, column in self._pairs:
                    if has(name):
                        values.append(getattr(sample, name))
                        places.append(base + column)
                base += width
            counts.append(len(batch.devices))
        matrix = np.full(base, np.nan)
        matrix[places] = values
        return _Read(devices, counts, matrix.reshape(len(devices), width), gone)

    def _from_bytes(self, taken: Sequence[Taken], fleet: Fleet) -> _Read | None:
        """All messages side by side; None where they are few, their bytes are not at hand or not in a form that is known."""
        raws = [raw for _, raw in taken if raw is not None]
        if len(raws) < len(taken) or sum(len(batch.devices) for batch, _ in taken) < FEW:
            return None
        buffer = Buffer(raws)
        ends = np.cumsum([len(raw) for raw in raws])
        try:
            found = list(buffer.walk(np.concatenate(([0], ends[:-1])), ends, (_DEVICES,)))
            batch_of = np.concatenate([f.who for f in found])
            start = np.concatenate([f.position for f in found])
            size = np.concatenate([f.value for f in found]).astype(np.int64)
            order = np.argsort(start)
            batch_of, start, size = batch_of[order], start[order], size[order]
            fields = list(buffer.walk(start, start + size, self._wanted))
        except Unusual:
            return None
        values = np.full((len(start), len(self._pairs)), np.nan)
        uids: list[str] = [""] * len(start)
        special: set[int] = set()
        for field in fields:
            known = self._of_number.get(field.number)
            if known is not None:
                column, wire = known
                if field.wire == _WIRE[wire]:
                    values[slice(None) if field.everyone else field.who, column] = _number(field.value, wire)
            elif field.wire != LENGTH:
                continue
            elif field.number == _UID:
                spans = zip(
                    field.who.tolist(), field.position.tolist(), (field.position + field.value.astype(np.int64)).tolist(), strict=True
                )
                for i, a, b in spans:
                    uids[i] = buffer.raw[a:b].decode()
            else:
                special.update(field.who.tolist())
        counts = np.bincount(batch_of, minlength=len(taken)).tolist()
        return self._named(taken, fleet, uids, counts, values, special)

    def _named(
        self, taken: Sequence[Taken], fleet: Fleet, uids: list[str], counts: list[int], values: NDArray[np.float64], special: set[int]
    ) -> _Read:
        """Finds the devices; `special` samples, which carry absences or an identity, and new devices are read from their messages."""
        devices: list[Device] = []
        gone: list[tuple[int, int]] = []
        for (batch, _), count in zip(taken, counts, strict=True):
            node = fleet.node(batch.cluster, batch.node)
            known = node.devices
            first = len(devices)
            for place in range(first, first + count):
                device = known.get(uids[place]) or fleet.device(node, uids[place])
                if place in special or device.index is None:
                    sample = batch.devices[place - first]
                    if device.index is None or sample.HasField("info"):
                        _identify(device, sample)
                    gone += [(place, column) for column in self._absent(sample)]
                devices.append(device)
        return _Read(devices, counts, values, gone)

    def _absent(self, sample: v1.DeviceSample) -> list[int]:
        return [self._of_number[n][0] for absence in sample.absences for n in absence.field_number if n in self._of_number]


def _identify(device: Device, sample: v1.DeviceSample) -> None:
    device.index, device.model = sample.index, sample.info.model or device.model
    if sample.HasField("info"):
        device.whole = is_whole(sample.info)


def _users(taken: Sequence[Taken], read: _Read) -> NDArray[np.float64] | None:
    """How many processes each device has by the lists in these batches."""
    if not any(batch.processes_taken for batch, _ in taken):
        return None
    users = np.full(len(read.devices), np.nan)
    first = 0
    for (batch, _), count in zip(taken, read.counts, strict=True):
        if batch.processes_taken:
            on = Counter(process.device_uid for process in batch.processes)
            for place in range(first, first + count):
                uid = read.devices[place].uid
                users[place] = np.nan if uid in batch.processes_unknown else on[uid]
        first += count
    return users


def _number(raw: NDArray[np.uint64] | NDArray[np.uint32], wire: str) -> NDArray[np.float64]:
    number: NDArray[np.float64]
    match wire:
        case "float":
            number = raw.astype(np.uint32, copy=False).view(np.float32).astype(np.float64)
        case "double":
            number = raw.astype(np.uint64, copy=False).view(np.float64)
        case "uint32":
            number = (raw & np.uint64(0xFFFFFFFF)).astype(np.float64)
        case "bool":
            number = (raw != 0).astype(np.float64)
        case _:
            number = raw.astype(np.float64)
    return number


def rounds(rows: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Positions split so that no row is twice in one round and each row's positions keep their order over the rounds."""
    if len(rows) == 0:
        return []
    if len(rows) < FEW and len(set(rows.tolist())) == len(rows):
        return [np.arange(len(rows))]
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    first = np.ones(len(rows), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    if first.all():
        return [np.arange(len(rows))]
    starts = np.flatnonzero(first)
    nth = np.empty(len(rows), np.intp)
    nth[order] = np.arange(len(rows)) - np.repeat(starts, np.diff(starts, append=len(rows)))
    by_round = np.argsort(nth, kind="stable")
    return np.split(by_round, np.flatnonzero(np.diff(nth[by_round])) + 1)
