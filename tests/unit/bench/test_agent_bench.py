"""bench-agent's reading part runs and its figures are there; it never judges time."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.agent import GPUS, reading
from bench.exporters import all_smi, xpulse
from xpulse.testing.nvml import NoCompiler, State, build


def test_the_reading_part_gives_plausible_figures(tmp_path: Path) -> None:
    try:
        library = build(tmp_path / "library")
    except NoCompiler as error:
        pytest.skip(str(error))
    state = State(tmp_path / "nvml.json", "h100", count=GPUS)
    found = reading(library, state.path, cycles=20)
    assert set(found) == {
        "cpu_ratio_to_bare_nvml",
        "cpu_us_above_bare_per_gpu",
        "wall_ms_per_cycle",
        "bare_wall_ms_per_cycle",
        "calls_per_fast_cycle",
    }
    assert found["cpu_ratio_to_bare_nvml"] > 0
    assert found["wall_ms_per_cycle"] > 0
    assert found["bare_wall_ms_per_cycle"] > 0
    assert found["calls_per_fast_cycle"] >= GPUS * 2
    assert found["calls_per_fast_cycle"] % GPUS == 0, "each card is asked the same"


def test_series_of_devices_and_of_processes_are_told_apart(tmp_path: Path) -> None:
    ours = xpulse(tmp_path)
    assert ours.mine.match('xpulse_device_power_watts{uid="a"} 1')
    assert not ours.mine.match("# HELP xpulse_device_power_watts Power.")
    assert not ours.mine.match("xpulse_agent_reads_total 1")
    assert not ours.mine.match("process_cpu_seconds_total 1")


def test_all_smi_is_told_of_a_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.exporters.shutil.which", lambda name: f"/somewhere/{name}")
    exporter = all_smi(tmp_path)
    assert exporter.command(1234)[:2] == ["/somewhere/all-smi", "api"]
    assert (tmp_path / "bin" / "nvidia-smi").stat().st_mode & 0o100
    assert exporter.mine.match('all_smi_gpu_utilization{gpu="x"} 3')
    assert exporter.of_processes.match('all_smi_process_memory_used_bytes{pid="1"} 3')
    assert not exporter.mine.match("all_smi_cpu_utilization 3")
