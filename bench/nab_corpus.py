"""The 58 series of the Numenta Anomaly Benchmark with their windows, and the scores that two published detectors gave them.

They are read where they lie, next to the repository: their licence does not allow for a copy in it.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from bench.nab_scoring import Labelled, Profile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

FOLDER: Final = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "nab"
PUBLISHED: Final = {"windowedGaussian": 39.65, "knncad": 57.99}
"""Detectors whose scores lie beside the data, and what they are published to reach in the standard profile."""

_HARDWARE: Final = (
    "realAWSCloudwatch/",
    "realKnownCause/machine_temperature_system_failure",
    "realKnownCause/ambient_temperature_system_failure",
    "realKnownCause/cpu_utilization_asg_misconfiguration",
    "realKnownCause/ec2_request_latency_system_failure",
)


class Series(NamedTuple):
    """A file: its name, times (ns), values, and labelled windows as (first, last) point."""

    name: str
    at_ns: NDArray[np.int64]
    values: Floats
    windows: tuple[tuple[int, int], ...]

    @property
    def labelled(self) -> Labelled:
        return Labelled(len(self.values), self.windows)

    @property
    def hardware(self) -> bool:
        """Of the subset that is like what accelerators say: cloud machines, temperatures, latency."""
        return self.name.startswith(_HARDWARE)


def missing(folder: Path = FOLDER) -> str | None:
    """Why the corpus cannot be read, naming the folder; None where it can."""
    return None if (folder / "data.tar.gz").is_file() else f"no NAB data in ../{'/'.join(folder.parts[-3:])}"


def load(folder: Path = FOLDER) -> list[Series]:
    """All series, by name. FileNotFoundError where the folder is not there."""
    labels: dict[str, list[list[str]]] = json.loads((folder / "combined_windows.json").read_text(encoding="utf-8"))
    found = []
    with tarfile.open(folder / "data.tar.gz") as packed:
        for name in sorted(labels):
            member = packed.extractfile(f"data/{name}")
            if member is None:
                raise FileNotFoundError(f"{name} is not in {folder / 'data.tar.gz'}")
            rows = list(csv.reader(io.TextIOWrapper(member, encoding="utf-8")))[1:]
            at_ns = _times(row[0] for row in rows)
            windows = []
            for first, last in labels[name]:
                start, end = _times((first, last))
                inside = np.flatnonzero((at_ns >= start) & (at_ns <= end))
                windows.append((int(inside[0]), int(inside[-1])))
            found.append(Series(name, at_ns, np.array([float(row[1]) for row in rows]), tuple(windows)))
    return found


def profiles(folder: Path = FOLDER) -> dict[str, Profile]:
    """The three profiles, named as their figures: standard, low_fp, low_fn."""
    given = json.loads((folder / "profiles.json").read_text(encoding="utf-8"))
    names = {"standard": "standard", "reward_low_FP_rate": "low_fp", "reward_low_FN_rate": "low_fn"}
    costs = {ours: given[theirs]["CostMatrix"] for theirs, ours in names.items()}
    return {name: Profile(cost["tpWeight"], cost["fnWeight"], cost["fpWeight"]) for name, cost in costs.items()}


def published(detector: str, series: Sequence[Series], folder: Path = FOLDER) -> Floats:
    """The scores a published detector gave to all points of `series`, one after the other."""
    by_name: dict[str, list[float]] = {}
    with gzip.open(folder / f"scores_{detector}.csv.gz", "rt", encoding="utf-8") as lines:
        for name, _, score in list(csv.reader(lines))[1:]:
            by_name.setdefault(name, []).append(float(score))
    return np.concatenate([np.array(by_name[one.name]) for one in series])


def _times(texts: Iterable[str]) -> NDArray[np.int64]:
    """Nanoseconds; the data name no zone, UTC is as good as any."""
    seconds = [text[:19].replace(" ", "T") for text in texts]
    return np.array(seconds, "datetime64[ns]").astype(np.int64)
