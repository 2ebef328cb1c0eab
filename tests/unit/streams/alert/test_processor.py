"""The alert role as a runner drives it: what it writes, in which order, and what it makes of a restart."""

from __future__ import annotations

from schemas import topics
from schemas.codec import MAJOR, MINOR
from schemas.flow import DeadLetter, Emitted, Out, Partition, Record, Tick
from schemas.telemetry import v1
from streams.processors.alert import AlertProcessor
from streams.settings import Alerting
from tests.fakes.log_reader import LogReader
from tests.unit.streams.alert.build import alerts, at, finding, record, told

OWNED = frozenset({Partition(topics.FINDINGS, 0)})
STATE, ALERTS = (topics.ALERT_STATE, 0), (topics.ALERTS, 0)


def processor() -> AlertProcessor:
    return AlertProcessor.of(Alerting())


def feed(one: AlertProcessor, *findings: v1.Finding) -> list[Emitted]:
    return list(one.process([record(f, n) for n, f in enumerate(findings)]))


def logged(emitted: list[Emitted], at_seconds: float) -> LogReader:
    logs: dict[tuple[str, int], list[Record]] = {STATE: [], ALERTS: []}
    for out in emitted:
        if isinstance(out, Out):
            log = logs[out.topic, 0]
            log.append(Record(out.topic, 0, len(log), out.key, out.value, out.headers, at(at_seconds)))
    return LogReader(logs)


def restored(emitted: list[Emitted]) -> AlertProcessor:
    one = processor()
    one.restore(logged(emitted, 100), OWNED)
    return one


def test_a_transition_is_owed_then_published_then_crossed_off() -> None:
    assert told(feed(processor(), finding(1))) == ["state firing (owed)", "|", "FIRING", "|", "state firing"]


def test_a_resolve_ends_with_a_tombstone() -> None:
    one = processor()
    feed(one, finding(1))
    assert told(list(one.process([record(finding(2, False), 1)]))) == ["state resolved (owed)", "|", "RESOLVED", "|", "gone"]


def test_pending_is_written_but_not_published_and_dropped_in_silence() -> None:
    assert told(feed(processor(), finding(1, hold=60), finding(2, False))) == ["state pending", "gone"]


def test_transitions_of_different_alerts_share_their_barriers() -> None:
    emitted = feed(processor(), finding(1, entity="device/a"), finding(1, entity="device/b"), finding(2, False, entity="device/a"))
    first, second = 8, 5
    assert told(emitted[:first]) == [*["state firing (owed)"] * 2, "|", "FIRING", "FIRING", "|", *["state firing"] * 2]
    assert told(emitted[first:]) == ["state resolved (owed)", "|", "RESOLVED", "|", "gone"]
    assert len(emitted) == first + second


def test_an_alert_carries_cloud_event_headers_that_name_the_transition() -> None:
    out = feed(processor(), finding(1))[2]
    assert isinstance(out, Out)
    headers = dict(out.headers)
    (alert,) = alerts([out])
    assert headers["ce_id"] == f"{alert.episode}-firing".encode()
    assert headers["ce_time"] == b"2023-11-14T22:13:21.000000000Z"
    assert headers["schema-version"] == f"{MAJOR}.{MINOR}".encode()
    assert out.key == alert.fingerprint.encode()


def test_a_bad_record_is_a_dead_letter() -> None:
    bad = record(finding(1), 0)._replace(value=b"")
    (letter,) = processor().process([bad])
    assert letter == DeadLetter(bad, "empty value")


def test_repeats_are_counted() -> None:
    one = processor()
    feed(one, finding(1), finding(1))
    one.restore(LogReader({}), OWNED)
    feed(one, finding(1), finding(1))
    assert one.dropped == {"repeated": 2}


def test_restored_open_episodes_go_on_and_replays_are_ignored() -> None:
    written = feed(processor(), finding(1))
    one = restored(written)
    assert one.open_alerts == 1
    assert feed(one, finding(1)) == []
    (resolved,) = alerts(feed(one, finding(5, False)))
    assert resolved.episode == alerts(written)[0].episode


def test_an_owed_alert_that_was_not_published_is_sent_by_the_next_call() -> None:
    written = feed(processor(), finding(1))
    one = restored(written[:1])
    assert list(one.tick(Tick(at(2)))) == written
    assert list(one.tick(Tick(at(3)))) == []


def test_an_owed_alert_that_was_published_is_only_crossed_off() -> None:
    written = feed(processor(), finding(1))
    assert list(restored(written[:3]).process([])) == written[-1:]


def test_an_episode_that_ended_before_the_crash_is_not_lived_again() -> None:
    one = processor()
    life = [finding(1), finding(5, False)]
    written = feed(one, *life)
    assert feed(restored(written), *life) == []


def test_who_owns_no_findings_reads_and_keeps_nothing() -> None:
    one = processor()
    written = feed(one, finding(1))
    one.restore(logged(written, 100), frozenset())
    assert one.open_alerts == 0


def test_unreadable_state_is_passed_over() -> None:
    reader = logged(feed(processor(), finding(1)), 100)
    log = list(reader.logs[STATE])
    one = processor()
    one.restore(LogReader({STATE: [log[0]._replace(key=b"x", value=b"\xff"), *log]}), OWNED)
    assert one.open_alerts == 1
