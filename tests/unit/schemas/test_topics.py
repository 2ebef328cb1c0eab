"""The table of topics is the architecture's, and what it asks of Kafka follows from it."""

from schemas.topics import BY_NAME, TOPICS, settings

SINGLE = {"xpulse.peer-stats", "xpulse.findings", "xpulse.alert-state", "xpulse.alerts", "xpulse.alerts.json"}
COMPACTED = {"xpulse.inventory", "xpulse.allocations", "xpulse.alert-state"}


def test_partitions_and_retention() -> None:
    assert {t.name for t in TOPICS if t.compacted} == COMPACTED
    assert {t.name for t in TOPICS if t.partitions == 1} == SINGLE
    assert all(t.partitions is None for t in TOPICS if t.key == "cluster/node")


def test_settings_of_a_retained_and_a_compacted_topic() -> None:
    samples = settings(BY_NAME["xpulse.samples"], replication=3, min_insync=2)
    assert samples["message.timestamp.type"] == "LogAppendTime"
    assert samples["retention.ms"] == str(24 * 3_600_000)
    assert samples["min.insync.replicas"] == "2"
    assert samples["max.message.bytes"] == str(4 * 2**20)
    state = settings(BY_NAME["xpulse.alert-state"])
    assert state["cleanup.policy"] == "compact"
    assert int(state["delete.retention.ms"]) >= 7 * 24 * 3_600_000
    assert "retention.ms" not in state


def test_readers_and_writers_are_roles() -> None:
    from xpulse.roles import ROLES

    roles = {role.name for role in ROLES}
    assert all(set(t.readers) | set(t.writers) <= roles for t in TOPICS)
