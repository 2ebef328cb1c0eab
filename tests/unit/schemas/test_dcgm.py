"""The table of DCGM's names fits the catalogue, and gives the units dcgm-exporter prints."""

from __future__ import annotations

import pytest

from schemas.catalogue import BY_NAME
from schemas.dcgm import FB_FREE, DcgmField, exported, table

DEFAULTS = 25
"""Families that dcgm-exporter 4.8 prints without being asked."""

UNIT = {"W": {1.0}, "Cel": {1.0}, "Hz": {1e6, 1.0}, "J": {1e-3, 1.0}, "By": {float(1 << 20), 1.0}, "s": {1e-9, 1.0}, "By/s": {1e3, 1.0}}


def test_the_default_set_is_complete() -> None:
    assert sum(row.default for row in table().rows) == DEFAULTS


@pytest.mark.parametrize("row", table().rows, ids=lambda row: row.name)
def test_each_factor_fits_the_catalogues_unit(row: DcgmField) -> None:
    assert row.help.endswith(".")
    if row.metric:
        allowed = UNIT.get(BY_NAME[row.metric].unit, {1.0, 1e-2})
        assert row.factor in allowed


def test_numbers_are_unique_and_the_printed_row_of_a_field_is_one() -> None:
    rows = table().rows
    assert len({row.number for row in rows}) == len(rows)
    assert {row.metric for row in rows if row.metric} == set(table().by_metric)


def test_values_come_out_in_dcgms_units() -> None:
    found = {
        row.name: value
        for row, value in exported(
            {
                "sm_clock_hertz": 1.98e9,
                "energy_joules": 126272101.025,
                "utilization_ratio": 0.07,
                "memory_total_bytes": 85899345920,
                "memory_used_bytes": 16637755392,
                "memory_reserved_bytes": 536870912,
                "power_watts": 71.523,
                "throttled_power_seconds": 5.0,
                "sm_active_ratio": 0.25,
                "remapped_rows_failed": True,
            }
        )
    }
    assert found == {
        "DCGM_FI_DEV_SM_CLOCK": 1980,
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 126272101025,
        "DCGM_FI_DEV_GPU_UTIL": 7,
        "DCGM_FI_DEV_FB_TOTAL": 81920,
        "DCGM_FI_DEV_FB_FREE": 81920 - 15867 - 512,
        "DCGM_FI_DEV_FB_USED": 15867,
        "DCGM_FI_DEV_FB_RESERVED": 512,
        "DCGM_FI_DEV_POWER_USAGE": 71.523,
        "DCGM_FI_DEV_POWER_VIOLATION": 5_000_000_000,
        "DCGM_FI_PROF_SM_ACTIVE": 0.25,
        "DCGM_FI_DEV_ROW_REMAP_FAILURE": 1,
    }


def test_free_memory_needs_all_three_parts() -> None:
    assert FB_FREE not in {row.name for row, _ in exported({"memory_total_bytes": 1 << 30, "memory_used_bytes": 1})}
