"""Processes of a node on the fake libnvidia-ml, through the real pynvml: who they are, what they use, and when they are asked for."""

from __future__ import annotations

import pytest

from collectors.nvidia.processes.lists import Instance
from schemas.telemetry import v1
from tests.fakes.nvml.fixtures import fake_nvml, fake_nvml_library, forget, loaded, old_nvml_library
from tests.fakes.procfs import BOOTED_AT_SECONDS
from tests.unit.collectors.nvidia.processes.nodes import GIB, Node, absent, container, node, told

__all__ = ["container", "fake_nvml", "fake_nvml_library", "forget", "loaded", "node", "old_nvml_library"]


def test_a_process_with_everything(node: Node) -> None:
    node.proc.add(
        4711, "python3", ticks=500, namespace_pids=(1,), user_id=7, cgroup="0::/kubepods/pod1/c1\n", arguments=["python3", "a.py"]
    )
    node.use(0, {"pid": 4711, "memory_bytes": GIB, "sm_percent": 40, "memory_percent": 10, "encoder_percent": 5, "decoder_percent": 0})
    (sample,) = node.samples()
    assert sample == v1.ProcessSample(
        device_uid="gpu:0",
        pid=4711,
        started_at_ns=BOOTED_AT_SECONDS * 10**9 + 5 * 10**9,
        namespace_pids=[4711, 1],
        uses=1,
        memory_used_bytes=GIB,
        sm_utilization_ratio=0.4,
        memory_utilization_ratio=0.1,
        encoder_utilization_ratio=0.05,
        decoder_utilization_ratio=0.0,
        name="python3",
        user_id=7,
        cgroup="/kubepods/pod1/c1",
    )


def test_an_empty_list_was_taken(node: Node) -> None:
    taken = node.take()
    assert taken.samples == ()
    assert not taken.rejects


def test_one_process_of_several_lists_is_one_with_several_uses(node: Node) -> None:
    both = {"pid": 5, "memory_bytes": GIB}
    node.use(0, both, both | {"type": "graphics"}, {"pid": 6, "memory_bytes": GIB, "type": "mps"})
    node.use(1, both)
    found = [(sample.device_uid, sample.pid, sample.uses, sample.memory_used_bytes) for sample in node.samples()]
    assert found == [("gpu:0", 5, 0b11, GIB), ("gpu:0", 6, 0b100, GIB), ("gpu:1", 5, 0b1, GIB)]


def test_lists_are_taken_each_ten_seconds_and_not_in_between(node: Node) -> None:
    assert node.take().samples == ()
    at = node.at
    for second in range(1, 10):
        node.at = at + second - 10
        assert node.take().samples is None
    node.at = at
    assert node.take().samples == ()


def test_slow_lists_are_taken_less_often_and_it_is_said_once(node: Node) -> None:
    node.use(0, {"pid": 5, "memory_bytes": GIB})
    node.slow = 0.06
    first = node.take()
    assert first.samples is not None
    assert [text.partition(":")[0] for _, text in told(first)] == ["a call for a process list took 60 ms (limit 50 ms)"]
    waiting = node.take()
    assert waiting.samples is None
    assert waiting.rejects == {("processes", "backed_off"): 1}
    assert node.reader.pace.interval_seconds == 20
    assert told(node.take()) == []
    for _ in range(60):
        node.take()
    assert node.reader.pace.interval_seconds == 300


def test_quick_lists_come_back_to_their_pace_slowly(node: Node) -> None:
    node.slow = 0.06
    node.take()
    node.take()
    node.take()
    assert node.reader.pace.interval_seconds == 40
    node.slow = 0.0
    texts, rounds = [], 0
    while node.reader.pace.backed_off:
        taken = node.take()
        rounds += taken.samples is not None
        texts += told(taken)
    assert texts == [("", "process lists are quick again and taken as often as wanted")]
    assert rounds == 6


def test_a_round_that_passes_its_deadline_is_not_taken(node: Node) -> None:
    node.deadline = 0.0
    taken = node.take()
    assert taken.samples is None
    assert taken.rejects == {("processes", "deadline"): 1}


def test_one_card_that_fails_voids_the_round_then_the_others_go_on(node: Node) -> None:
    node.use(0, {"pid": 5, "memory_bytes": GIB})
    node.state.fail("nvmlDeviceGetComputeRunningProcesses", 999, device=1)
    for _ in range(3):
        taken = node.take()
        assert taken.samples is None
        assert taken.rejects == {("processes", "error"): 1}
        assert told(taken) == []
    later = node.take()
    assert later.samples is not None
    assert [sample.device_uid for sample in later.samples] == ["gpu:0"]
    assert later.unknown == ("gpu:1",)
    assert told(later) == [
        ("gpu:1", "card 1: its compute processes cannot be read (NVML 999); the process lists of the other cards go on without it")
    ]
    assert told(node.take()) == []
    node.state.fail("nvmlDeviceGetComputeRunningProcesses", 0, device=1)
    assert node.samples()[0].pid == 5


def test_no_card_that_answers_is_not_an_empty_list(node: Node) -> None:
    node.state.fail("nvmlDeviceGetComputeRunningProcesses", 999)
    assert [node.take().samples for _ in range(6)] == [None] * 6


def test_no_card_at_all_is_not_an_empty_list(node: Node) -> None:
    assert node.take([]).samples is None


@pytest.mark.parametrize(("code", "reason"), [(3, "not_supported"), (15, "lost")])
def test_a_card_without_a_list_hides_no_other(node: Node, code: int, reason: str) -> None:
    node.use(1, {"pid": 5, "memory_bytes": GIB})
    node.state.device(0).set(error=code)
    taken = node.take()
    assert taken.samples is not None
    assert [sample.pid for sample in taken.samples] == [5]
    assert taken.rejects == {("processes", reason): 1}


def test_what_a_card_lacks_is_not_asked_again(node: Node) -> None:
    node.state.fail("nvmlDeviceGetMPSComputeRunningProcesses", 3)
    node.use(0, {"pid": 5, "memory_bytes": GIB})
    assert len(node.samples()) == 1
    node.state.fail("nvmlDeviceGetMPSComputeRunningProcesses", 999)
    assert len(node.samples()) == 1
    node.reader.forget()
    assert node.take().samples is None


def test_a_process_without_samples_did_nothing(node: Node) -> None:
    node.use(0, {"pid": 5, "memory_bytes": GIB})
    (sample,) = node.samples()
    assert (sample.sm_utilization_ratio, absent(sample)) == (0.0, {})
    assert sample.HasField("sm_utilization_ratio")


def test_a_share_above_the_whole_is_out_of_range(node: Node) -> None:
    node.use(0, {"pid": 5, "memory_bytes": GIB, "sm_percent": 4_294_967_295, "memory_percent": 12})
    taken = node.take()
    assert taken.samples is not None
    assert absent(taken.samples[0]) == {"sm_utilization_ratio": "out_of_range"}
    assert taken.samples[0].memory_utilization_ratio == pytest.approx(0.12)
    assert taken.rejects == {("process_sm_utilization_ratio", "out_of_range"): 1}


@pytest.mark.parametrize(("code", "reason"), [(4, "no_permission"), (15, "lost"), (999, "error")])
def test_utilisation_that_cannot_be_read_is_absent_and_the_rest_is_there(node: Node, code: int, reason: str) -> None:
    node.use(0, {"pid": 5, "memory_bytes": GIB})
    node.state.fail("nvmlDeviceGetProcessesUtilizationInfo", code)
    node.state.fail("nvmlDeviceGetProcessUtilization", code)
    (sample,) = node.samples()
    assert sample.memory_used_bytes == GIB
    assert set(absent(sample).values()) == {reason}
    assert len(absent(sample)) == 4


def test_command_lines_are_off_unless_asked_for(node: Node) -> None:
    node.proc.add(5, arguments=["python", "--token", "abc"])
    node.use(0, {"pid": 5, "memory_bytes": GIB})
    assert node.samples()[0].command_line == ""
    node.made("redacted")
    assert node.samples()[0].command_line == "python --token ***"
    node.made("full")
    assert node.samples()[0].command_line == "python --token abc"


def test_processes_that_the_host_hides_are_nobody_and_no_fault(node: Node) -> None:
    """hidepid=2 and an agent without root: it sees its own processes, and the numbers are the host's."""
    node.use(0, {"pid": 5, "memory_bytes": GIB}, {"pid": 6, "memory_bytes": GIB})
    node.proc.end(2)
    node.proc.end(6)
    taken = node.take()
    assert taken.samples is not None
    assert [(sample.pid, sample.started_at_ns > 0, sample.name) for sample in taken.samples] == [(5, True, "python3"), (6, False, "")]
    assert (told(taken), dict(taken.rejects)) == ([], {})


def test_under_mig_a_process_belongs_to_its_instance(node: Node) -> None:
    handle = node.handles[0]
    node.mig[0] = (Instance("gpu:0/a", handle, 1, 0), Instance("gpu:0/b", handle, 2, 0))
    node.use(
        0,
        {"pid": 5, "memory_bytes": GIB, "gi": 1, "ci": 0},
        {"pid": 6, "memory_bytes": None, "gi": 2, "ci": 0},
        {"pid": 7, "memory_bytes": GIB, "gi": 9, "ci": 0},
    )
    five, six, seven = node.samples()
    assert [(s.device_uid, s.gpu_instance_id, s.compute_instance_id) for s in (five, six, seven)] == [
        ("gpu:0/a", 1, 0),
        ("gpu:0/b", 2, 0),
        ("gpu:0", 9, 0),
    ]
    assert absent(six)["memory_used_bytes"] == "no_permission"
    assert absent(five) == dict.fromkeys(
        ("sm_utilization_ratio", "memory_utilization_ratio", "encoder_utilization_ratio", "decoder_utilization_ratio"), "not_supported"
    )


def test_who_may_not_list_the_card_under_mig_lists_its_instances(node: Node) -> None:
    first, second = node.handles
    node.mig[0] = (Instance("gpu:0/a", second, 3, 0),)
    node.state.fail("nvmlDeviceGetComputeRunningProcesses", 4, device=0)
    node.use(1, {"pid": 5, "memory_bytes": GIB})
    (sample,) = list(node.take(node.targets()[:1]).samples or ())
    assert (sample.device_uid, sample.gpu_instance_id, sample.compute_instance_id) == ("gpu:0/a", 3, 0)
    assert first is not second


def test_a_driver_without_the_newest_layout_gives_the_one_before(node: Node) -> None:
    for use in ("Compute", "Graphics", "MPSCompute"):
        node.state.fail(f"nvmlDeviceGet{use}RunningProcesses_v3", 13)
    node.use(0, {"pid": 5, "memory_bytes": GIB})
    assert node.samples()[0].pid == 5
