"""What an agent prints with ?names=dcgm another reads back: one table, both ways."""

from __future__ import annotations

import pytest

from schemas.catalogue import BY_NAME
from schemas.dcgm import table
from schemas.dcgm_names import Trail, encode
from schemas.device_state import DeviceState, FleetState
from schemas.identity import NodeRef
from schemas.telemetry import v1
from schemas.values import Value
from tests.unit.collectors.dcgm.pages import UID, understood

NODE = NodeRef("c", "gpu-node-1")
VALUE = {"1": 0.25, "Cel": 61.0, "Hz": 1.41e9, "W": 250.5, "J": 126272101.025, "s": 12.5, "By": 7 << 30, "By/s": 301e6}


def value(metric: str) -> Value:
    made = BY_NAME[metric]
    if made.wire == "bool":
        return True
    if made.wire in ("uint32", "uint64"):
        return VALUE["By"] if made.unit == "By" else 3
    return VALUE[made.unit]


def test_every_field_of_the_table_comes_back() -> None:
    values = {metric: value(metric) for metric in table().by_metric}
    values |= {"memory_total_bytes": 80 << 30, "memory_used_bytes": 60 << 30, "memory_reserved_bytes": 1 << 30}
    info = v1.DeviceInfo(vendor="nvidia", model="NVIDIA H100", kind="DEVICE_KIND_ACCELERATOR", bdf="0000:1b:00.0", driver_version="570.1")
    state = DeviceState(NODE, "nvidia", UID, 3, info, 1, 1, values)
    trail = Trail(last_xid=79, last_xid_text='fallen "off"', last_xid_at_ns=1, xids={79: 2})
    page = encode(FleetState(1, (state,), ()), {(NODE, UID): trail})
    (back,) = understood(page).reading.samples
    assert back.uid == UID
    assert (back.index, back.info.bdf, back.info.driver_version) == (3, "0000:1b:00.0", "570.1")
    assert {metric: getattr(back, metric) for metric in values} == pytest.approx(values, rel=1e-6)
    assert [event.code for event in understood(page).events] == [79]
