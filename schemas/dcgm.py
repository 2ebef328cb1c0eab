"""DCGM's field names beside the catalogue's (dcgm.yaml): read by the dcgm plugin one way, printed as dcgm-exporter does the other way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, get_args

import yaml

from schemas.catalogue import BY_NAME
from schemas.values import Value

Family = Literal["gauge", "counter"]
Form = Literal["number", "flag", "bits"]

FILE: Final = Path(__file__).with_name("dcgm.yaml")

FB_FREE: Final = "DCGM_FI_DEV_FB_FREE"
XID: Final = "DCGM_FI_DEV_XID_ERRORS"
NVLINK_RATE: Final = "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"
CRC: Final = ("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL")
LICENSE: Final = "DCGM_FI_DEV_VGPU_LICENSE_STATUS"

UUID_LABELS: Final = ("UUID", "uuid", "gpu_uuid")
HOST_LABELS: Final = ("Hostname", "hostname")
MODEL_LABELS: Final = ("modelName", "model_name")
DRIVER_LABELS: Final = ("DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION")
PRINTED_LABELS: Final = ("gpu", "UUID", "pci_bus_id", "device", "modelName", "GPU_I_PROFILE", "GPU_I_ID", "Hostname", DRIVER_LABELS[0])
"""Labels of a GPU's line in dcgm-exporter's order; the two GPU_I_ ones on lines of MIG instances only. Newer ones say `hostname`."""


@dataclass(frozen=True, slots=True)
class DcgmField:
    """One DCGM field; the keys are explained in dcgm.yaml. `catalogue value = DCGM's value x factor`."""

    name: str
    number: int
    metric: str
    vendor: str
    factor: float
    family: Family
    help: str
    default: bool
    rank: int
    form: Form
    whole: bool
    most: float | None
    aliases: tuple[str, ...]

    @property
    def profiling(self) -> bool:
        """From hardware counters that one client at a time may use; NVML has them on Hopper and newer only."""
        return self.name.startswith("DCGM_FI_PROF_")

    def printed(self, value: Value) -> Value:
        """A catalogue value in DCGM's unit."""
        raw = value / self.factor
        return round(raw) if self.whole else raw


@dataclass(frozen=True, slots=True)
class Table:
    """`by_name` knows aliases too; `by_metric` has the row to print for each catalogue field."""

    rows: tuple[DcgmField, ...]
    by_name: Mapping[str, DcgmField]
    by_metric: Mapping[str, DcgmField]


@cache
def table() -> Table:
    """The table of this release. Raises ValueError naming the row that does not fit the catalogue."""
    data = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    rows = tuple(_row(entry, data["units"]) for entry in data["fields"])
    by_name: dict[str, DcgmField] = {}
    by_metric: dict[str, DcgmField] = {}
    for row in rows:
        for name in (row.name, *row.aliases):
            if by_name.setdefault(name, row) is not row:
                raise ValueError(f"{FILE.name}: {name} is there twice")
        if row.metric and row.rank == 0 and by_metric.setdefault(row.metric, row) is not row:
            raise ValueError(f"{FILE.name}: {row.name} and {by_metric[row.metric].name} would both be printed for {row.metric}")
    return Table(rows, by_name, by_metric)


def exported(values: Mapping[str, Value]) -> Iterator[tuple[DcgmField, Value]]:
    """One device's catalogue values as dcgm-exporter would print them, in the table's order. What has no value is left out, and so are
    the last Xid (an event, not a value) and the NVLink rate (a difference of two readings)."""
    for row in table().rows:
        if row.name == FB_FREE:
            parts = [values.get(f"memory_{part}_bytes") for part in ("total", "used", "reserved")]
            if all(part is not None for part in parts):
                total, used, reserved = (part or 0 for part in parts)
                yield row, row.printed(max(0, total - used - reserved))
        elif row.metric and row.rank == 0 and row.metric in values:
            yield row, row.printed(values[row.metric])


def _row(entry: dict[str, Any], units: Mapping[str, float]) -> DcgmField:
    name = str(entry["name"])
    unit = entry.get("unit")
    row = DcgmField(
        name=name,
        number=int(entry["id"]),
        metric=entry.get("metric", ""),
        vendor=entry.get("vendor", ""),
        factor=1.0 if unit is None else float(units[unit]),
        family=entry.get("family", "gauge"),
        help=str(entry["help"]),
        default=bool(entry.get("default", False)),
        rank=int(entry.get("rank", 0)),
        form=entry.get("form", "number"),
        whole=bool(entry.get("whole", True)),
        most=entry.get("most"),
        aliases=tuple(entry.get("aliases", ())),
    )
    if row.metric and row.metric not in BY_NAME:
        raise ValueError(f"{FILE.name}: {name}: the catalogue has no metric {row.metric!r}")
    if row.family not in get_args(Family) or row.form not in get_args(Form):
        raise ValueError(f"{FILE.name}: {name}: family {row.family!r} or form {row.form!r} is not one of {Family}, {Form}")
    return row
