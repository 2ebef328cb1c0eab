"""MIG instances are devices of their own, with what is theirs alone; they come and go while everything runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.catalogue import CATALOGUE
from schemas.telemetry import v1
from tests.fakes import nvml
from tests.fakes.nvml import fixtures
from tests.fakes.nvml.fixtures import fake_nvml_library
from tests.unit.collectors.nvidia.rig import Rig, absent, values

__all__ = ["fake_nvml_library"]
CARD = "nvidia:GPU-5a0c3f1e-9d52-4b7a-8f64-0c1e5b2d7a90"
BOARD = {metric.name for metric in CATALOGUE if metric.board_level}


@pytest.fixture
def rig(fake_nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    """An H100 cut into 3g.40gb, 2g.20gb and two 1g.10gb."""
    state = nvml.State(tmp_path / "nvml.json", "h100-mig")
    fixtures.loaded(fake_nvml_library, monkeypatch, state)
    made = Rig(state)
    yield made
    made.plugin.close()
    fixtures.forget()


def parts(samples: list[v1.DeviceSample]) -> list[v1.DeviceSample]:
    return [sample for sample in samples if sample.info.parent_uid]


def test_each_instance_is_a_device_named_as_the_device_plugin_names_it(rig: Rig) -> None:
    first = parts(rig.read())[0]
    info = first.info
    assert info.uid == first.uid == "nvidia:MIG-3b1f6f8a-5c0d-5d0e-9a51-6a1f0e5c2d10"
    assert (info.parent_uid, info.kind, info.memory_kind) == (CARD, v1.DeviceKind.DEVICE_KIND_PARTITION, "discrete")
    shape = info.partition
    assert (shape.profile, shape.gpu_instance_id, shape.compute_instance_id) == ("3g.40gb", 2, 0)
    assert (shape.gpu_slices, shape.compute_slices, shape.multiprocessors) == (3, 3, 60)


def test_an_instance_has_its_memory_and_its_activity(rig: Rig) -> None:
    rig.read()
    first = values(parts(rig.read())[0])
    assert first["memory_total_bytes"] == 42_412_802_048
    assert first["memory_used_bytes"] == 11_629_756_416
    assert first["bar1_total_bytes"] == 25_940_721_664
    assert first["graphics_active_ratio"] == pytest.approx(0.97)
    assert first["sm_active_ratio"] == pytest.approx(0.955)
    assert first["fp16_active_ratio"] == pytest.approx(0.37)


def test_every_field_of_an_instance_is_said_and_the_board_is_the_cards(rig: Rig) -> None:
    rig.read()
    for sample in parts(rig.read()):
        missing = absent(sample)
        assert {metric.name for metric in CATALOGUE} == values(sample).keys() | missing.keys()
        assert set(missing.values()) == {"not_supported"}
        assert missing.keys() >= BOARD


def test_the_cards_own_utilisation_is_absent_and_its_board_is_read(rig: Rig) -> None:
    rig.state.device(0).set(utilization_percent=0)  # a driver that says 0 instead of not supported
    card = rig.card()
    assert {absent(card)[name] for name in ("utilization_ratio", "sm_active_ratio", "encoder_utilization_ratio")} == {"not_supported"}
    assert card.power_watts == pytest.approx(588.39)
    assert card.partitioning_enabled


def test_activity_has_to_be_looked_at_twice(rig: Rig) -> None:
    first = parts(rig.read())[0]
    assert not first.HasField("sm_active_ratio")
    assert "sm_active_ratio" not in absent(first)


def test_without_gpm_an_instances_activity_is_absent_never_zero(rig: Rig) -> None:
    rig.state.every.set(gpm_supported=0)
    rig.plugin.cards.reopen()
    rig.read()
    assert absent(parts(rig.read())[0])["sm_active_ratio"] == "not_supported"


def test_holes_in_the_numbering_are_no_instances(rig: Rig) -> None:
    rig.state.mig(0, [{"profile": "1g.10gb", "index": 1}, {"profile": "2g.20gb", "index": 5}])
    rig.read()
    assert [sample.index for sample in parts(rig.read())] == [1, 5]


def test_instances_made_anew_are_a_new_cut_and_nothing_is_lost(rig: Rig) -> None:
    old = {sample.uid for sample in parts(rig.read())}
    rig.state.mig(0, ["7g.80gb"])
    (new,) = parts(rig.read(slow=False))
    assert new.uid not in old
    assert new.info.partition.profile == "7g.80gb"
    (event,) = rig.events()
    assert rig.said() == ["reconfigured"]
    assert event.uid == CARD
    assert set(event.details["went"].split()) == old
    assert event.details["came"] == new.uid
    assert "7g.80gb" in event.text
    assert "3g.40gb" in event.text
    assert rig.read(slow=False)
    assert rig.said() == []


def test_an_instance_that_is_added_is_seen_within_ten_seconds(rig: Rig) -> None:
    rig.read()
    with rig.state.changing():
        rig.state.instances(0).append(rig.state.instances(0)[3] | {"index": 4, "gi": 11, "uuid": "MIG-added"})
    rig.read(slow=False)
    assert rig.said() == []
    assert "nvidia:MIG-added" in {sample.uid for sample in rig.read(slow=False, seconds=10)}
    assert rig.said() == ["reconfigured"]


def test_mig_may_be_turned_off_and_on_while_running(rig: Rig) -> None:
    rig.read()
    rig.state.mig(0, None)
    rig.state.device(0).set(utilization_percent=64)
    only = rig.read()
    assert [sample.uid for sample in only] == [CARD]
    assert rig.said() == ["reconfigured"]
    assert "MIG was turned off" in rig.events()[0].text
    assert rig.read()[0].utilization_ratio == pytest.approx(0.64)
    assert rig.read()[0].HasField("sm_active_ratio")
    rig.state.mig(0, ["3g.40gb", "3g.40gb"])
    assert len(parts(rig.read())) == 2
    assert "MIG was turned on" in rig.events()[0].text


def test_two_compute_instances_of_one_gpu_instance_share_what_is_told_of_it(rig: Rig) -> None:
    rig.state.mig(
        0,
        [
            {"profile": "3g.40gb", "gi": 2, "ci": 0, "name": "NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb"},
            {"profile": "3g.40gb", "gi": 2, "ci": 1, "name": "NVIDIA H100 80GB HBM3 MIG 2c.3g.40gb"},
        ],
    )
    rig.read()
    one, two = parts(rig.read())
    assert [(s.info.partition.profile, s.info.partition.compute_instance_id) for s in (one, two)] == [("1c.3g.40gb", 0), ("2c.3g.40gb", 1)]
    assert one.memory_total_bytes == two.memory_total_bytes == 42_412_802_048
    assert {absent(sample)["sm_active_ratio"] for sample in (one, two)} == {"not_supported"}


def test_a_lost_card_takes_its_instances_along_and_they_return_with_it(rig: Rig) -> None:
    count = len(rig.read())
    rig.state.lose(0)
    gone = rig.read(slow=False)
    assert len(gone) == count
    assert {reason for sample in gone for reason in absent(sample).values()} == {"lost"}
    assert rig.said() == ["lost"]
    rig.state.recover(0)
    back = rig.read()
    assert rig.said() == ["returned"]
    assert len(parts(back)) == count - 1
    assert all(sample.HasField("memory_used_bytes") for sample in parts(back))


def test_without_permission_for_an_instance_it_is_listed_and_says_so(rig: Rig) -> None:
    with rig.state.changing():
        rig.state.instances(0)[1]["memory_used_bytes"] = nvml.code(4)
    rig.read()
    assert absent(parts(rig.read())[1])["memory_used_bytes"] == "no_permission"


def test_the_kill_switch_leaves_only_the_cards(rig: Rig) -> None:
    off = Rig(rig.state, partitions=False)
    assert [sample.uid for sample in off.read()] == [CARD]
    off.plugin.close()


def test_samples_of_gpm_are_freed_with_their_instance(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = rig.plugin.source
    alive: set[int] = set()
    n = source.nvml
    allocate, free = n.nvmlGpmSampleAlloc, n.nvmlGpmSampleFree

    def allocated() -> object:
        made = allocate()
        alive.add(id(made))
        kept.append(made)
        return made

    def freed(sample: object) -> None:
        free(sample)
        alive.discard(id(sample))

    kept: list[object] = []  # so that no id is used twice
    monkeypatch.setattr(n, "nvmlGpmSampleAlloc", allocated)
    monkeypatch.setattr(n, "nvmlGpmSampleFree", freed)
    for layout in (["3g.40gb"], ["2g.20gb", "1g.10gb"], None, ["7g.80gb"]) * 2:
        rig.state.mig(0, layout)
        for _ in range(3):
            rig.read()
    assert len(alive) == 2
    rig.plugin.close()
    assert alive == set()
