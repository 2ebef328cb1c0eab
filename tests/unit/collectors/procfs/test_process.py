"""Who a process is, from /proc: names that try to confuse, PID namespaces, container cgroups, and processes that end meanwhile."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.procfs.process import Proc, Process, boot_seconds, cgroup_path, start_ticks, status_fields
from tests.fakes.procfs import BOOTED_AT_SECONDS, FakeProc

CGROUP_CASES = Path(__file__).parents[5] / "shared" / "data" / "kubernetes" / "cgroup_cases.json"


@pytest.fixture
def fake(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path / "proc")


def proc(fake: FakeProc) -> Proc:
    return Proc(fake.root, ticks_per_second=100)


def test_a_process_with_everything(fake: FakeProc) -> None:
    fake.add(4711, "python3", ticks=12_345, namespace_pids=(17, 1), user_id=1001, cgroup="0::/kubepods.slice/x.scope\n")
    assert proc(fake).process(4711) == Process(
        pid=4711,
        started_at_ns=BOOTED_AT_SECONDS * 10**9 + 123_450_000_000,
        name="python3",
        namespace_pids=(4711, 17, 1),
        user_id=1001,
        cgroup="/kubepods.slice/x.scope",
    )


@pytest.mark.parametrize("name", ["a b", "a) S 1 (b", "((", "x) R 9 9 9", "-"])
def test_a_name_cannot_move_the_fields_behind_it(fake: FakeProc, name: str) -> None:
    fake.add(7, name, ticks=500)
    found = proc(fake).process(7)
    assert found is not None
    assert (found.started_at_ns, found.name) == (BOOTED_AT_SECONDS * 10**9 + 5 * 10**9, name)


def test_a_name_that_the_kernel_cut_is_completed_by_its_program(fake: FakeProc) -> None:
    fake.add(8, "tritonserver-backend", program="/opt/tritonserver/bin/tritonserver-backend (deleted)")
    fake.add(9, "VLLM::EngineCore_0", program="/usr/bin/python3.12")
    names = [found.name for pid in (8, 9) if (found := proc(fake).process(pid))]
    assert names == ["tritonserver-backend", "VLLM::EngineCor"]


def test_one_that_is_not_there_is_none(fake: FakeProc) -> None:
    fake.add(5)
    fake.end(5)
    assert proc(fake).process(5) is None


def test_one_that_ends_while_it_is_read_keeps_what_was_read(fake: FakeProc) -> None:
    fake.add(5, ticks=100)
    for name in ("status", "cgroup", "comm"):
        (fake.root / "5" / name).unlink()
    assert proc(fake).process(5) == Process(5, BOOTED_AT_SECONDS * 10**9 + 10**9, "", (), None, "")


def test_the_time_of_boot_stays_although_the_clock_was_set(fake: FakeProc) -> None:
    fake.add(5, ticks=0)
    reader = proc(fake)
    reader.booted_at_ns()
    (fake.root / "stat").write_text("btime 5\n")
    found = reader.process(5)
    assert found is not None
    assert found.started_at_ns == BOOTED_AT_SECONDS * 10**9


def test_a_folder_that_is_no_proc_is_named() -> None:
    with pytest.raises(ValueError, match="btime"):
        boot_seconds("cpu 1 2\n")


def test_the_host_shows_its_kernel_threads(fake: FakeProc) -> None:
    assert proc(fake).view() == "host"


def test_a_host_that_hides_processes_shows_a_part(fake: FakeProc) -> None:
    fake.end(2)
    assert proc(fake).view() == "part"


def test_another_namespace_is_told_although_it_has_a_process_2(tmp_path: Path) -> None:
    fake = FakeProc(tmp_path / "proc", host=False)
    fake.add(2, "bash")
    assert proc(fake).view() == "other"
    (fake.root / "self" / "ns" / "pid").unlink()
    assert proc(fake).view() == "other"


def test_arguments_are_taken_apart(fake: FakeProc) -> None:
    fake.add(5, arguments=["python", "-c", "print(1)", ""])
    assert proc(fake).command_line(5) == ("python", "-c", "print(1)")


def test_this_process_is_found_as_it_is() -> None:
    found = Proc().process(os.getpid())
    assert found is not None
    assert found.user_id == os.getuid()
    assert found.namespace_pids[-1] == os.getpid()
    assert 0 <= time.time_ns() - found.started_at_ns < 86_400 * 10**9


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("0::/kubepods/pod1/c\n", "/kubepods/pod1/c"),
        ("12:cpu,cpuacct:/x\n4:memory:/docker/abc\n1:name=systemd:/docker/abc\n0::/\n", "/docker/abc"),
        ("5:memory:/\n0::/user.slice/s.scope\n", "/user.slice/s.scope"),
        ("1:name=systemd:/system.slice/a.service\n", "/system.slice/a.service"),
        ("0::/../../kubepods.slice/x\n", "/../../kubepods.slice/x"),
        ("0::/gone.scope (deleted)\n", "/gone.scope"),
        ("0::/a:b:c\n", "/a:b:c"),
        ("0::/\n", "/"),
        ("", ""),
        ("nonsense\n1:2\n", ""),
    ],
    ids=["v2", "v1", "hybrid", "systemd only", "seen from inside", "deleted", "colons", "root", "empty", "nonsense"],
)
def test_the_cgroup_that_names_the_container(text: str, path: str) -> None:
    assert cgroup_path(text) == path


def cgroup_cases() -> list[dict[str, Any]]:
    return json.loads(CGROUP_CASES.read_text()) if CGROUP_CASES.exists() else []


@pytest.mark.skipif(not CGROUP_CASES.exists(), reason="shared/data/kubernetes/cgroup_cases.json is not here")
def test_every_container_of_the_corpus_is_in_the_path_chosen() -> None:
    cases = [case for case in cgroup_cases() if case["expect"].get("container_id")]
    assert len(cases) > 3
    assert [case["source"] for case in cases if case["expect"]["container_id"] not in cgroup_path(case["cgroup"])] == []


@given(st.text())
def test_no_text_breaks_the_parsers(text: str) -> None:
    ticks = start_ticks(text)
    assert ticks is None or ticks >= 0
    assert isinstance(cgroup_path(text), str)
    assert all(":" not in name for name in status_fields(text))
