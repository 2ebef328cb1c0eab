"""The files Kafka is fetched and started with."""

from __future__ import annotations

import base64
from pathlib import Path
from xml.etree import ElementTree

from tests.integration.servers.kafka import ARTIFACTS, VERSION, cluster_id, pom, render, server_properties


def test_listens_on_loopback_only() -> None:
    properties = server_properties(19092, 19093, Path("/data"))
    listeners = [part.split("//")[1] for key in properties if "listeners" in key for part in properties[key].split(",")]
    assert listeners == ["127.0.0.1:19092", "127.0.0.1:19093", "127.0.0.1:19092"]
    assert properties["controller.quorum.bootstrap.servers"] == "127.0.0.1:19093"


def test_one_node_asks_for_one_replica() -> None:
    properties = server_properties(1, 2, Path("/data"))
    assert {properties[key] for key in properties if key.endswith(("replication.factor", ".isr"))} == {"1"}


def test_topics_are_made_on_purpose() -> None:
    assert server_properties(1, 2, Path("/data"))["auto.create.topics.enable"] == "false"


def test_properties_text_escapes_backslashes() -> None:
    assert render({"a": "1", "path": "C:\\x"}) == "a=1\npath=C:\\\\x\n"


def test_pom_names_the_artifacts() -> None:
    project = ElementTree.fromstring(pom(ARTIFACTS))
    found = [tuple(child.text for child in dependency) for dependency in project.iter("dependency")]
    assert found == [*ARTIFACTS]
    assert ("org.apache.kafka", "kafka_2.13", VERSION) in found


def test_cluster_id_is_a_uuid_that_is_no_option() -> None:
    ids = [cluster_id() for _ in range(500)]
    assert {len(text) for text in ids} == {22}
    assert {len(base64.urlsafe_b64decode(f"{text}==")) for text in ids} == {16}
    assert not [text for text in ids if text.startswith("-")]
