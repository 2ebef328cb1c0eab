"""A label of the Kubernetes node, read from the API server every few seconds with the pod's own service account."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from collectors.maintenance import asks

if TYPE_CHECKING:
    import urllib3

log = logging.getLogger("xpulse.agent")

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet puts a pod's token and the API server's authority."""

EVERY_SECONDS: Final = 5.0
_TIMEOUT_SECONDS: Final = 5.0
_MOST_BYTES: Final = 4 << 20
_FORGET_AFTER: Final = 12
"""Failed reads in a row after which an old label says nothing any more: a minute without an API server must not keep the driver away."""


@dataclass(frozen=True, slots=True)
class Api:
    """How to reach the API server. `account` holds `token` (read anew each time: it is rotated) and `ca.crt`."""

    url: str
    account: Path = ACCOUNT


def in_cluster(environment: Mapping[str, str] = os.environ, account: Path = ACCOUNT) -> Api | None:
    """The API server as a pod sees it; None outside a pod or without a service account."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not (account / "token").exists():
        return None
    return Api(f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}", account)


class NodeLabel:
    """Calls give the newest word without waiting; a thread of its own asks the API server. `close` ends it."""

    def __init__(self, api: Api, node: str, wanted: Mapping[str, tuple[str, ...]], *, every_seconds: float = EVERY_SECONDS) -> None:
        self._api, self._node, self._wanted, self._every = api, node, dict(wanted), every_seconds
        self._reason = ""
        self._failed = 0
        self._said = ""
        self._closing = threading.Event()
        self._pool: urllib3.PoolManager | None = None
        self._thread = threading.Thread(target=self._watch, name="node-label", daemon=True)
        self._thread.start()

    def __call__(self) -> str:
        return self._reason

    def close(self) -> None:
        self._closing.set()
        self._thread.join(_TIMEOUT_SECONDS)

    def _watch(self) -> None:
        while True:
            self._look()
            if self._closing.wait(self._every):
                return

    def _look(self) -> None:
        try:
            self._reason = asks(self._labels(), self._wanted)
        except Exception as error:  # whatever an API server or a proxy before it does, the agent goes on
            self._failed += 1
            if self._failed >= _FORGET_AFTER:
                self._reason = ""
            self._say(str(error))
            return
        self._failed = 0
        self._say("")

    def _labels(self) -> dict[str, str]:
        import urllib3  # an agent outside Kubernetes never needs it

        if self._pool is None:
            authority = self._api.account / "ca.crt"
            self._pool = urllib3.PoolManager(
                num_pools=1,
                timeout=urllib3.Timeout(total=_TIMEOUT_SECONDS),
                retries=False,
                ca_certs=str(authority) if authority.exists() else None,
            )
        token = (self._api.account / "token").read_text().strip()
        reply = self._pool.request(
            "GET",
            f"{self._api.url}/api/v1/nodes/{quote(self._node, safe='')}",
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            redirect=False,
            preload_content=False,
        )
        try:
            body = reply.read(_MOST_BYTES)
        finally:
            reply.release_conn()
        if reply.status in (401, 403):
            remedy = "deploy/kubernetes/agent.yaml has the role that allows it"
            raise PermissionError(f"the service account may not get node {self._node} ({reply.status}); {remedy}")
        if reply.status != 200:
            raise OSError(f"the API server answers {reply.status} for node {self._node}")
        labels = json.loads(body)["metadata"].get("labels") or {}
        return {str(k): str(v) for k, v in labels.items()}

    def _say(self, trouble: str) -> None:
        """Each new trouble once, and its end."""
        if trouble == self._said:
            return
        if trouble:
            log.warning("labels of node %s cannot be read, so none can ask for maintenance: %s", self._node, trouble)
        else:
            log.info("labels of node %s are read again", self._node)
        self._said = trouble
