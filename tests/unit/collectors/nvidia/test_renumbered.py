"""A card that leaves the bus lets the driver number the ones behind it anew: none of them is lost, doubled or mixed up by it."""

from __future__ import annotations

import pytest

from tests.fakes import nvml
from tests.fakes.nvml.fixtures import fake_nvml, fake_nvml_library
from tests.unit.collectors.nvidia.rig import Rig, kind, values

__all__ = ["fake_nvml", "fake_nvml_library"]


def _found(rig: Rig) -> dict[str, tuple[int, float]]:
    return {
        sample.uid[-2:]: (sample.index, values(sample)["temperature_celsius"]) for sample in rig.last.samples[0].samples if values(sample)
    }


@pytest.mark.parametrize("gone", [0, 1, 2, 3])
def test_a_card_that_leaves_takes_no_other_along(fake_nvml: nvml.State, gone: int) -> None:
    state = nvml.State(fake_nvml.path, "h100", count=4)
    for index in range(4):
        state.device(index).set(temperature_celsius=40 + index)
    rig = Rig(state)
    rig.read()
    before = _found(rig)
    assert [temperature for _, temperature in before.values()] == [40.0, 41.0, 42.0, 43.0]
    uids = sorted(before)
    state.unplug(gone)
    said: list[str] = []
    for _ in range(4):
        rig.read(seconds=60.0)
        said += [event.uid[-2:] for event in rig.events() if kind(event) == "lost"]
    left = [uid for uid in uids if uid != uids[gone]]
    assert _found(rig) == {uid: (index, before[uid][1]) for index, uid in enumerate(left)}
    assert said == [uids[gone]]
    state.plug(gone)
    rig.plugin.cards.look_anew = True  # as the comparison with the PCI bus asks for
    rig.read(seconds=60.0)
    assert _found(rig) == before


def test_two_that_leave_and_come_in_another_order(fake_nvml: nvml.State) -> None:
    state = nvml.State(fake_nvml.path, "h100", count=5)
    rig = Rig(state)
    rig.read()
    before = _found(rig)
    state.unplug(1)
    state.unplug(3)
    for _ in range(3):
        rig.read(seconds=60.0)
    assert len(_found(rig)) == 3
    state.plug(3)
    rig.plugin.cards.look_anew = True
    rig.read(seconds=60.0)
    assert [index for index, _ in _found(rig).values()] == [0, 1, 2, 3]
    state.plug(1)
    rig.plugin.cards.look_anew = True
    rig.read(seconds=60.0)
    assert _found(rig) == before
