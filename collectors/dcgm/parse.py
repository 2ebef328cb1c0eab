"""Understands a device's DCGM numbers: the catalogue's units, blanks as absences, board quantities on the GPU only, and nothing guessed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from math import isfinite
from typing import Final

from collectors.dcgm import blank
from collectors.dcgm.page import Key, Seen
from schemas.builder import SampleBuilder
from schemas.catalogue import BY_NAME, CATALOGUE
from schemas.dcgm import CRC, FB_FREE, LICENSE, DcgmField, table
from schemas.identity import device_uid
from schemas.telemetry import v1
from schemas.values import Absent, Reading

_ROUNDING: Final = 1.02
"""A share so little above 1 is 1: it is averaged over clocks that are not sampled at one instant."""

_OVERSHOOT: Final = 2.0
"""DCGM says more than 1 of a MIG instance's activity (DCGM#152); up to this it is full, beyond it the number is nonsense."""

_THROTTLE_BITS: Final = (1 << len(v1.ThrottleReason.DESCRIPTOR.values)) - 1
_FLOAT_MAX: Final = 3.4e38
_RATES: Final = ("pcie_tx_bytes_per_second", "pcie_rx_bytes_per_second")
_ERRORS: Final = ("interconnect_crc_errors", "interconnect_replay_errors", "interconnect_recovery_errors")
_SLICES: Final = re.compile(r"(?:[0-9]+c\.)?([0-9]{1,2})g\.")
_RAW: Final = "dcgm_{}_before_limit"


@cache
def _candidates() -> Mapping[str, tuple[DcgmField, ...]]:
    """The rows that give each field, the best first."""
    found: dict[str, list[DcgmField]] = {}
    for row in table().rows:
        if row.metric:
            found.setdefault(row.metric, []).append(row)
    return {metric: tuple(sorted(rows, key=lambda row: -row.rank)) for metric, rows in found.items()}


@cache
def of_instances() -> frozenset[str]:
    """Fields that DCGM measures for a MIG instance by itself; whatever else stands on its lines is its GPU's."""
    shares = {row.metric for row in table().rows if row.profiling and row.metric and row.metric not in _RATES}
    return frozenset(shares | {"memory_used_bytes", "memory_total_bytes", "memory_reserved_bytes"})


def readings(seen: Seen, parts: tuple[Seen, ...] = ()) -> tuple[dict[str, Reading], dict[str, float]]:
    """Catalogue fields that the page says something of, and vendor extras. `parts` are the GPU's MIG instances, whose lines repeat it."""
    instance = seen.key.instance is not None
    found: dict[str, Reading] = {}
    extras: dict[str, float] = {}
    instanced = of_instances()
    for metric, rows in _candidates().items():
        own = metric in instanced
        if instance and not own:
            continue
        source = seen if own or not parts else _whose(rows, seen, parts)
        values = source.values
        answers = [_converted(row, source) for row in rows if row.name in values]
        if not answers:
            continue
        value = next((a for a in answers if not isinstance(a, Absent)), answers[0])
        if metric in _RATES and value == 0:
            value = next((a for a in answers if not isinstance(a, Absent) and a > 0), value)
        if own and BY_NAME[metric].unit == "1" and not isinstance(value, Absent):
            value = _limited(metric, value, extras, instance=instance)
        found[metric] = value
    found |= _memory(seen)
    used, total = found.get("memory_used_bytes"), found.get("memory_total_bytes")
    if isinstance(used, int | float) and isinstance(total, int | float) and used > total:
        found["memory_used_bytes"] = Absent("out_of_range")  # 47.98 of 23.99 GiB (gpustack#4703)
    if not instance:
        _derive(found, seen, parts)
        extras |= _extras(seen, parts)
    return found, extras


def _whose(rows: tuple[DcgmField, ...], seen: Seen, parts: tuple[Seen, ...]) -> Seen:
    """Whose lines tell of a GPU: its own, else the first instance's that repeat it. They are never added up (dcgm-exporter#317)."""
    return next((one for one in (seen, *parts) if any(row.name in one.values for row in rows)), seen)


def _converted(row: DcgmField, seen: Seen) -> Reading:
    if row.name in seen.contradictory:
        return Absent("error")
    value = blank.reading(seen.values[row.name])
    if isinstance(value, Absent):
        return value
    if row.most is not None and value > row.most:
        return Absent("error")
    if not isfinite(value):
        return Absent("out_of_range")
    if row.form == "bits":
        return int(value) & _THROTTLE_BITS if value >= 0 else Absent("out_of_range")
    if row.form == "flag":
        if row.name == LICENSE and value == 0:
            return Absent("not_supported")  # said of every GPU that is no vGPU
        return float(value > 0) if value >= 0 else Absent("out_of_range")
    scaled = value if row.factor == 1 else value * row.factor  # a count stays an integer: 64 bits are exact
    return scaled if BY_NAME[row.metric].wire != "float" or abs(scaled) < _FLOAT_MAX else Absent("out_of_range")


def _limited(metric: str, value: float, extras: dict[str, float], *, instance: bool) -> Reading:
    if value <= 1:
        return value
    if instance and value <= _OVERSHOOT:
        extras[_RAW.format(metric)] = value
        return 1.0
    return 1.0 if value <= _ROUNDING else Absent("out_of_range")


def _memory(seen: Seen) -> dict[str, Reading]:
    """The total where only its parts are said, all three (dcgm-exporter#380). Neither used nor free memory: DCGM 2.4.5's zeros (#103)."""
    by_metric = table().by_metric
    names = (by_metric["memory_used_bytes"].name, FB_FREE, by_metric["memory_reserved_bytes"].name)
    used, free, reserved = (_part(seen, name) for name in names)
    if used == 0 and free == 0:
        return {"memory_used_bytes": Absent("error")}
    told = any(row.name in seen.values for row in _candidates()["memory_total_bytes"])
    if not told and used is not None and free is not None and reserved is not None:
        return {"memory_total_bytes": used + free + reserved}
    return {}


def _part(seen: Seen, name: str) -> float | None:
    if name not in seen.values or name in seen.contradictory:
        return None
    value = blank.reading(seen.values[name])
    return None if isinstance(value, Absent) or not isfinite(value) or value < 0 else value * table().by_name[name].factor


def _derive(found: dict[str, Reading], seen: Seen, parts: tuple[Seen, ...]) -> None:
    crc = [_part(_holder(name, seen, parts), name) for name in CRC]
    if all(part is not None for part in crc):
        found["interconnect_crc_errors"] = sum(part or 0 for part in crc)
    terms = [found.get(name) for name in _ERRORS]
    if all(isinstance(term, int | float) for term in terms):
        found["interconnect_errors"] = sum(term for term in terms if isinstance(term, int | float))
    if found.get("memory_temperature_celsius") == 0:
        found["memory_temperature_celsius"] = Absent("not_supported")  # boards without the sensor say 0
    if parts:
        # A GPU that is cut has no figure of its own: NVML says not supported, DCGM 0 or the last one.
        found["utilization_ratio"] = Absent("not_supported")
    busy = found.get("utilization_ratio")
    if isinstance(busy, int | float) and busy > 0 and all(found.get(rate) == 0 for rate in _RATES):
        # Some boards never count it (dcgm-exporter#721): no kernel starts without a byte over PCIe.
        for rate in _RATES:
            found[rate] = Absent("error")


def _holder(name: str, seen: Seen, parts: tuple[Seen, ...]) -> Seen:
    return next((one for one in (seen, *parts) if name in one.values), seen)


@cache
def _vendor_rows() -> tuple[DcgmField, ...]:
    """The best last: it is written over the others."""
    return tuple(sorted((row for row in table().rows if row.vendor), key=lambda row: row.rank))


def _extras(seen: Seen, parts: tuple[Seen, ...]) -> dict[str, float]:
    found: dict[str, float] = {}
    for row in _vendor_rows():
        value = _part(_holder(row.name, seen, parts), row.name)
        if value is not None and value < _FLOAT_MAX:
            found[row.vendor] = value
    return found


def fill(builder: SampleBuilder, found: Mapping[str, Reading], once: set[str], *, slow: bool) -> None:
    """Set every field that is due. `once` remembers what the device has ever told: of that, silence is an error, else not_supported."""
    for metric in CATALOGUE:
        if metric.cadence == "slow" and not slow:
            continue
        value = found.get(metric.name)
        if value is None:
            builder.absent(metric.name, "error" if metric.name in once else "not_supported")
        else:
            builder.set(metric.name, value)
            if not isinstance(value, Absent):
                once.add(metric.name)


def uid_of(seen: Seen, node: str) -> str:
    """The GPU's uid as NVML gives it, so that both sources speak of one device; an instance's is its GPU's and the instance's number."""
    gpu = device_uid("nvidia", unique=seen.key.uuid, node=node, bdf=seen.bdf)
    return gpu if seen.key.instance is None else f"{gpu}/gi{seen.key.instance}"


def info(seen: Seen, node: str) -> v1.DeviceInfo:
    """Identity as far as the labels tell it. Labels of pods are no part of it: they come and go with each start (dcgm-exporter#340)."""
    made = v1.DeviceInfo(
        uid=uid_of(seen, node),
        vendor="nvidia",
        model=seen.model or "NVIDIA GPU",
        kind=v1.DeviceKind.DEVICE_KIND_ACCELERATOR,
        index=seen.index,
        bdf=seen.bdf,
        serial=seen.serial,
        firmware_version=seen.firmware,
        driver_version=seen.driver,
    )
    if seen.key.instance is not None:
        made.kind = v1.DeviceKind.DEVICE_KIND_PARTITION
        made.parent_uid = made.uid.rpartition("/")[0]
        made.partition.profile = seen.profile
        made.partition.gpu_instance_id = seen.key.instance
        if slices := _SLICES.match(seen.profile):
            made.partition.gpu_slices = int(slices[1])
    return made


def instances(devices: Mapping[Key, Seen]) -> Iterator[tuple[Seen, tuple[Seen, ...]]]:
    """Each device with its MIG instances."""
    parts: dict[Key, list[Seen]] = {}
    for seen in devices.values():
        if seen.key.instance is not None:
            parts.setdefault(seen.key._replace(instance=None), []).append(seen)
    for seen in devices.values():
        yield seen, () if seen.key.instance is not None else tuple(parts.get(seen.key, ()))
