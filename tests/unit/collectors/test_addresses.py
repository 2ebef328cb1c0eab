"""A kernel line that names a PCI address finds its card, also after the driver has lost it."""

from __future__ import annotations

from pathlib import Path

from collectors.addresses import Addresses
from collectors.contract import NodeReading
from collectors.events import device_event
from schemas.builder import SampleBuilder
from schemas.identity import NodeRef
from schemas.telemetry import v1

NODE = NodeRef("c", "n")


def reading(uid: str, bdf: str, *, kind: v1.DeviceKind = v1.DeviceKind.DEVICE_KIND_ACCELERATOR, node: NodeRef | None = None) -> NodeReading:
    return NodeReading(1, (SampleBuilder(uid).info(v1.DeviceInfo(bdf=bdf, kind=kind)).build(),), node=node)


def event(bdf: str, node: NodeRef = NODE) -> v1.DeviceEvent:
    made = device_event(node, "kernel", "xid", 5, "x", code=79)
    made.bdf = bdf
    return made


def test_an_address_finds_its_card() -> None:
    known = Addresses(NODE)
    known.learn(reading("nvidia:GPU-1", "0000:3b:00.0"))
    known.learn(reading("nvidia:MIG-1", "0000:3b:00.0", kind=v1.DeviceKind.DEVICE_KIND_PARTITION))
    known.learn(reading("nvidia:GPU-9", "0000:5e:00.0", node=NodeRef("c", "other")))
    one, unknown, elsewhere = event("0000:3b:00.0"), event("0000:5e:00.0"), event("0000:3b:00.0", NodeRef("c", "other"))
    for each in (one, unknown, elsewhere):
        known.resolve(each)
    assert (one.uid, unknown.uid, elsewhere.uid) == ("nvidia:GPU-1", "", "")
    assert not one.details


def test_after_a_restart_the_address_is_still_known_and_said_to_be_old(tmp_path: Path) -> None:
    file = tmp_path / "state" / "addresses.json"
    Addresses(NODE, file).learn(reading("nvidia:GPU-1", "0000:3b:00.0"))
    again = Addresses(NODE, file)
    one = event("0000:3b:00.0")
    again.resolve(one)
    assert one.uid == "nvidia:GPU-1"
    assert "uid_learned" in one.details
    again.learn(reading("nvidia:GPU-2", "0000:3b:00.0"))
    new = event("0000:3b:00.0")
    again.resolve(new)
    assert new.uid == "nvidia:GPU-2"


def test_a_broken_file_and_a_folder_that_cannot_be_written_stop_nothing(tmp_path: Path) -> None:
    file = tmp_path / "addresses.json"
    file.write_text('["not", "a mapping"')
    known = Addresses(NODE, file)
    known.learn(reading("nvidia:GPU-1", "0000:3b:00.0"))
    assert "GPU-1" in file.read_text()
    blocked = tmp_path / "file"
    blocked.write_text("")
    known = Addresses(NODE, blocked / "addresses.json")
    known.learn(reading("nvidia:GPU-1", "0000:3b:00.0"))
    one = event("0000:3b:00.0")
    known.resolve(one)
    assert one.uid == "nvidia:GPU-1"
