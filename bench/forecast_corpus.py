"""What the forecasts are measured on: NAB's hardware-like series, and the simulated fleet's on a grid of minutes."""

from __future__ import annotations

import csv
import io
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from collectors.simulated.fleet import Fleet
from collectors.simulated.settings import Simulated
from forecasting.settings import Forecasting

if TYPE_CHECKING:
    from numpy.typing import NDArray

NAB: Final = Path(__file__).parents[2] / "shared" / "data" / "nab" / "data.tar.gz"
HARDWARE: Final = (
    "ambient_temperature_system_failure",
    "cpu_utilization_asg_misconfiguration",
    "ec2_request_latency_system_failure",
    "machine_temperature_system_failure",
)
"""With all of realAWSCloudwatch these are the 21 series of NAB that hardware or hosts might tell."""

HISTORY: Final = Forecasting().history_steps

METRICS: Final = ("memory_used_bytes", "temperature_celsius", "memory_temperature_celsius", "power_watts", "utilization_ratio")
STARTED_AT_NS: Final = 1_780_000_000 * 10**9
MINUTE_NS: Final = 60 * 10**9
CLUSTER: Final = "bench"

_JUMP: Final = 0.02
"""Of a card's memory: what moves further in one minute was loaded, freed or restarted."""


@dataclass(frozen=True, slots=True)
class Windows:
    """`past` (n, HISTORY) and what came, `future` (n, horizon). `part` (n,) names the source of each; `series` (n,) which one; `scale`
    (n,) is the mean one-step change of the series in all that came before, what MASE is scaled by.

    `told` (n,): in the future something was loaded, freed or restarted, of which no past can know. `changed` (n,): so in the past.
    """

    past: NDArray[np.float64]
    future: NDArray[np.float64]
    part: NDArray[np.str_]
    series: NDArray[np.str_]
    told: NDArray[np.bool_]
    changed: NDArray[np.bool_]
    scale: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.past)


def nab_series() -> dict[str, NDArray[np.float64]]:
    """The 21 series by name. Raises FileNotFoundError where the data are not there."""
    found = {}
    with tarfile.open(NAB) as archive:
        for member in archive.getmembers():
            name = Path(member.name).stem
            if not member.name.endswith(".csv") or ("realAWSCloudwatch" not in member.name and name not in HARDWARE):
                continue
            file = archive.extractfile(member)
            assert file is not None
            rows = csv.DictReader(io.TextIOWrapper(file, encoding="utf-8"))
            found[name] = np.array([float(row["value"]) for row in rows])
    return found


def fleet_series(seed: int, *, nodes: int, hours: int) -> dict[str, NDArray[np.float64]]:
    """{metric: (cards, minutes)} of a fleet in which nothing breaks: days of load, restarts, deploys that change memory, idle nights."""
    settings = Simulated(nodes=nodes, seed=seed, trough_ratio=0.0 if seed % 2 else None, deploy_memory_ratio=0.15)
    fleet = Fleet(settings, clusters=(CLUSTER,), started_at_ns=STARTED_AT_NS)
    columns: dict[str, list[NDArray[np.float64]]] = {metric: [] for metric in METRICS}
    for minute in range(hours * 60):
        fleet.advance(STARTED_AT_NS + minute * MINUTE_NS)
        view = fleet.view()
        for metric in METRICS:
            columns[metric].append(np.asarray(view.columns[metric], dtype=np.float64))
    # On the wire a gauge has 24 bits.
    return {metric: np.array(rows).T.astype(np.float32).astype(np.float64) for metric, rows in columns.items()}


def cut(series: dict[str, NDArray[np.float64]], part: str, origins: int, horizon: int, *, memory: bool = False) -> Windows:
    """`origins` windows of each series, evenly over its length."""
    pasts, futures, names, scales = [], [], [], []
    for name, y in series.items():
        for origin in np.linspace(HISTORY, y.size - horizon, origins).astype(int).tolist():
            pasts.append(y[origin - HISTORY : origin])
            futures.append(y[origin : origin + horizon])
            names.append(name)
            scales.append(float(np.abs(np.diff(y[:origin])).mean()))
    past, future = np.array(pasts), np.array(futures)
    most = _JUMP * 80 * 2**30 if memory else np.inf
    told: NDArray[np.bool_] = np.any(np.abs(np.diff(future, axis=1, prepend=past[:, -1:])) > most, axis=1)
    changed: NDArray[np.bool_] = np.any(np.abs(np.diff(past, axis=1)) > most, axis=1)
    return Windows(past, future, np.full(len(past), part), np.array(names), told, changed, np.array(scales))


def joined(parts: list[Windows]) -> Windows:
    """One after the other."""
    return Windows(
        np.concatenate([w.past for w in parts]),
        np.concatenate([w.future for w in parts]),
        np.concatenate([w.part for w in parts]),
        np.concatenate([w.series for w in parts]),
        np.concatenate([w.told for w in parts]),
        np.concatenate([w.changed for w in parts]),
        np.concatenate([w.scale for w in parts]),
    )
