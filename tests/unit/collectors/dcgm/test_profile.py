"""Profiling figures for the nvidia plugin."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.dcgm.profile import FIELDS, profiles
from tests.unit.collectors.dcgm.pages import GPU, H100, MIG, lines


def test_each_gpu_and_each_instance() -> None:
    assert profiles(H100)[GPU] == pytest.approx(
        {"graphics_active_ratio": 0.972113, "tensor_active_ratio": 0.40122, "dram_active_ratio": 0.310998}
    )
    found = profiles(MIG.encode())
    gpu = "GPU-0d5a3c1e-7a11-4b0e-9c55-00000000000a"
    assert set(found) == {f"{gpu}/gi7", f"{gpu}/gi2"}
    assert found[f"{gpu}/gi7"]["sm_active_ratio"] == 1.0


def test_blanks_and_nonsense_are_not_there() -> None:
    page = lines({"DCGM_FI_PROF_SM_ACTIVE": 140737488355328.0, "DCGM_FI_PROF_DRAM_ACTIVE": 0.5, "DCGM_FI_PROF_PIPE_FP16_ACTIVE": 7})
    assert profiles(page) == {GPU: {"dram_active_ratio": 0.5}}
    assert profiles(lines({"DCGM_FI_DEV_GPU_TEMP": 5})) == {}


@settings(max_examples=50)
@given(st.binary(max_size=200))
def test_no_page_raises(page: bytes) -> None:
    assert set().union(*profiles(page).values()) <= set(FIELDS)
