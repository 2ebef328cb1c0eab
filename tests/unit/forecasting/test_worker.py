"""The forecast role end to end in event time: what it says of a leak, when, and what it does not say of anything else."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pytest

from forecasting.pool import Chunk, Inline, Labelled
from forecasting.settings import Forecasting, demo_profile
from forecasting.targets import MEMORY
from forecasting.worker import ForecastProcessor
from schemas import topics
from schemas.flow import DeadLetter, Partition, Record, Tick
from schemas.store import Latest, Measurement, Series
from tests.unit.forecasting import shapes
from tests.unit.forecasting.fleet import ALL, SECOND, START_NS, Run, Topic, batch, record
from tests.unit.forecasting.shapes import Floats

ONSET = 20


def memory(**series: Floats) -> dict[str, dict[str, Floats]]:
    return {f"sim:{name}": {"memory_used_bytes": values} for name, values in series.items()}


def test_it_reads_what_the_table_of_topics_says_so_that_it_has_the_rights() -> None:
    reads = {t.name for t in topics.TOPICS if "forecast" in t.readers}
    assert reads == {*ForecastProcessor.inputs, topics.FORECASTS}  # its own: those that stood before it began


@pytest.mark.parametrize("seed", range(3))
def test_the_demo_s_leak_is_said_in_time_and_taken_back_once(seed: int) -> None:
    run = Run()
    run.feed(memory(leaks=shapes.leak(70, ONSET, 60, seed, sigma=0.01), flat=shapes.flat(70, seed)))
    first = run.breaches[0]
    assert 0 < first.at_seconds - ONSET <= 12
    assert {said.forecast.uid for said in run.breaches} == {"sim:leaks"}
    crossing = ONSET + 30
    assert first.at_seconds < crossing - 15
    off = [(said.forecast.history_until_ns - START_NS) / SECOND + said.forecast.eta_p50_seconds - crossing for said in run.breaches]
    assert max(off) < 6
    assert min(off) > -3
    assert np.median(off) == pytest.approx(0, abs=1)
    assert [(said.forecast.withdrawn_reason, said.forecast.uid) for said in run.withdrawals] == [("breached", "sim:leaks")]
    assert run.said[-1].at_seconds == run.withdrawals[0].at_seconds or not run.said[-1].breach


def test_a_forecast_says_what_it_rests_on() -> None:
    run = Run()
    run.feed(memory(a=shapes.leak(40, ONSET, 60, 1)))
    said = run.breaches[-1].forecast
    assert (said.cluster, said.node, said.entity, said.metric, said.unit) == ("c0", "n0", "device/sim:a", "memory_used_bytes", "By")
    assert said.limit == 76e9
    assert said.model in {"holt", "damped"}
    assert len(said.p50) == len(said.p05) == len(said.p95) == 30
    assert max(said.p95) <= 80e9
    assert said.backtest_mase < 1
    assert said.simulated
    assert said.step_ns == SECOND
    assert said.made_at_ns < said.valid_until_ns <= said.made_at_ns + 10 * SECOND
    assert said.eta_p10_seconds <= said.eta_p50_seconds <= said.eta_p90_seconds


def test_a_leak_that_stops_is_withdrawn_once_as_receded() -> None:
    y = shapes.leak(75, ONSET, 60, 1)
    y[40:] = shapes.noisy(np.full(35, y[39] / 1e9), 2)
    run = Run()
    run.feed(memory(a=y))
    assert run.breaches
    assert [said.forecast.withdrawn_reason for said in run.withdrawals] == ["receded"]
    assert not [said for said in run.breaches if said.at_seconds > run.withdrawals[0].at_seconds]


def test_a_process_that_is_restarted_has_recovered() -> None:
    run = Run()
    run.feed(memory(a=np.r_[shapes.leak(40, ONSET, 60, 1), shapes.noisy(np.full(30, 2.0), 2)]))
    assert [said.forecast.withdrawn_reason for said in run.withdrawals] == ["recovered"]


def test_a_device_that_falls_silent_is_a_lost_signal() -> None:
    run = Run()
    run.feed(memory(a=np.r_[shapes.leak(40, ONSET, 60, 1), np.full(25, np.nan)], b=shapes.flat(65, 1)))
    assert [(said.forecast.withdrawn_reason, said.forecast.uid) for said in run.withdrawals] == [("signal_lost", "sim:a")]


def test_a_restarted_worker_takes_back_what_it_no_longer_sees() -> None:
    run = Run()
    run.feed(memory(a=shapes.leak(40, ONSET, 60, 1)))
    assert run.processor.standing == 1
    run.restart()
    assert run.processor.standing == 1
    run.feed(memory(a=shapes.noisy(np.full(30, 60.0), 2)))
    run.restart()
    assert run.processor.standing == 0
    run.feed(memory(a=shapes.noisy(np.full(20, 60.0), 3)))
    assert [said.forecast.withdrawn_reason for said in run.withdrawals] == ["recovered"]


def test_a_restarted_worker_that_finds_nothing_says_so_after_a_while() -> None:
    run = Run()
    run.feed(memory(a=shapes.leak(40, ONSET, 60, 1)))
    run.restart()
    for second in range(40, 65):
        run.tick(START_NS + second * SECOND)
    assert [(said.at_seconds, said.forecast.withdrawn_reason) for said in run.withdrawals] == [(55.0, "signal_lost")]


def test_another_worker_s_nodes_are_let_go_silently() -> None:
    run = Run()
    run.feed(memory(a=shapes.leak(40, ONSET, 60, 1)))
    run.processor.restore(run.topic, frozenset())
    assert run.processor.devices == 0
    assert run.processor.standing == 0
    run.tick(START_NS + 60 * SECOND)
    assert not run.withdrawals


def test_plain_forecasts_come_slowly_and_without_a_verdict_nobody_made() -> None:
    run = Run()
    run.feed(memory(a=shapes.flat(65, 1)))
    plain = [said.forecast for said in run.said]
    assert 1 <= len(plain) <= 3
    assert all(not said.HasField("breach_probability_ratio") and not said.withdrawn for said in plain)
    assert all(said.HasField("limit") for said in plain)


def test_holes_and_absent_values_are_no_news() -> None:
    y = shapes.leak(70, ONSET, 60, 1)
    y[np.random.default_rng(1).random(70) < 0.25] = np.nan
    run = Run()
    run.feed(memory(a=y, always=shapes.flat(70, 1)))
    assert {said.forecast.uid for said in run.breaches} == {"sim:a"}
    assert run.breaches[0].at_seconds < ONSET + 20


def test_malformed_records_are_dead_letters_and_clocks_ahead_are_counted() -> None:
    processor = ForecastProcessor(demo_profile(), pool=Inline())
    good = record(batch(START_NS, {"sim:a": {"memory_used_bytes": 1e9}}))
    early = record(batch(START_NS + 3600 * SECOND, {"sim:b": {"memory_used_bytes": 1e9}}))._replace(timestamp_ns=START_NS)
    found = processor.process([good._replace(value=b"\xff\xff"), good._replace(headers=()), good, early])
    assert [type(item) for item in found] == [DeadLetter, DeadLetter]
    assert processor.devices == 1
    assert processor.dropped == {"future": 1}


def test_clean_fleet_of_every_shape_for_ten_minutes_at_20_seeds() -> None:
    seconds = 600
    fleet: dict[str, dict[str, Floats]] = {}
    for seed in range(20):
        shaped = {
            "flat": shapes.flat(seconds, seed),
            "growing": shapes.growing(seconds, seed),
            "sawtooth": shapes.sawtooth(seconds, seed),
            "saturating": shapes.saturating(seconds, seed),
            "load": shapes.load(seconds, 5 + seed, 40, 1, seed),
            "restart": shapes.restart(seconds, 100 + 10 * seed, seed),
            "deploy": shapes.deploy(seconds, 60 + 20 * seed, seed),
            "diurnal": shapes.diurnal(seconds, seed, period=600),
        }
        for name, values in shaped.items():
            fleet[f"sim:{name}-{seed}"] = {"memory_used_bytes": values, "temperature_celsius": shapes.temperature(seconds, seed)}
    run = Run(demo_profile().model_copy(update={"plain_every_rounds": 600, "every_seconds": 3.0}))
    run.feed(fleet)
    assert [(said.at_seconds, said.forecast.uid, said.forecast.metric) for said in run.breaches] == []
    assert run.processor.events["rounds"] >= 200  # and the few of what has longer steps


def test_production_steps_see_an_hour_long_leak_half_an_hour_ahead_and_no_load() -> None:
    minutes = 120
    run = Run(Forecasting(workers=0))
    run.feed(
        memory(
            leaks=shapes.leak(minutes, 60, 60, 1, sigma=0.05),
            loads=shapes.load(minutes, 60, 40, 60, 1),
            day=shapes.diurnal(minutes, 1),
            saw=shapes.sawtooth(minutes, 1),
        ),
        step_seconds=60,
    )
    assert {said.forecast.uid for said in run.breaches} == {"sim:leaks"}
    crossing = (60 + 30) * 60
    assert run.breaches[0].at_seconds < crossing - 15 * 60


class Remembered:
    """A store that remembers one device."""

    def __init__(self, values: Floats, *, failures: int = 0) -> None:
        self.values = values
        self.failures = failures
        self.asked: Counter[str] = Counter()

    tags = (("cluster", "c0"), ("kind", "accelerator"), ("model", "m"), ("node", "n0"), ("uid", "sim:a"), ("vendor", "sim"))

    def range(
        self,
        measurement: Measurement,
        fields: Sequence[str],
        *,
        start_ns: int,
        end_ns: int,
        step_ns: int | None = None,
        where: Mapping[str, str] | None = None,
        max_age_ns: int | None = None,
    ) -> list[Series]:
        self.asked.update(fields)
        if self.asked["memory_total_bytes"] <= self.failures:  # the first that is asked for
            raise ConnectionError("store: nobody answers")
        if measurement != "device" or list(fields) != ["memory_used_bytes"]:
            return []
        assert step_ns
        times = np.arange(start_ns, end_ns, step_ns)
        values = np.full(times.size, np.nan)
        at = (times - START_NS) // SECOND
        known = (at >= 0) & (at < self.values.size)
        values[known] = self.values[at[known]]
        return [Series(self.tags, "memory_used_bytes", times, values)]

    def latest(self, measurement: Measurement, *, where: Mapping[str, str] | None = None, since_ns: int = 0) -> list[Latest]:
        return [Latest(self.tags, START_NS, {"memory_total_bytes": (80 * 10**9, START_NS), "node": ("n0", START_NS)}, {})]

    def series(self, measurement: Measurement, *, where: Mapping[str, str] | None = None) -> list[tuple[tuple[str, str], ...]]:
        return [self.tags]

    def events(self, *, start_ns: int, end_ns: int, where: Mapping[str, str] | None = None) -> list[object]:
        return []

    def rows(self, measurement: Measurement, *, start_ns: int, end_ns: int, where: Mapping[str, str] | None = None) -> list[object]:
        return []

    def intervals(self, *, start_ns: int, end_ns: int, where: Mapping[str, str] | None = None) -> list[object]:
        return []

    def close(self) -> None:
        pass


@pytest.mark.parametrize("failures", [0, 2], ids=["at once", "after two refusals"])
def test_history_from_the_store_lets_a_new_worker_speak_at_once(failures: int) -> None:
    y = shapes.leak(60, ONSET, 60, 1)
    store = Remembered(y[:38], failures=failures)
    processor = ForecastProcessor(demo_profile(), store, clock_ns=lambda: START_NS, pool=Inline())  # type: ignore[arg-type]  # events are never asked for
    processor.restore(Topic(), ALL)
    for second in range(38, 45):
        processor.process([record(batch(START_NS + second * SECOND, {"sim:a": {"memory_used_bytes": y[second]}}, sequence=second))])
        processor.tick(Tick(START_NS + (second + 1) * SECOND))
    assert processor.standing == 1
    assert store.asked["memory_used_bytes"] == 1
    assert processor.events["store_unreachable"] == failures


def test_the_store_s_series_of_other_workers_are_not_taken() -> None:
    store = Remembered(shapes.flat(40, 1))
    processor = ForecastProcessor(demo_profile(), store, clock_ns=lambda: START_NS, pool=Inline())  # type: ignore[arg-type]  # as above
    topic = Topic()
    for partition in range(4):
        processor.restore(topic, frozenset({Partition(topics.SAMPLES, partition)}))
        processor.tick(Tick(START_NS + (40 + partition) * SECOND))
    assert store.asked["memory_used_bytes"] == 4
    processor.restore(topic, frozenset({Partition(topics.FORECASTS, 0)}))
    assert processor.devices == 0


def test_a_start_does_not_read_hours_of_forecasts_for_what_has_hourly_steps() -> None:
    asked: list[int] = []

    class Watched(Topic):
        def read(self, topic: str, partition: int, *, since_ns: int | None = None) -> Iterator[Record]:
            asked.append(0 if since_ns is None else START_NS - since_ns)
            return super().read(topic, partition, since_ns=since_ns)

    ForecastProcessor(Forecasting(workers=0), clock_ns=lambda: START_NS).restore(Watched(), ALL)
    assert set(asked) == {70 * 60 * SECOND}


class Failing(Inline):
    """A pool in which every model fails."""

    def submit(self, chunk: Chunk) -> None:
        self._done += [Labelled(label, "worker_crashed") for label, _ in chunk.items]


def test_a_failing_fit_says_nothing_and_stops_nothing() -> None:
    run = Run(pool=Failing())
    run.feed(memory(a=shapes.leak(45, ONSET, 60, 1)))
    assert run.said == []
    assert run.processor.events["series_failed"] > 5


class Stuck(Inline):
    """A pool that never answers."""

    def poll(self) -> list[Labelled]:
        return []


def test_rounds_wait_for_the_one_under_way() -> None:
    run = Run(demo_profile().model_copy(update={"targets": (MEMORY,)}), pool=Stuck())
    run.feed(memory(a=shapes.leak(45, ONSET, 60, 1)))
    assert run.processor.events["rounds"] < 35
    assert run.processor.events["rounds_skipped"] > 10


def test_a_forecast_record_that_cannot_be_read_is_counted_and_does_not_stop_the_restore() -> None:
    topic = Topic([Record(topics.FORECASTS, 0, 0, b"k", b"\xff", (), START_NS)])
    processor = ForecastProcessor(demo_profile(), clock_ns=lambda: START_NS, pool=Inline())
    processor.restore(topic, ALL)
    assert processor.dropped == {"state_unreadable": 1}
