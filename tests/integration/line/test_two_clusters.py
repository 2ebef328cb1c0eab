"""Two clusters with equal node names on one bus: nothing of one is ever taken for the other's."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from collectors.simulated.fleet import Fleet
from collectors.simulated.settings import Simulated
from schemas import topics
from schemas.identity import device_entity, fingerprint
from schemas.store import Measurement, Store, Tags
from schemas.telemetry import v1
from sinks.open import open_store
from sinks.settings import Influx, Sinks
from tests.fakes import nvml
from tests.integration.stack import Stack, bus_environment, embedded_bus, kafka_bus
from tests.integration.up import Up

if TYPE_CHECKING:
    from tests.integration.servers.influxdb import InfluxServer
    from tests.integration.servers.kafka import KafkaServer

CLUSTERS: Final = ("local-a", "local-b")
NODES, DEVICES, SEED = 2, 4, 7
FAULTS: Final = ("device_lost@25s+8s:card=local-a/sim-node-1/0", "ecc_burst@27s+8s:card=local-a/sim-node-2/1")
"""Late enough that the slowest machine has the whole line running before."""

LOST, BROKEN = ("device_lost", 0), ("ecc_uncorrected", 5)
"""Rules that the faults must raise, and the number of the card within its cluster."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a simulated card is, and who may hold it."""

    cluster: str
    node: str
    owner: tuple[str, str] | None


def simulated_places() -> dict[str, Place]:
    """By uid: what the run must agree with, from the simulator's own plan."""
    settings = Simulated(clusters=CLUSTERS, nodes=NODES, devices_per_node=DEVICES, seed=SEED)
    fleet = Fleet(settings, clusters=CLUSTERS, started_at_ns=time.time_ns())
    owners = {card: (s.namespace, s.name) for services in fleet.services_on.values() for s in services for card in s.cards}
    return {d.uid: Place(d.node.cluster, d.node.name, owners.get(d.number)) for d in fleet.layout.devices}


@pytest.fixture(params=["embedded bus, SQLite", pytest.param("Kafka, InfluxDB", marks=pytest.mark.integration)])
def elsewhere(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[dict[str, str], Sinks]:
    """The environment that gives `xpulse up` its bus and store, and the settings to read that store with."""
    if request.param.startswith("embedded"):
        return {}, Sinks()
    kafka: KafkaServer = request.getfixturevalue("kafka_server")
    influx: InfluxServer = request.getfixturevalue("influx_server")
    bus = kafka_bus(kafka)
    token = tmp_path / "token"
    token.write_text(influx.token)
    target = Influx(url=influx.url, org=influx.org, bucket=bus.topic_prefix + "clusters", token_file=token)
    influx.request("POST", "/api/v2/buckets", json.dumps({"name": target.bucket, "orgID": organisation(influx)}).encode())
    settings = {
        "XPULSE_SINKS__STORE": "influxdb",
        "XPULSE_SINKS__INFLUXDB__URL": target.url,
        "XPULSE_SINKS__INFLUXDB__ORG": target.org,
        "XPULSE_SINKS__INFLUXDB__BUCKET": target.bucket,
        "XPULSE_SINKS__INFLUXDB__TOKEN_FILE": str(token),
    }
    return bus_environment(bus) | settings, Sinks(store="influxdb", influxdb=target)


def organisation(influx: InfluxServer) -> str:
    found = json.loads(influx.request("GET", f"/api/v2/orgs?org={influx.org}"))
    return str(found["orgs"][0]["id"])


@pytest.mark.slow
def test_a_simulated_fleet_of_two_clusters(elsewhere: tuple[dict[str, str], Sinks], tmp_path: Path) -> None:
    environment, sinks = elsewhere
    options = [
        "--no-view",
        "--simulate",
        f"{len(CLUSTERS)}x{NODES}x{DEVICES}",
        "--seed",
        str(SEED),
        "--for",
        "45s",
        "--summary",
        "run.json",
    ]
    for fault in FAULTS:
        options += ["--fault", fault]
    with Up(tmp_path / "up", *options, environment=environment) as up:
        assert up.process.wait(200) == 0, up.logs()
        run = json.loads((up.work / "run.json").read_text())
        store = open_store(sinks, up.state)
        try:
            check(store, run)
        except AssertionError as error:
            error.add_note(json.dumps(run, indent=1) + up.logs())
            raise
        finally:
            store.close()


def check(store: Store, run: Mapping[str, Any]) -> None:
    places = simulated_places()
    assert {p.node for p in places.values() if p.cluster == CLUSTERS[0]} == {p.node for p in places.values() if p.cluster == CLUSTERS[1]}
    assert run["samples"]["missing"] == 0
    assert run["samples"]["published"] == run["samples"]["joined"] == run["samples"]["stored"] > 0
    assert run["alerts_doubled"] == run["dlq"] == []

    devices = [(tags["cluster"], tags["node"], tags["uid"]) for tags in all_series(store, "device")]
    assert sorted(devices) == sorted((p.cluster, p.node, uid) for uid, p in places.items()), "one series a card, in its own cluster"

    owners = {(tags["uid"], (tags["namespace"], tags["workload"])) for tags in all_series(store, "usage") if "workload" in tags}
    assert owners, "nobody owns anything"
    for tags in all_series(store, "usage"):
        place = places[tags["uid"]]
        assert (tags["cluster"], tags["node"]) == (place.cluster, place.node)
        assert "workload" not in tags or (tags["namespace"], tags["workload"]) == place.owner

    end_ns = time.time_ns()
    for interval in store.intervals(start_ns=0, end_ns=end_ns):
        place = places[interval.uid]
        assert (interval.cluster, interval.node, (interval.namespace, interval.workload)) == (place.cluster, place.node, place.owner)
    clusters_of_events = set()
    for event in store.events(start_ns=0, end_ns=end_ns):
        tags = dict(event.tags)
        clusters_of_events.add(tags["cluster"])
        if "uid" in tags:
            assert (tags["cluster"], tags["node"]) == (places[tags["uid"]].cluster, places[tags["uid"]].node)
    assert CLUSTERS[0] in clusters_of_events
    services = {(tags["cluster"], tags["node"], (tags["namespace"], tags["service"])) for tags in all_series(store, "service")}
    assert services <= {(p.cluster, p.node, p.owner) for p in places.values()}
    assert {cluster for cluster, _, _ in services} == set(CLUSTERS)

    by_number = list(places)
    wanted = {(rule, device_entity(by_number[number])) for rule, number in (LOST, BROKEN)}
    for measurement in ("finding", "alert"):
        found = all_series(store, measurement)
        assert wanted <= {(tags["rule"], tags["entity"]) for tags in found}
        for tags in found:
            uid = tags["entity"].removeprefix("device/")
            assert tags["cluster"] == CLUSTERS[0] == places[uid].cluster, f"a {measurement} in the cluster that has no fault: {tags}"
            assert tags["node"] == places[uid].node


def all_series(store: Store, measurement: Measurement) -> list[dict[str, str]]:
    found: list[Tags] = store.series(measurement)
    return [dict(tags) for tags in found]


# The hardest case: cards without a UUID are named by node and PCI address, which are equal in both clusters.

NODE: Final = "gpu-node-1"
UID: Final = f"nvidia:{NODE}:0000:00:09.0"
FAULTY, SOUND = "prod-a", "prod-b"
PENDING_RULE, FAILED_RULE = "row_remap_pending", "row_remap_failed"


class Twins:
    """Two agents, each in its own cluster, whose only card has the same name in both; and everything behind them."""

    def __init__(self, stack: Stack, library: Path, folder: Path) -> None:
        self.stack = stack
        self.cards: dict[str, nvml.State] = {}
        stack.start("sink", "sqlite")
        for role in ("attribute", "detect", "alert"):
            stack.start("stream", role)
        stack.start("forecast")
        for cluster, used in ((FAULTY, 10_000_000_000), (SOUND, 20_000_000_000)):
            card = nvml.State(folder / f"{cluster}.state")
            card.set(_0__uuid="!3", every__memory_used_bytes=used)
            self.cards[cluster] = card
            environment = {
                "LD_LIBRARY_PATH": str(library.parent),
                nvml.STATE_VARIABLE: str(card.path),
                "XPULSE_CLUSTER": cluster,
                "XPULSE_NODE": NODE,
                "XPULSE_COLLECTORS__PLUGINS": json.dumps({"nvidia": {"on_unavailable": "fail"}}),
                "XPULSE_COLLECTORS__INTERVAL_SECONDS": "0.5",
                "XPULSE_COLLECTORS__SLOW_INTERVAL_SECONDS": "1",
            }
            stack.start("agent", environment=environment, state=folder / cluster)
        self.store = stack.store()

    def memory(self) -> dict[str, float]:
        """What the store says each cluster's card uses."""
        try:
            found = self.store.latest("device", where={"uid": UID})
        except ConnectionError:
            return {}
        return {dict(f.tags)["cluster"]: float(f.values["memory_used_bytes"][0]) for f in found if "memory_used_bytes" in f.values}

    def alerts(self) -> list[v1.Alert]:
        return [m for m in self.stack.messages(topics.ALERTS) if isinstance(m, v1.Alert)]

    def seen(self, rule: str, cluster: str) -> list[int]:
        """Statuses of that rule's alert in a cluster, in order."""
        return [a.status for a in self.alerts() if (a.rule, a.cluster) == (rule, cluster)]


@pytest.fixture
def twins(tmp_path: Path, fake_nvml_library: Path) -> Iterator[Twins]:
    environment = {"XPULSE_STREAMS__ATTRIBUTE__WAIT_SECONDS": "1"}
    with embedded_bus() as bus, Stack(bus, tmp_path, environment) as stack:
        yield Twins(stack, fake_nvml_library, tmp_path)


def test_cards_of_the_same_name_in_two_clusters(twins: Twins) -> None:
    firing, resolved = v1.AlertStatus.ALERT_STATUS_FIRING, v1.AlertStatus.ALERT_STATUS_RESOLVED
    until = twins.stack.until
    until(lambda: twins.memory() == {FAULTY: 10e9, SOUND: 20e9}, "both cards are in the store with their own values")

    twins.cards[FAULTY].set(every__remapped_pending=1)
    until(lambda: twins.seen(PENDING_RULE, FAULTY) == [firing], "the faulty card's alert fires")

    # the same finding in both: two alerts; it ends in one: the other stays
    for card in twins.cards.values():
        card.set(every__remapped_failed=1)
    until(lambda: twins.seen(FAILED_RULE, FAULTY) == twins.seen(FAILED_RULE, SOUND) == [firing], "both alerts fire")
    twins.cards[SOUND].set(every__remapped_failed=0, every__memory_used_bytes=30_000_000_000)
    until(lambda: twins.seen(FAILED_RULE, SOUND) == [firing, resolved], "the sound card's alert ends")
    until(lambda: twins.memory() == {FAULTY: 10e9, SOUND: 30e9}, "each card has its own memory still")
    assert twins.seen(FAILED_RULE, FAULTY) == [firing]
    assert twins.seen(PENDING_RULE, SOUND) == [], "an alert in the cluster that has no such fault"

    marks = {(a.rule, a.cluster): a.fingerprint for a in twins.alerts()}
    assert marks == {key: fingerprint(*key, device_entity(UID)) for key in marks}
    assert len(set(marks.values())) == len(marks) == 3
    assert {(a.node, a.entity) for a in twins.alerts()} == {(NODE, device_entity(UID))}

    places = [(dict(tags)["cluster"], dict(tags)["uid"]) for tags in twins.store.series("device")]
    assert sorted(places) == [(FAULTY, UID), (SOUND, UID)]
    until(lambda: {cluster for cluster, _, _ in joined(twins)} == {FAULTY, SOUND}, "both clusters' samples are joined")
    assert set(joined(twins).values()) == {1}, "each batch is joined once, with its own card"
    values = {s.tags: set(s.values.tolist()) for s in twins.store.range("device", ["memory_used_bytes"], start_ns=0, end_ns=time.time_ns())}
    assert {dict(tags)["cluster"]: used for tags, used in values.items()} == {FAULTY: {10e9}, SOUND: {20e9, 30e9}}


def joined(twins: Twins) -> Counter[tuple[str, int, int]]:
    """Rows of usage by cluster, epoch and sequence of the batch."""
    found: Counter[tuple[str, int, int]] = Counter()
    for message in twins.stack.messages(topics.USAGE):
        assert isinstance(message, v1.AttributedBatch)
        found[(message.cluster, message.agent_epoch, message.sequence)] += len(message.rows)
    return found
