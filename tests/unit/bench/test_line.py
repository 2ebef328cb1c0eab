"""`bench-line --quick` runs the real roles end to end: it counts, it never judges time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.line import QUICK, main


@pytest.mark.slow
@pytest.mark.parametrize("runner", ["direct", "faust"])
def test_a_quick_run_on_the_embedded_bus_loses_nothing(runner: str, tmp_path: Path) -> None:
    out = tmp_path / "line.json"
    assert main(["--quick", "--only", f"embedded-{runner}", "ceilings", "--out", str(out)]) == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    name = f"embedded_{runner}"
    assert found[f"{name}_missing"] == 0
    assert found[f"{name}_whole"] == 1
    assert found[f"{name}_samples"] == QUICK.samples_per_tick * QUICK.ticks
    assert found[f"{name}_findings"] > 0
    assert found[f"{name}_samples_per_second"] > 0
    assert found[f"{name}_ratio_to_raw"] > 0
    for role in ("attribute", "detect", "alert", "store", "bus", "producer"):
        assert found[f"{name}_cpu_us_per_sample_{role}"] >= 0  # the kernel counts in steps of 10 ms
    for ceiling in ("sqlite_raw_rows", "embedded_consume_only_samples"):
        assert found[f"{ceiling}_per_second"] > 0


def test_an_unknown_case_is_wrong_use() -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--only", "nothing"])
