"""Understands process lists: whether they can be true, what several lists say of one process, and what it did on average."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from collectors.nvidia.processes.calls import Activity, Entry, Use
from collectors.procfs.process import Process
from schemas.telemetry import v1
from schemas.values import NUMBER_OF_REASON, Absent, Reading, Reason

PID_MAX: Final = 4_194_304
"""PID_MAX_LIMIT of the kernel on 64 bits: a greater number is no process."""

_BIT: Final[dict[Use, int]] = {
    "compute": 1 << v1.ProcessUse.PROCESS_USE_COMPUTE,
    "graphics": 1 << v1.ProcessUse.PROCESS_USE_GRAPHICS,
    "mps": 1 << v1.ProcessUse.PROCESS_USE_MPS,
}
USAGE: Final = ("sm_utilization_ratio", "memory_utilization_ratio", "encoder_utilization_ratio", "decoder_utilization_ratio")
_NUMBER: Final = {field.name: field.number for field in v1.ProcessSample.DESCRIPTOR.fields}

Key = tuple[int, int | None, int | None]
"""Process id, GPU instance, compute instance."""


@dataclass(slots=True)
class Listed:
    """One process on one device, from all its lists."""

    pid: int
    memory_bytes: int | None
    gpu_instance: int | None
    compute_instance: int | None
    uses: int


def implausible(entries: Iterable[Entry], memory_total_bytes: int | None) -> str:
    """Why a list cannot be true: library and bindings of other versions disagree on its layout. Empty where nothing speaks against it."""
    for entry in entries:
        if not 0 < entry.pid <= PID_MAX:
            return f"{entry.pid} is no process id"
        if memory_total_bytes is not None and entry.memory_bytes is not None and entry.memory_bytes > memory_total_bytes:
            return f"process {entry.pid} would hold {entry.memory_bytes} bytes of {memory_total_bytes}"
    return ""


def merged(lists: Mapping[Use, Iterable[Entry]]) -> dict[Key, Listed]:
    """Each process once, with all its uses. Lists name the same memory: it is not added up."""
    found: dict[Key, Listed] = {}
    for use, entries in lists.items():
        for entry in entries:
            key = (entry.pid, entry.gpu_instance, entry.compute_instance)
            known = found.get(key)
            if known is None:
                found[key] = Listed(entry.pid, entry.memory_bytes, entry.gpu_instance, entry.compute_instance, _BIT[use])
                continue
            known.uses |= _BIT[use]
            if entry.memory_bytes is not None:
                known.memory_bytes = max(known.memory_bytes or 0, entry.memory_bytes)
    return found


def averaged(samples: Iterable[Activity], since_microseconds: int, rejects: Counter[tuple[str, str]]) -> dict[int, dict[str, Reading]]:
    """Mean ratio by process id and field. A share above 100 % is left out and counted; where none remains it is absent(out_of_range)."""
    sums: dict[int, dict[str, tuple[int, int]]] = {}
    for sample in samples:
        if sample.at_microseconds <= since_microseconds or not 0 < sample.pid <= PID_MAX:
            continue
        of_process = sums.setdefault(sample.pid, dict.fromkeys(USAGE, (0, 0)))
        for name, percent in zip(USAGE, (sample.sm, sample.memory, sample.encoder, sample.decoder), strict=True):
            if 0 <= percent <= 100:
                total, count = of_process[name]
                of_process[name] = (total + percent, count + 1)
            else:
                rejects[f"process_{name}", "out_of_range"] += 1
    return {
        pid: {name: total / count / 100 if count else Absent("out_of_range") for name, (total, count) in fields.items()}
        for pid, fields in sums.items()
    }


def process_sample(
    device_uid: str,
    listed: Listed,
    process: Process | None,
    usage: Mapping[str, Reading],
    memory_missing: Reason,
    command_line: str = "",
) -> v1.ProcessSample:
    """`process` None: /proc could not say who it is. `memory_missing` is the reason where there is no figure."""
    sample = v1.ProcessSample(device_uid=device_uid, pid=listed.pid, uses=listed.uses, command_line=command_line)
    absent: dict[Reason, list[int]] = {}
    readings = {"memory_used_bytes": Absent(memory_missing) if listed.memory_bytes is None else listed.memory_bytes, **usage}
    for name, reading in readings.items():
        if isinstance(reading, Absent):
            absent.setdefault(reading.reason, []).append(_NUMBER[name])
        else:
            setattr(sample, name, reading)
    if listed.gpu_instance is not None:
        sample.gpu_instance_id = listed.gpu_instance
    if listed.compute_instance is not None:
        sample.compute_instance_id = listed.compute_instance
    if process is not None:
        sample.started_at_ns = process.started_at_ns
        sample.name = process.name
        sample.cgroup = process.cgroup
        sample.namespace_pids.extend(process.namespace_pids)
        if process.user_id is not None:
            sample.user_id = process.user_id
    for reason, numbers in sorted(absent.items()):
        sample.absences.add(reason=NUMBER_OF_REASON[reason], field_number=sorted(numbers))
    return sample
