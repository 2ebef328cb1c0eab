"""One run of the line: a bus, a store and a runner, started fresh, fed, and counted at the end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from bench import flow
from bench.flow import Feeder
from bench.load import Load
from bench.stack import EmbeddedBus, Environment, Stack
from bench.store import InfluxStored, SqliteStored, Stored
from schemas import topics
from sinks.store import INPUTS
from streams.processors.attribute import AttributeProcessor
from streams.processors.detect import DetectProcessor
from tests.integration.servers.influxdb import InfluxServer
from tests.integration.servers.kafka import KafkaServer
from xpulse.bus.admin import create_topics
from xpulse.bus.settings import Bus

BusName = Literal["embedded", "kafka"]
Runner = Literal["direct", "faust"]
STORED_SECONDS: Final = 20.0
"""Longest wait for points that the store's writer says it wrote."""


@dataclass(frozen=True, slots=True)
class Case:
    """`embedded` goes with the embedded store, `kafka` with InfluxDB."""

    bus: BusName
    runner: Runner

    @property
    def name(self) -> str:
        return f"{self.bus}-{self.runner}"

    @property
    def store(self) -> str:
        return "sqlite" if self.bus == "embedded" else "influxdb"


CASES: Final = tuple(Case(bus, runner) for bus in ("embedded", "kafka") for runner in ("direct", "faust"))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run measured. All but `findings` and what follows count device samples; those `timed` took `seconds`.

    CPU is in µs a timed device sample, by process.
    """

    case: Case
    samples: int
    timed: int
    seconds: float
    attributed: int
    stored: int
    owner_unknown: int
    findings: int
    alert_records: int
    dead_letters: int
    lost_ranges: int
    cpu_us: dict[str, float]

    @property
    def per_second(self) -> float:
        return self.timed / self.seconds

    @property
    def on_two_cores(self) -> float:
        """What the CPU a sample allows on two cores of one's own: all processes share both, and a role runs on one of them."""
        return min(2e6 / sum(self.cpu_us.values()), 1e6 / max(self.cpu_us.values()))

    @property
    def missing(self) -> int:
        """Device samples that are not attributed, or not in the store."""
        return max(self.samples - self.attributed, self.samples - self.stored, 0)

    @property
    def whole(self) -> bool:
        """Nothing missing, doubled, refused or lost."""
        return self.samples == self.attributed == self.stored and not self.dead_letters and not self.lost_ranges


def run(case: Case, load: Load, folder: Path, *, seconds: float, on_progress: flow.OnProgress) -> Outcome:
    """Start everything, pass the load through, count. Raises tests.integration.servers' Missing where a server cannot be had."""
    with _place(case, folder) as (place, bus, stored):
        feeder = Feeder(bus)
        feeder.send(load.first())
        feeder.flush()
        readers = {
            "attribute": AttributeProcessor.inputs,
            "detect": DetectProcessor.inputs,
            "alert": (topics.FINDINGS,),
            case.store: INPUTS,
        }
        with Stack(place, case.runner, folder) as stack:
            passage = flow.run(load, stack, feeder, readers, seconds=seconds, on_progress=on_progress)
            unknown = stack.dropped("attribute")
            devices = load.shape.devices
            samples, timed = passage.batches * devices, passage.timed * devices
            points, waited = _count(stored, samples)
    return Outcome(
        case=case,
        samples=samples,
        timed=timed,
        seconds=passage.seconds + waited,
        attributed=passage.done["attribute"].published * devices,
        stored=points,
        owner_unknown=unknown,
        findings=passage.done["detect"].published,
        alert_records=passage.done["alert"].published,
        dead_letters=sum(done.dead_letters for done in passage.done.values()),
        lost_ranges=sum(done.lost_ranges for done in passage.done.values()),
        cpu_us={name: spent / timed * 1e6 for name, spent in passage.cpu_seconds.items()},
    )


def _count(stored: Stored, wanted: int) -> tuple[int, float]:
    """Points in the store, and how long beyond the first look they took to appear."""
    found, began = stored.device_points(), time.monotonic()
    waited = 0.0
    while found < wanted and waited < STORED_SECONDS:
        time.sleep(0.1)
        found, waited = stored.device_points(), time.monotonic() - began
    return found, waited


@contextmanager
def _place(case: Case, folder: Path) -> Iterator[tuple[Environment, Bus, Stored]]:
    if case.bus == "embedded":
        with EmbeddedBus(folder) as embedded:
            bus = Bus(brokers=embedded.brokers, embedded=True)
            place = Environment(embedded.brokers, True, case.store, {}, {"bus": embedded.pid})
            yield place, bus, SqliteStored(folder / "xpulse.sqlite")
        return
    with ExitStack() as servers:
        influx = servers.enter_context(InfluxServer())
        kafka = servers.enter_context(KafkaServer())
        bus = Bus(brokers=kafka.bootstrap, replication_factor=1, min_insync_replicas=1)
        create_topics(bus)
        settings = {
            "XPULSE_BUS__REPLICATION_FACTOR": "1",
            "XPULSE_BUS__MIN_INSYNC_REPLICAS": "1",
            "XPULSE_SINKS__INFLUXDB__URL": influx.url,
            "XPULSE_SINKS__INFLUXDB__ORG": influx.org,
            "XPULSE_SINKS__INFLUXDB__BUCKET": influx.bucket,
            "XPULSE_SINKS__INFLUXDB__TOKEN": influx.token,
        }
        place = Environment(kafka.bootstrap, False, case.store, settings, {"kafka": kafka.pid, "influxd": influx.pid})
        yield place, bus, InfluxStored(influx)
