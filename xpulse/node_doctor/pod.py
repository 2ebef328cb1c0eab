"""The agent as a pod: its node's name, the right to read its node's labels, and the kubelet's word on who holds which card."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

from collectors.requests.node_label import ACCOUNT, Api, in_cluster
from xpulse.doctor import Diagnosis
from xpulse.errors import UsageError
from xpulse.node_doctor.where import Where

_WAIT_SECONDS: Final = 5.0
_SOCKET: Final = "/var/lib/kubelet/pod-resources/kubelet.sock"


def node_name(where: Where) -> Iterator[Diagnosis]:
    if not where.in_kubernetes:
        return
    if not where.settings.node and not where.environment.get("NODE_NAME"):
        text = "NODE_NAME is not set, so the node would be called by the pod's name"
        remedy = "env NODE_NAME from fieldRef spec.nodeName, as deploy/kubernetes/agent.yaml has it"
        yield Diagnosis("problem", "node name", text, remedy, "one node becomes another with each pod")
        return
    try:
        yield Diagnosis("good", "node name", where.settings.node or where.environment["NODE_NAME"])
    except UsageError as error:
        yield Diagnosis("problem", "node name", str(error))


def node_labels(where: Where, account: Path = ACCOUNT, ask: Callable[[Api, str], int] | None = None) -> Iterator[Diagnosis]:
    """Whether the node's labels can be read: by them MIG manager and GPU operator ask for the driver."""
    chosen = where.settings.collectors.maintenance
    if not where.in_kubernetes or chosen.watch_node == "off" or not chosen.node_labels:
        return
    lost = "the driver is not let go when MIG manager or GPU operator change the node: they wait, and kill the pod at last"
    api = in_cluster(where.environment, account)
    if api is None:
        remedy = "automountServiceAccountToken: true, and the ServiceAccount of deploy/kubernetes/agent.yaml"
        yield Diagnosis("note", "node labels", "the pod has no token of a service account", remedy, lost)
        return
    node = where.settings.node or where.environment.get("NODE_NAME", "")
    status = (ask or status_of)(api, node)
    match status:
        case 200:
            yield Diagnosis("good", "node labels", f"those of {node} can be read")
        case 401 | 403:
            text = f"the API server refuses to show node {node} ({status})"
            yield Diagnosis("problem", "node labels", text, "apply the ClusterRole of deploy/kubernetes/agent.yaml", lost)
        case 404:
            remedy = "set NODE_NAME from fieldRef spec.nodeName, or leave node empty"
            yield Diagnosis("problem", "node labels", f"the cluster has no node {node!r}", remedy, lost)
        case _:
            text = f"the API server at {api.url} does not answer" + (f" ({status})" if status else "")
            yield Diagnosis(
                "problem", "node labels", text, "allow the pod to reach it, or set collectors.maintenance.watch_node: off", lost
            )


def status_of(api: Api, node: str) -> int:
    """HTTP status of reading the node; 0 where nobody answers."""
    try:
        token = (api.account / "token").read_text(encoding="utf-8").strip()
        trust = ssl.create_default_context(cafile=str(api.account / "ca.crt"))
        url = f"{api.url}/api/v1/nodes/{quote(node, safe='')}"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust))
        with opener.open(urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"}), timeout=_WAIT_SECONDS) as answer:
            json.loads(answer.read(1 << 20))
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except (OSError, ValueError):
        return 0


def pod_resources(where: Where) -> Iterator[Diagnosis]:
    """The kubelet's socket that tells which pod was given which card."""
    if not where.in_kubernetes and not where.path("/var/lib/kubelet").exists():
        return
    if where.path(_SOCKET).exists():
        yield Diagnosis("good", "pod resources", "the kubelet's socket is there")
    else:
        remedy = "mount the host's /var/lib/kubelet/pod-resources; this release does not read it yet"
        yield Diagnosis("note", "pod resources", f"{_SOCKET} is not there", remedy, "which pod was given which card")
