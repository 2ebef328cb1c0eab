"""The summary counts what is true: a gap, a batch that is not stored, a doubled alert each show, and nothing else does."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from schemas import topics
from schemas.codec import encode
from schemas.flow import Out, Record
from schemas.store import Event, Interval, Latest, Measurement, Row, Series, Tags
from schemas.telemetry import v1
from xpulse.local import tally as tally_module
from xpulse.local.summary import not_stored, summarise
from xpulse.local.tally import Epoch, Tally

S = 1_000_000_000
EPOCH = Epoch("c", "n", "simulated", 7)


def record(out: Out, offset: int = 0) -> Record:
    return Record(out.topic, 0, offset, out.key, out.value, out.headers, 0)


def batch(sequence: int, *, epoch: int = 7, cluster: str = "c") -> Record:
    message = v1.SampleBatch(cluster=cluster, node="n", source="simulated", agent_epoch=epoch, sequence=sequence, taken_at_ns=sequence * S)
    message.devices.add(uid="simulated:a")
    message.devices.add(uid="simulated:b")
    return record(encode(topics.SAMPLES, b"c/n", message))


def alert(status: v1.AlertStatus, episode: str = "f-1") -> Record:
    message = v1.Alert(fingerprint="f", episode=episode, status=status, rule="memory", entity="device/a", at_ns=5 * S)
    return record(encode(topics.ALERTS, b"f", message))


class StoreOf:
    """A Store that holds these points of `device`: (cluster, uid, at_ns, seq)."""

    def __init__(self, points: Sequence[tuple[str, str, int, int]]) -> None:
        self._points = points

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
        found: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for cluster, uid, at, seq in self._points:
            if start_ns <= at < end_ns:
                found.setdefault((cluster, uid), []).append((at, seq))
        return [
            Series(
                (("cluster", cluster), ("node", "n"), ("uid", uid)),
                "seq",
                np.array([at for at, _ in rows], dtype=np.int64),
                np.array([seq for _, seq in rows], dtype=np.float64),
            )
            for (cluster, uid), rows in found.items()
        ]

    def latest(self, measurement: Measurement, *, where: Mapping[str, str] | None = None, since_ns: int = 0) -> list[Latest]:
        return []

    def rows(self, measurement: Measurement, *, start_ns: int, end_ns: int, where: Mapping[str, str] | None = None) -> list[Row]:
        return []

    def series(self, measurement: Measurement, *, where: Mapping[str, str] | None = None) -> list[Tags]:
        return []

    def events(self, *, start_ns: int, end_ns: int, where: Mapping[str, str] | None = None) -> list[Event]:
        return []

    def intervals(self, *, start_ns: int, end_ns: int, where: Mapping[str, str] | None = None) -> list[Interval]:
        return []

    def close(self) -> None: ...


def points(*sequences: int, cluster: str = "c") -> list[tuple[str, str, int, int]]:
    return [(cluster, uid, s * S, s) for s in sequences for uid in ("simulated:a", "simulated:b")]


def summary(tally: Tally, store: StoreOf) -> dict[str, object]:
    return summarise(
        tally,
        missing=not_stored(tally, store),
        children=[],
        seconds_to_first_row=1.234,
        seconds=10,
        started_at_ns=0,
        simulated=True,
        seed=7,
        faults=[],
    )


def test_all_there() -> None:
    tally = Tally(detailed=True)
    tally.add([batch(1), batch(2), batch(3)])
    samples = summary(tally, StoreOf(points(1, 2, 3)))["samples"]
    assert isinstance(samples, dict)
    assert (samples["published"], samples["stored"], samples["missing"]) == (3, 3, 0)


def test_a_gap_and_a_hole_in_the_store_are_missing() -> None:
    tally = Tally(detailed=True)
    tally.add([batch(1), batch(2), batch(4)])
    half = [*points(1, 4), ("c", "simulated:a", 2 * S, 2)]  # of batch 2 only one device arrived
    samples = summary(tally, StoreOf(half))["samples"]
    assert isinstance(samples, dict)
    assert samples["missing"] == 2
    assert samples["not_stored"][0]["sequences"] == [2]
    assert samples["gaps"][0]["sequences"] == [3]


def test_clusters_with_equal_node_names_do_not_stand_in_for_each_other() -> None:
    tally = Tally(detailed=True)
    tally.add([batch(1), batch(1, cluster="d")])
    assert tally.published_total() == 2
    assert not_stored(tally, StoreOf(points(1, 1))) == {Epoch("d", "n", "simulated", 7): [1]}


def test_a_restarted_agent_begins_a_new_epoch_and_leaves_a_tail() -> None:
    tally = Tally(detailed=True)
    tally.add([batch(1), batch(2), batch(1, epoch=9)])
    assert tally.gaps() == {}
    tails = summary(tally, StoreOf(points(1, 2)))["samples"]["unacknowledged_tails"]  # type: ignore[index]
    assert tails == [{**EPOCH._asdict(), "last_sequence": 2}]


def test_a_doubled_alert_shows_and_counts_once() -> None:
    tally = Tally(detailed=True)
    tally.add(
        [alert(v1.AlertStatus.ALERT_STATUS_FIRING), alert(v1.AlertStatus.ALERT_STATUS_FIRING), alert(v1.AlertStatus.ALERT_STATUS_RESOLVED)]
    )
    assert tally.doubled() == [("f", "f-1", v1.AlertStatus.ALERT_STATUS_FIRING)]
    assert tally.transitions == {("memory", "device/a", "firing"): 1, ("memory", "device/a", "resolved"): 1}
    assert tally.alerts == {}


def test_malformed_is_counted_and_nothing_stops() -> None:
    tally = Tally(detailed=True)
    tally.add([Record(topics.SAMPLES, 0, 0, b"k", b"\xff", (), 0), batch(1)])
    assert sum(tally.malformed.values()) == 1
    assert tally.published_total() == 1


def test_what_a_later_release_says_is_counted_under_its_number() -> None:
    tally = Tally()
    usage = v1.AttributedBatch(cluster="c", node="n", source="s", taken_at_ns=1, rows=[v1.Attributed(uid="a", owner_state=99)])  # type: ignore[arg-type]  # not known here
    tally.add([alert(98), record(encode(topics.USAGE, b"c/n", usage))])  # type: ignore[arg-type]  # as above
    assert tally.owners == {"unknown_99": 1}
    assert tally.transitions == {("memory", "", "unknown_98"): 1}


def test_equal_device_names_in_two_clusters_are_two_forecasts() -> None:
    tally = Tally()
    made = [v1.Forecast(cluster=c, node="n", entity="device/nvidia:n:0000:01:00.0", metric="m", made_at_ns=1) for c in "ab"]
    tally.add([record(encode(topics.FORECASTS, b"k", one)) for one in made])
    assert len(tally.forecasts) == 2


def test_a_run_without_an_end_keeps_its_memory_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally_module, "MOST", 10)
    monkeypatch.setattr(tally_module, "MOST_REASONS", 3)
    tally = Tally()
    for n in range(50):
        finding = v1.Finding(rule="memory", cluster="c", entity=f"device/{n}", active=True, observed_at_ns=1)
        cleared = v1.Finding(rule="memory", cluster="c", entity=f"device/{n}", active=False, observed_at_ns=2)
        tally.add([record(encode(topics.FINDINGS, b"k", one)) for one in ([finding, cleared] if n % 2 else [finding])])
        tally.add([alert(v1.AlertStatus.ALERT_STATUS_FIRING, f"f-{n}"), alert(v1.AlertStatus.ALERT_STATUS_RESOLVED, f"f-{n}")])
        tally.add([batch(1, epoch=n + 1), batch(2, epoch=n + 1)])
        tally.add([Record(topics.DLQ, 0, n, b"k", b"v", (("group", b"g"), ("reason", b"reason %d" % n)), 0)])
    assert tally.findings == {("memory", "", "active"): 50, ("memory", "", "clear"): 25}
    assert tally.transitions == {("memory", "", "firing"): 50, ("memory", "", "resolved"): 50}
    assert sum(tally.dead_letters.values()) == 50
    assert tally.dead_letters["g", "other reasons"] == 47
    assert tally.timeline[-1] == (5 * S, "memory", "device/a", "resolved")
    for kept in (tally.active, tally.transition_ids, tally.timeline, tally.last_sequence, tally.alerts):
        assert len(kept) <= 10
