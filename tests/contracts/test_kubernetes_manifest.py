"""deploy/kubernetes/agent.yaml: least privilege, settings that exist, and one table of privileges in manifest and guide."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.contracts.repository import ROOT
from tests.contracts.test_compose import parse
from xpulse.roles import role
from xpulse.settings import Settings, check_environment

FILE = ROOT / "deploy/kubernetes/agent.yaml"
TEXT = FILE.read_text(encoding="utf-8")
OBJECTS: list[dict[str, Any]] = list(yaml.safe_load_all(TEXT))
OTHERS_VARIABLES = {"NODE_NAME", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"}


def of_kind(kind: str) -> dict[str, Any]:
    (found,) = (each for each in OBJECTS if each["kind"] == kind)
    return found


POD: dict[str, Any] = of_kind("DaemonSet")["spec"]["template"]["spec"]
(AGENT,) = POD["containers"]
VARIABLES = {entry["name"]: entry for entry in AGENT["env"]}
MOUNTS = {mount["mountPath"]: mount for mount in AGENT["volumeMounts"]}
VOLUMES = {volume["name"]: volume for volume in POD["volumes"]}
GIVEN: dict[str, Any] = yaml.safe_load(of_kind("ConfigMap")["data"]["xpulse.yaml"])


def test_it_has_what_it_needs_and_no_more_objects() -> None:
    assert [each["kind"] for each in OBJECTS] == [
        "Namespace",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "DaemonSet",
    ]
    assert {each["metadata"].get("namespace", "xpulse") for each in OBJECTS} == {"xpulse"}


def test_the_container_has_the_least_privilege() -> None:
    assert AGENT["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    context = POD["securityContext"]
    assert (context["runAsNonRoot"], context["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
    dockerfile = (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8")
    assert f"USER {context['runAsUser']}:{context['runAsGroup']}" in dockerfile
    assert {"hostPID", "hostNetwork", "hostIPC", "initContainers"} & POD.keys() == set()
    assert "# hostPID: true" in TEXT


def test_nothing_of_the_host_is_mounted_but_the_kernel_log_and_that_read_only() -> None:
    assert {name: volume["hostPath"] for name, volume in VOLUMES.items() if "hostPath" in volume} == {
        "kmsg": {"path": "/dev/kmsg", "type": "CharDevice"}
    }
    writable = {path for path, mount in MOUNTS.items() if not mount.get("readOnly")}
    assert writable == {"/var/lib/xpulse", "/tmp"}
    assert {mount["name"] for mount in MOUNTS.values()} == VOLUMES.keys()


def test_rbac_is_get_on_nodes() -> None:
    assert of_kind("ClusterRole")["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]
    account = of_kind("ServiceAccount")
    assert account["automountServiceAccountToken"] is False  # the pod asks for it
    binding = of_kind("ClusterRoleBinding")
    assert binding["roleRef"]["name"] == of_kind("ClusterRole")["metadata"]["name"]
    assert [(s["name"], s["namespace"]) for s in binding["subjects"]] == [(POD["serviceAccountName"], account["metadata"]["namespace"])]


def test_the_settings_exist_and_need_no_secret_in_clear() -> None:
    settings = Settings(**GIVEN)
    assert settings.bus.password is None
    assert settings.northbound.exposition.token is None
    for path in (settings.bus.password_file, settings.northbound.exposition.token_file):
        assert path is not None
        assert str(path.parent) in MOUNTS
        assert f"--from-file={path.name}" in TEXT
    assert "secret" in VOLUMES[MOUNTS["/run/secrets/xpulse"]["name"]]


def test_every_variable_is_a_setting_or_known() -> None:
    ours = {name for name in VARIABLES if name.startswith("XPULSE_")}
    check_environment(dict.fromkeys(ours, ""))
    assert VARIABLES.keys() - ours == OTHERS_VARIABLES
    assert VARIABLES["NODE_NAME"]["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}


def test_the_command_is_ours_and_finds_its_settings() -> None:
    parse(AGENT["args"])
    assert "/etc/xpulse" in MOUNTS
    assert of_kind("ConfigMap")["data"].keys() == {"xpulse.yaml"}


def test_probes_ask_what_the_agent_answers() -> None:
    (port,) = AGENT["ports"]
    assert port["containerPort"] == role("agent").port
    probes = {name: AGENT[name]["httpGet"] for name in ("livenessProbe", "readinessProbe")}
    assert {name: probe["path"] for name, probe in probes.items()} == {"livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    assert {probe["port"] for probe in probes.values()} == {port["name"]}
    # On loopback neither the kubelet nor Prometheus would reach it.
    assert VARIABLES["XPULSE_NORTHBOUND__EXPOSITION__HOST"]["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}


def test_the_spool_fits_its_volume() -> None:
    sizes = {"Mi": 2**20, "Gi": 2**30}
    number, unit = re.fullmatch(r"(\d+)(Mi|Gi)", VOLUMES["state"]["emptyDir"]["sizeLimit"]).groups()  # type: ignore[union-attr]  # fails where it does not match
    assert Settings(**GIVEN).northbound.spool.max_bytes < int(number) * sizes[unit]


def test_it_runs_where_cards_are_and_stays_where_work_may_not() -> None:
    assert POD["nodeSelector"] == {"nvidia.com/gpu.present": "true"}
    assert {"operator": "Exists"} in POD["tolerations"]
    assert POD["runtimeClassName"] == "nvidia"
    assert AGENT["resources"]["requests"].keys() == {"cpu", "memory"}
    assert "memory" in AGENT["resources"]["limits"]


def rows(text: str, mark: str = "") -> list[str]:
    return re.findall(rf"^{mark}(\| .+ \| .+ \|)$", text, re.MULTILINE)


def test_the_table_of_privileges_is_the_same_in_the_guide() -> None:
    table = rows(TEXT, "# ")
    assert len(table) >= 6
    guide = Path(ROOT / "docs/guide/kubernetes.md").read_text(encoding="utf-8")
    assert [row for row in table if row not in rows(guide)] == []


@pytest.mark.parametrize("word", ["SYS_ADMIN", "privileged: true", "hostNetwork: true"])
def test_the_manifest_grants_nothing_of_that_sort(word: str) -> None:
    assert word not in re.sub(r"#.*", "", TEXT)
