"""What others got wrong with processes: the exact input of each report, and the right value. Rows are those of the peers' bug list, D."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from collectors.events import content_id
from collectors.nvidia.processes.calls import Entry
from collectors.nvidia.processes.parse import implausible
from schemas.telemetry import v1
from tests.fakes.nvml.fixtures import fake_nvml, fake_nvml_library
from tests.unit.collectors.nvidia.processes.nodes import GIB, Node, absent, container, node, told

__all__ = ["container", "fake_nvml", "fake_nvml_library", "node"]
MIB = 1 << 20


def test_two_mps_clients_have_each_their_own_memory(node: Node) -> None:
    """D20, dcgm-exporter#432: two MPS pods both showed the card's 15866 MiB."""
    node.state.device(0).set(memory_used_bytes=15_866 * MIB)
    node.use(
        0,
        {"pid": 11, "memory_bytes": 7_000 * MIB, "type": "mps"},
        {"pid": 12, "memory_bytes": 8_400 * MIB, "type": "mps"},
        {"pid": 10, "memory_bytes": 30 * MIB},
    )
    found = {sample.pid: (sample.memory_used_bytes, sample.uses) for sample in node.samples()}
    assert found == {11: (7_000 * MIB, 0b100), 12: (8_400 * MIB, 0b100), 10: (30 * MIB, 0b1)}


def test_memory_that_the_driver_reserves_is_nobodys(node: Node) -> None:
    """D39, nvitop#13, gpustat#116/#141: 308 MB in use and no process."""
    node.state.device(0).set(memory_used_bytes=308 * MIB)
    assert node.take().samples == ()


def test_ids_of_the_host_mean_nobody_inside_a_container(container: Node) -> None:
    """D40, nvidia-docker#1483, nvtop#149, nvitop#134: NVML gives the host's id, which does not exist in the container."""
    container.use(0, {"pid": 56_752, "memory_bytes": 34_724_642_324}, alive=False)
    taken = container.take()
    assert taken.samples is not None
    (sample,) = taken.samples
    assert (sample.pid, sample.started_at_ns, sample.name, sample.memory_used_bytes) == (56_752, 0, "", 34_724_642_324)
    assert taken.rejects == {("processes", "foreign_pid_namespace"): 1}
    ((_, text),) = told(taken)
    assert "hostPID: true" in text
    assert told(container.take()) == []


def test_an_id_that_exists_in_the_container_by_chance_is_not_believed(container: Node) -> None:
    """D40: of the host's 7 and 8 the container has its own 7, which is somebody else."""
    container.proc.add(7, "sidecar")
    container.use(0, {"pid": 7, "memory_bytes": GIB}, {"pid": 8, "memory_bytes": GIB}, alive=False)
    assert [(sample.pid, sample.started_at_ns, sample.name) for sample in container.samples()] == [(7, 0, ""), (8, 0, "")]


def test_where_every_id_exists_they_are_believed(container: Node) -> None:
    """D40, the other way round: a sandbox whose /proc lists what the driver lists."""
    container.use(0, {"pid": 7, "memory_bytes": GIB})
    assert container.samples()[0].started_at_ns > 0


def test_a_process_that_ended_is_gone_at_once(node: Node) -> None:
    """D43, nvitop#106/#107: the series stayed after the process had gone."""
    node.use(0, {"pid": 5, "memory_bytes": GIB}, {"pid": 6, "memory_bytes": GIB})
    assert [sample.pid for sample in node.samples()] == [5, 6]
    node.proc.end(5)
    node.use(0, {"pid": 6, "memory_bytes": GIB})
    assert [sample.pid for sample in node.samples()] == [6]
    node.proc.end(6)
    node.use(0)
    assert node.take().samples == ()


def test_a_number_used_again_is_another_process(node: Node) -> None:
    """D43: identity is boot, number and start; the same number with another start is another process."""
    node.proc.add(5, ticks=100)
    node.use(0, {"pid": 5, "memory_bytes": GIB})
    first = node.samples()[0].started_at_ns
    node.proc.add(5, ticks=900)
    assert node.samples()[0].started_at_ns == first + 8 * 10**9


def test_a_process_that_the_driver_still_takes_down_keeps_its_name(node: Node) -> None:
    """D43: it left /proc, and holds its memory until the driver has freed it."""
    node.proc.add(5, "train")
    node.use(0, {"pid": 5, "memory_bytes": GIB})
    first = node.samples()[0]
    node.proc.end(5)
    (later,) = node.samples()
    assert (later.name, later.started_at_ns, later.memory_used_bytes) == ("train", first.started_at_ns, GIB)


@pytest.mark.parametrize("name", ["a,b,c", "x|y", 'q"uo"te', "new\nline", "ünïc"])
def test_a_name_is_what_the_process_chose(node: Node, name: str) -> None:
    """D45, nvidia_gpu_exporter#438: names with commas shifted the columns."""
    node.proc.add(5, name)
    node.use(0, {"pid": 5, "memory_bytes": GIB})
    (sample,) = node.samples()
    assert (sample.name, sample.memory_used_bytes) == (name, GIB)


def test_a_query_that_fails_is_not_an_idle_card(node: Node) -> None:
    """D45: a failed query showed a card that nobody uses."""
    node.use(0, {"pid": 5, "memory_bytes": GIB})
    node.state.fail("nvmlDeviceGetGraphicsRunningProcesses", 999)
    taken = node.take()
    assert taken.samples is None
    assert taken.rejects == {("processes", "error"): 2}


def test_memory_that_is_not_available_is_absent_and_no_instance_is_none(node: Node) -> None:
    """D46: usedGpuMemory 0xFFFFFFFFFFFFFFFF, and GpuInstanceId 4294967295 means no MIG."""
    node.use(0, {"pid": 5, "memory_bytes": None})
    (sample,) = node.samples()
    assert absent(sample) == {"memory_used_bytes": "not_supported"}
    assert not sample.HasField("memory_used_bytes")
    assert not sample.HasField("gpu_instance_id")
    assert not sample.HasField("compute_instance_id")


def test_one_card_without_a_handle_stops_no_other(node: Node) -> None:
    """D48, categraf#1056, telegraf#9785, nvitop#145/#146: "Unable to determine the device handle" ended all queries, or the process."""
    node.use(1, {"pid": 5, "memory_bytes": GIB})
    node.state.lose(0)
    taken = node.take()
    assert taken.samples is not None
    assert [sample.device_uid for sample in taken.samples] == ["gpu:1"]


@pytest.mark.parametrize("stride", [16, 32, 40])
@pytest.mark.parametrize("count", [2, 3, 5])
def test_a_list_of_another_layout_is_dropped_whole_and_said_once(node: Node, stride: int, count: int) -> None:
    """nvitop#75/#79/#88/#94/#226: drivers 535.43 to 535.86 wrote 32 bytes a line where 24 were read, and older ones 16."""
    node.use(0, *({"pid": 20_000 + i, "memory_bytes": (4 + i) * GIB} for i in range(count)))
    node.state.device(0).set(process_stride_bytes=stride)
    taken = node.take()
    assert taken.samples is None
    assert taken.rejects == {("processes", "processes_implausible"): 1}
    ((uid, text),) = told(taken)
    assert (uid, "cannot be true" in text) == ("gpu:0", True)
    assert told(node.take()) == []
    node.state.device(0).forget("process_stride_bytes")
    assert len(node.samples()) == count


def test_a_number_that_no_process_has_is_the_same_fault(node: Node) -> None:
    """nvitop#181: 525.125.06 gave ids out of range; here one within the range that nobody has."""
    node.use(0, {"pid": 3_000_001, "memory_bytes": GIB}, alive=False)
    taken = node.take()
    assert taken.samples is None
    assert taken.rejects == {("processes", "processes_implausible"): 1}
    assert "no process has the number 3000001" in told(taken)[0][1]


def test_a_process_that_ends_between_list_and_proc_is_no_fault(node: Node) -> None:
    """The other side of nvitop#75: one that ended a millisecond ago is not in the next list, and nothing is wrong."""
    node.use(0, {"pid": 5, "memory_bytes": GIB}, {"pid": 6, "memory_bytes": GIB})
    calls = node.reader._calls
    listed, asked = calls.listed, []

    def once(*arguments: object) -> object:
        asked.append(arguments)
        answer = listed(*arguments)  # type: ignore[arg-type]  # passed through as they came
        if len(asked) == 1:
            node.proc.end(5)
            node.use(0, {"pid": 6, "memory_bytes": GIB})
        return answer

    calls.listed = once  # type: ignore[method-assign,assignment]  # the moment between two calls
    taken = node.take()
    assert taken.samples is not None
    assert [sample.pid for sample in taken.samples] == [6]
    assert not taken.rejects


def test_lines_of_16_bytes_read_as_24() -> None:
    """go-nvml#21, driver 440.33.01 on a V100: 9980 holds 6498025472 bytes, 10121 holds 6521094144; read with the wrong layout."""
    wrote = struct.pack("=IIQIIQ", 9980, 0, 6_498_025_472, 10_121, 0, 6_521_094_144).ljust(48, b"\0")
    read = [struct.unpack_from("=IIQII", wrote, at) for at in (0, 24)]
    entries = [Entry(pid, memory, gpu, compute) for pid, _, memory, gpu, compute in read]
    assert entries[1].pid == 6_521_094_144 % 2**32
    assert implausible(entries, 16_160 * MIB) == f"{entries[1].pid} is no process id"


def test_more_memory_than_the_card_has_is_no_figure() -> None:
    """gpustack#4703: allocated 47.98 of 23.99 GiB."""
    assert implausible([Entry(5, 51_518_000_000)], 25_760_000_000) == "process 5 would hold 51518000000 bytes of 25760000000"
    assert implausible([Entry(5, 51_518_000_000)], None) == ""


def test_the_older_call_that_names_nobody_on_blackwell_is_no_zero(node: Node) -> None:
    """HAMi-core#218, HAMi#2015: on Blackwell nvmlDeviceGetProcessUtilization is empty while the card is at 100 %."""
    node.state.device(0).set(process_utilization_empty=1)
    node.use(0, {"pid": 5, "memory_bytes": GIB, "sm_percent": 100})
    assert node.samples()[0].sm_utilization_ratio == 1.0
    node.made()
    node.state.fail("nvmlDeviceGetProcessesUtilizationInfo", 13)
    (sample,) = node.samples()
    assert absent(sample)["sm_utilization_ratio"] == "not_supported"


def test_a_driver_before_550_has_the_older_call_only(node: Node) -> None:
    """ray#56000: the newer call is of driver 550; before it the older one tells the truth."""
    node.state.fail("nvmlDeviceGetProcessesUtilizationInfo", 13)
    node.use(0, {"pid": 5, "memory_bytes": GIB, "sm_percent": 70})
    assert node.samples()[0].sm_utilization_ratio == pytest.approx(0.7)
    node.use(0, {"pid": 5, "memory_bytes": GIB})
    (idle,) = node.samples()
    assert (idle.sm_utilization_ratio, absent(idle)) == (0.0, {})


def test_a_process_under_mig_has_no_invented_utilisation(node: Node) -> None:
    """D36, Kepler#2498: MIG tells no process's utilisation; nothing is inferred."""
    targets = node.targets()
    node.use(0, {"pid": 5, "memory_bytes": GIB, "gi": 1, "ci": 0})
    targets[0] = type(targets[0])(targets[0].uid, targets[0].label, targets[0].handle, 80 * GIB, mig=True)
    taken = node.take(targets)
    assert taken.samples is not None
    assert absent(taken.samples[0])["sm_utilization_ratio"] == "not_supported"


def test_lists_that_fail_are_counted_each_time(node: Node) -> None:
    """D51, gpu-monitoring-tools#188: stale figures and a healthy answer; here every round that fails is counted, and no sample is made."""
    node.state.fail("nvmlDeviceGetComputeRunningProcesses", 1)
    taken = [node.take() for _ in range(3)]
    assert [(one.samples, one.rejects["processes", "error"]) for one in taken] == [(None, 2)] * 3


_ID = "3f2a9c1d5e7b8a6c4d0e1f2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e"


@pytest.mark.parametrize(
    "path",
    [
        f"/kubepods/burstable/pod0d5a3c1e-7a11-4b0e-9c55-000000000001/{_ID}",
        f"/system.slice/docker-{_ID}.scope",
        f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0d5a3c1e_7a11_4b0e_9c55_000000000001.slice/crio-{_ID}.scope",
        f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0d5a3c1e_7a11_4b0e_9c55_000000000001.slice/cri-containerd-{_ID}.scope",
        f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod7f3b1c2d4e5f60718293a4b5c6d7e8f9.slice/cri-containerd-{_ID}.scope",
        f"/../../kubepods-besteffort-pod0d5a3c1e_7a11_4b0e_9c55_000000000001.slice/cri-containerd-{_ID}.scope",
        f"/machine.slice/libpod-{_ID}.scope/container",
    ],
    ids=["containerd, cgroupfs", "docker", "cri-o", "containerd, systemd", "static pod", "nested", "podman"],
)
@pytest.mark.parametrize("written", ["0::{}\n", "12:memory:{}\n1:name=systemd:{}\n0::/\n"], ids=["v2", "v1"])
def test_each_way_to_write_a_container_is_kept_whole(node: Node, path: str, written: str) -> None:
    """D42, metagpu#3, netdata#4868: the container's id is the cgroup's name only for containerd; whoever names it needs the whole path."""
    node.proc.add(100, cgroup=written.format(path, path))
    node.use(0, {"pid": 100, "memory_bytes": MIB})
    assert node.samples()[0].cgroup == path


CASES = Path(__file__).parents[6] / "shared" / "data" / "kubernetes" / "cgroup_cases.json"


@pytest.mark.skipif(not CASES.exists(), reason="shared/data/kubernetes/cgroup_cases.json is not here")
def test_the_container_is_in_the_cgroup_of_the_sample(node: Node) -> None:
    """D42, metagpu#3, netdata#4868: containerd, CRI-O, Docker and cgroupfs write the container's id in different ways; all are kept."""
    cases = [case for case in json.loads(CASES.read_text()) if case["expect"].get("container_id")]
    for number, case in enumerate(cases):
        node.proc.add(100 + number, cgroup=case["cgroup"])
    node.use(0, *({"pid": 100 + number, "memory_bytes": MIB} for number in range(len(cases))))
    found = {sample.pid - 100: sample.cgroup for sample in node.samples()}
    assert [case["source"] for number, case in enumerate(cases) if case["expect"]["container_id"] not in found[number]] == []


def test_what_is_said_has_an_id_that_tells_it_apart(node: Node) -> None:
    """Consumers drop doubles by id: two cards' complaints are two."""
    for index in (0, 1):
        node.use(index, {"pid": 9, "memory_bytes": GIB}, {"pid": 10, "memory_bytes": GIB})
        node.state.device(index).set(process_stride_bytes=32)
    events: list[v1.DeviceEvent] = node.take().events
    assert len({event.id for event in events}) == 2
    assert all(event.id == content_id(event) for event in events)
