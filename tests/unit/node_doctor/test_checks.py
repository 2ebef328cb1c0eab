"""Each thing that can be off on a node: its level, what is lost, and a remedy."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from collectors.nvidia.remedy import why
from collectors.requests.node_label import Api
from tests.unit.node_doctor.picture import GOOD, levels, on_bus, picture, problem, write
from xpulse.node_doctor import beside, driver, machine, pod
from xpulse.node_doctor.examine import of
from xpulse.node_doctor.look import HANGS, CardLook, DriverLook
from xpulse.node_doctor.symbols import LOST

CARD = GOOD.cards[0]
KERNEL: dict[str, Any] = {"collectors": {"plugins": {"nvidia": {}, "kernel": {"settings": {"source": "kmsg"}}}}}
POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "NODE_NAME": "gpu-7"}


def test_a_good_driver(tmp_path: Path) -> None:
    (found,) = driver.library(picture(tmp_path))
    assert (found.level, found.text) == ("good", "590.48.01, NVML 13.590.48.01, CUDA 13.1, 1 card")


@pytest.mark.parametrize("code", [9, 12])
def test_no_driver_is_a_problem_only_where_there_is_a_card(tmp_path: Path, code: int) -> None:
    where = picture(tmp_path, DriverLook(why(code, ""), code))
    assert levels(driver.library(where)) == [("note", "driver")]
    on_bus(tmp_path)
    found = problem(driver.library(where))
    assert found.lost == driver.EVERYTHING
    assert found.remedy
    assert "4f:00.0" in problem(driver.cards(where)).text


def test_the_device_takeaway_of_a_container_runtime_is_named(tmp_path: Path) -> None:
    unknown = DriverLook(why(999, ""), 999)
    where = picture(tmp_path, unknown, environment=POD, errors={"/dev/nvidiactl": errno.EPERM})
    found = problem(driver.library(where))
    assert "took this container's devices away" in found.text
    assert "may not be opened" in found.text
    assert "restart the container" in found.remedy


def test_outside_a_container_an_unknown_error_is_not_blamed_on_one(tmp_path: Path) -> None:
    assert "took" not in problem(driver.library(picture(tmp_path, DriverLook("NVML says Unknown Error; see dmesg", 999)))).text


def test_a_driver_without_cards(tmp_path: Path) -> None:
    assert "lists no card" in problem(driver.library(picture(tmp_path, replace(GOOD, cards=())))).text


def test_shadowed_bindings(tmp_path: Path) -> None:
    assert problem(driver.library(picture(tmp_path, replace(GOOD, bindings="pynvml 11 shadows nvidia-ml-py")))).subject == "bindings"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("/sys/module/nvidia/version", "580.95.05\n"),
        ("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n"),
    ],
)
def test_a_library_that_does_not_fit_the_module(tmp_path: Path, file: str, text: str) -> None:
    write(tmp_path, file, text)
    found = problem(driver.versions(picture(tmp_path)))
    assert found.text == "the kernel module is 580.95.05, the library 590.48.01"
    write(tmp_path, file, text.replace("580.95.05", "590.48.01"))
    assert levels(driver.versions(picture(tmp_path))) == [("good", "versions")]


def test_each_missing_symbol_says_what_is_lost(tmp_path: Path) -> None:
    (found,) = driver.symbols(picture(tmp_path, replace(GOOD, missing=("nvmlGpmMetricsGet",))))
    assert (found.level, found.lost) == ("note", LOST["nvmlGpmMetricsGet"])


@pytest.mark.parametrize(("code", "remedy"), [(errno.EPERM, "again"), (errno.EACCES, "user")], ids=["cgroup", "mode"])
def test_a_control_file_that_may_not_be_opened(tmp_path: Path, code: int, remedy: str) -> None:
    write(tmp_path, "/dev/nvidiactl")
    assert remedy in problem(driver.device_files(picture(tmp_path, errors={"/dev/nvidiactl": code}))).remedy


def test_card_files(tmp_path: Path) -> None:
    for name in ("nvidiactl", "nvidia0", "nvidia1", "nvidia-uvm"):
        write(tmp_path, f"/dev/{name}")
    (good,) = driver.device_files(picture(tmp_path))
    assert (good.level, good.text) == ("good", "/dev/nvidiactl and 2 cards")
    closed = problem(driver.device_files(picture(tmp_path, closed=frozenset({"/dev/nvidia1"}))))
    assert closed.text == "may not be read and written: /dev/nvidia1"


@pytest.mark.parametrize(
    ("change", "level", "says"),
    [
        ({"persistence": False}, "note", "persistence mode is off"),
        ({"has_gpm": False}, "note", "no GPM"),
        ({"mig": False, "mig_pending": True}, "note", "MIG is off and will be on after a reset"),
        ({"mig": True, "mig_pending": True, "instances": 4}, "good", "MIG, 4 instances"),
        ({"mig": True, "mig_pending": True}, "note", "it has no instance"),
        ({"mig": True, "mig_pending": True, "instance_code": 4}, "problem", "may not be looked at"),
        ({"code": 15}, "problem", "15"),
    ],
    ids=str,
)
def test_what_a_card_says(tmp_path: Path, change: dict[str, Any], level: str, says: str) -> None:
    (found,) = driver.cards(picture(tmp_path, replace(GOOD, cards=(replace(CARD, **change),))))
    assert found.level == level
    assert says in found.text


def test_a_card_as_it_should_be_says_nothing(tmp_path: Path) -> None:
    on_bus(tmp_path)
    assert list(driver.cards(picture(tmp_path))) == []


def test_a_card_on_the_bus_that_the_driver_does_not_list(tmp_path: Path) -> None:
    on_bus(tmp_path)
    on_bus(tmp_path, "0000:50:00.0")
    assert "0000:50:00.0" in problem(driver.cards(picture(tmp_path))).text


def test_cards_that_this_container_was_not_given_are_not_missed(tmp_path: Path) -> None:
    on_bus(tmp_path)
    on_bus(tmp_path, "0000:50:00.0")
    (tmp_path / "proc/driver/nvidia/gpus/0000:4f:00.0").mkdir(parents=True)
    assert list(driver.cards(picture(tmp_path))) == []


def test_a_hanging_driver_is_said_once(tmp_path: Path) -> None:
    on_bus(tmp_path)
    where = picture(tmp_path, DriverLook("the driver did not answer for 20 s; see dmesg", HANGS))
    assert problem(driver.library(where)).text == "the driver did not answer for 20 s"
    assert list(driver.cards(where)) == []


def test_who_holds_the_driver(tmp_path: Path) -> None:
    for pid, name, target in ((7, "dcgm", "/dev/nvidiactl"), (8, "python3", "/dev/nvidia3"), (9, "bash", "/dev/pts/0")):
        write(tmp_path, f"/proc/{pid}/comm", name + "\n")
        (tmp_path / f"proc/{pid}/fd").mkdir()
        (tmp_path / f"proc/{pid}/fd/3").symlink_to(target)
    (found,) = beside.clients(picture(tmp_path))
    assert (found.level, found.text) == ("note", "dcgm, python3 hold the driver")


def test_nobody_holds_the_driver(tmp_path: Path) -> None:
    assert levels(beside.clients(picture(tmp_path))) == [("good", "open clients")]


def test_own_process_ids(tmp_path: Path) -> None:
    write(tmp_path, "/proc/1/comm", "xpulse\n")
    (found,) = machine.process_ids(picture(tmp_path))
    assert (found.level, "hostPID" in found.remedy) == ("note", True)
    write(tmp_path, "/proc/2/comm", "kthreadd\n")
    assert levels(machine.process_ids(picture(tmp_path))) == [("good", "process ids")]


def test_the_kernel_log(tmp_path: Path) -> None:
    where = picture(tmp_path, settings=KERNEL)
    found = problem(machine.kernel_log(where))
    assert "mount it from the host" in found.remedy
    write(tmp_path, "/dev/kmsg")
    assert levels(machine.kernel_log(where)) == [("good", "kernel log")]


def test_wrong_settings_of_a_plugin(tmp_path: Path) -> None:
    plugins = {"nvidia": {"settings": {"proces": True}}, "kernel": {}}
    assert "proces" in problem(machine.plugins(picture(tmp_path, settings={"collectors": {"plugins": plugins}}))).text


def test_plugins_that_are_off_are_noted(tmp_path: Path) -> None:
    plugins = {"nvidia": {"enabled": False}}
    found = machine.plugins(picture(tmp_path, settings={"collectors": {"plugins": plugins}}))
    assert levels(found) == [("note", "plugin nvidia"), ("note", "plugin kernel")]


@pytest.mark.parametrize(("clock", "level"), [(True, "good"), (False, "note"), (None, "note")])
def test_the_clock(tmp_path: Path, clock: bool | None, level: str) -> None:
    assert levels(machine.clock(picture(tmp_path, clock=clock))) == [(level, "clock")]


def test_the_spool_wants_room(tmp_path: Path) -> None:
    where = picture(tmp_path, settings={"northbound": {"spool": {"max_bytes": 1 << 40}}})
    free = os.statvfs(tmp_path)
    expected = "problem" if free.f_bavail * free.f_frsize < 1 << 40 else "good"
    assert levels(machine.spool(where)) == [(expected, "spool")]
    assert levels(
        machine.spool(
            picture(tmp_path, settings={"northbound": {"spool": {"max_bytes": 1 << 21, "segment_bytes": 1 << 16, "memory_bytes": 1 << 16}}})
        )
    ) == [("good", "spool")]
    assert list(machine.spool(picture(tmp_path, settings={"northbound": {"kafka": False}}))) == []


def test_a_pod_without_its_nodes_name(tmp_path: Path) -> None:
    assert list(pod.node_name(picture(tmp_path))) == []
    assert "fieldRef" in problem(pod.node_name(picture(tmp_path, environment={"KUBERNETES_SERVICE_HOST": "x"}))).remedy
    assert levels(pod.node_name(picture(tmp_path, environment=POD))) == [("good", "node name")]


@pytest.mark.parametrize(
    ("status", "level", "says"),
    [(200, "good", "gpu-7"), (403, "problem", "refuses"), (404, "problem", "no node 'gpu-7'"), (0, "problem", "does not answer")],
)
def test_the_nodes_labels(tmp_path: Path, status: int, level: str, says: str) -> None:
    write(tmp_path, "account/token", "t")

    def ask(api: Api, node: str) -> int:
        assert (api.url, node) == ("https://10.0.0.1:443", "gpu-7")
        return status

    (found,) = pod.node_labels(picture(tmp_path, environment=POD), tmp_path / "account", ask)
    assert found.level == level
    assert says in found.text


def test_no_service_account_is_noted(tmp_path: Path) -> None:
    assert levels(pod.node_labels(picture(tmp_path, environment=POD), tmp_path)) == [("note", "node labels")]


def test_an_api_server_that_is_not_there_is_status_0(tmp_path: Path) -> None:
    assert pod.status_of(Api("https://127.0.0.1:1", tmp_path), "n") == 0


def test_the_kubelets_socket(tmp_path: Path) -> None:
    assert list(pod.pod_resources(picture(tmp_path))) == []
    where = picture(tmp_path, environment=POD)
    assert levels(pod.pod_resources(where)) == [("note", "pod resources")]
    write(tmp_path, "/var/lib/kubelet/pod-resources/kubelet.sock")
    assert levels(pod.pod_resources(where)) == [("good", "pod resources")]


def test_one_check_that_breaks_hides_no_other(tmp_path: Path) -> None:
    class Broken(type(picture(tmp_path))):  # type: ignore[misc]  # a class made for this test
        def synchronised(self) -> bool | None:
            raise ZeroDivisionError

    good = picture(tmp_path)
    found = of(Broken(good.settings, good.driver, good.root, good.environment))
    assert ("problem", "clock") in levels(found)
    assert {"driver", "spool", "open clients"} <= {each.subject for each in found}


def test_every_problem_has_a_remedy(tmp_path: Path) -> None:
    on_bus(tmp_path)
    on_bus(tmp_path, "0000:51:00.0")
    write(tmp_path, "/dev/nvidiactl")
    cards = (CardLook(0, 15), replace(CARD, mig=True, instance_code=4, persistence=False, has_gpm=False))
    bad = replace(GOOD, cards=cards, missing=tuple(LOST), bindings="pynvml is in the way; remove it")
    found = of(
        picture(tmp_path, bad, settings=KERNEL, environment={"KUBERNETES_SERVICE_HOST": "x"}, errors={"/dev/nvidiactl": errno.EACCES})
    )
    assert len([each for each in found if each.level == "problem"]) >= 5
    assert [each for each in found if each.level == "problem" and not each.remedy and each.subject != "bindings"] == []
