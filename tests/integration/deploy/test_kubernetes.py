"""Kubernetes' own types accept deploy/kubernetes/agent.yaml, and would not accept a slip of the pen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contracts.repository import ROOT
from tests.integration.servers import kubernetes_types
from tests.integration.servers.fixtures import give_up
from tests.integration.servers.toolchain import Missing

pytestmark = pytest.mark.integration

FILE = ROOT / "deploy/kubernetes/agent.yaml"


def check(path: Path) -> tuple[bool, str]:
    try:
        return kubernetes_types.check(path)
    except Missing as missing:
        give_up(missing)


def test_the_manifest_is_valid() -> None:
    ok, output = check(FILE)
    assert ok, output
    assert output.split() == ["Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "DaemonSet"]


@pytest.mark.parametrize(("good", "bad"), [("hostPath:", "hostPaht:"), ("runAsUser: 10001", "runAsUser: xpulse")])
def test_a_slip_is_seen(good: str, bad: str, tmp_path: Path) -> None:
    text = FILE.read_text(encoding="utf-8")
    (tmp_path / "bad.yaml").write_text(text.replace(f" {good}", f" {bad}", 10))
    ok, output = check(tmp_path / "bad.yaml")
    assert not ok
    assert "document 6" in output
