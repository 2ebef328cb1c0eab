"""Numbers of any size are read side by side as protobuf reads them."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from schemas.telemetry import v1
from schemas.wire import Buffer

SEQUENCE = v1.SampleBatch.DESCRIPTOR.fields_by_name["sequence"].number
DRIVER_EPOCH = v1.SampleBatch.DESCRIPTOR.fields_by_name["driver_epoch"].number


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 2**64 - 1), st.integers(1, 2**64 - 1)), min_size=1, max_size=5))
@example([(2**56 - 1, 2**56), (2**63 - 1, 2**63), (1, 2**64 - 1)])
def test_numbers_of_any_size(numbers: list[tuple[int, int]]) -> None:
    raws = [v1.SampleBatch(node="n", sequence=a, driver_epoch=b, driver_version="after").SerializeToString() for a, b in numbers]
    ends = np.cumsum([len(raw) for raw in raws])
    fields = Buffer(raws).walk(np.concatenate(([0], ends[:-1])), ends, (SEQUENCE, DRIVER_EPOCH))
    assert {f.number: f.value.tolist() for f in fields} == {SEQUENCE: [a for a, _ in numbers], DRIVER_EPOCH: [b for _, b in numbers]}
