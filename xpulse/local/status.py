"""Asks each role's health endpoint how it does: rate and lag for the live view, from a thread that never delays the supervisor."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class RoleStatus:
    """What the endpoint said last. `lag` None: not known."""

    ready: bool
    processed_total: int
    published_total: int
    dead_letters_total: int
    lag: int | None
    why_not: str = ""


def read(port: int, host: str = "127.0.0.1", timeout_seconds: float = 1.0, *, cert_file: Path | None = None) -> RoleStatus | None:
    """One role's status; None where it does not answer. With `cert_file` by TLS, from whoever shows that certificate."""
    context = None
    try:
        if cert_file is not None:
            import ssl

            context = ssl.create_default_context(cafile=str(cert_file))
            context.check_hostname = False  # it is asked at the address it listens on, which its certificate need not name
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        scheme, name = "https" if context else "http", f"[{host}]" if ":" in host else host
        with urllib.request.urlopen(f"{scheme}://{name}:{port}/status", timeout=timeout_seconds, context=context) as reply:
            body: Mapping[str, Any] = json.load(reply)
    except (OSError, ValueError):
        return None
    lag = body.get("lag")
    return RoleStatus(
        ready=bool(body.get("ready")),
        processed_total=int(body.get("processed_total", 0)),
        published_total=int(body.get("published_total", 0)),
        dead_letters_total=int(body.get("dead_letters_total", 0)),
        lag=None if lag is None else int(lag),
        why_not=str(body.get("why_not", "")),
    )


class Poller:
    """Keeps the newest status per role. `ports` gives each role's port, None while unknown."""

    def __init__(self, ports: Mapping[str, int | None], every_seconds: float = 1.0) -> None:
        self._ports = dict(ports)
        self._every_seconds = every_seconds
        self._latest: dict[str, RoleStatus | None] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        threading.Thread(target=self._run, name="status", daemon=True).start()

    def set_port(self, role: str, port: int | None) -> None:
        with self._lock:
            self._ports[role] = port

    def latest(self) -> dict[str, RoleStatus | None]:
        with self._lock:
            return dict(self._latest)

    def close(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(self._every_seconds):
            for role, port in self._snapshot():
                found = read(port) if port else None
                with self._lock:
                    self._latest[role] = found

    def _snapshot(self) -> Iterable[tuple[str, int | None]]:
        with self._lock:
            return list(self._ports.items())
