"""What else on this node reads or holds the cards: DCGM and its exporter, and whoever has the driver open."""

from __future__ import annotations

import http.client
import os
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from collectors.nvidia.settings import Nvidia
from xpulse.doctor import Diagnosis
from xpulse.node_doctor.where import Where

EXPORTER_PORT: Final = 9400
HOST_ENGINE_PORT: Final = 5555
_WAIT_SECONDS: Final = 2.0
_MOST_BYTES: Final = 256 * 1024
_MOST_NAMES: Final = 8


def dcgm(where: Where, exporter: int = EXPORTER_PORT, engine: int = HOST_ENGINE_PORT) -> Iterator[Diagnosis]:
    """dcgm-exporter and nv-hostengine on loopback, at their usual ports."""
    page = _page(exporter)
    if b"DCGM_FI_" in page:
        profiling = "with" if b"DCGM_FI_PROF_" in page else "without"
        text = f"dcgm-exporter answers on 127.0.0.1:{exporter}, {profiling} profiling fields"
        if where.runs("dcgm"):
            yield Diagnosis("good", "dcgm", text)
        else:
            yield Diagnosis("note", "dcgm", text, "collectors.plugins.dcgm: {} reads what it has and GPM lacks; both may run side by side")
    elif where.runs("dcgm") and not (where.settings.collectors.plugins["dcgm"].settings.keys() & {"endpoints", "file_sd"}):
        text = f"no dcgm-exporter answers on 127.0.0.1:{exporter}"
        remedy = "start it, or set collectors.plugins.dcgm.settings.endpoints; a pod's loopback is not the host's"
        yield Diagnosis("problem", "dcgm", text, remedy, "all that the plugin dcgm would read")
    if _listens(engine):
        yield Diagnosis("note", "dcgm", f"nv-hostengine listens on 127.0.0.1:{engine}: it keeps the driver open, as the agent does")


def clients(where: Where) -> Iterator[Diagnosis]:
    """Processes that have a device file of the driver open. Each blocks a reset of the card and a change of its MIG mode."""
    folder = where.path(where.of_plugin("nvidia", Nvidia).proc_folder)
    found: Counter[str] = Counter()
    unseen = 0
    for process in sorted(folder.glob("[0-9]*")):
        if process.name == str(os.getpid()):
            continue
        try:
            holds = any(_is_card(link) for link in (process / "fd").iterdir())
        except PermissionError:
            unseen += 1
            continue
        except OSError:  # it has ended
            continue
        if holds:
            found[_name(process)] += 1
    if found:
        shown = ", ".join(f"{name}{f' ({n})' if n > 1 else ''}" for name, n in found.most_common(_MOST_NAMES))
        more = f" and {len(found) - _MOST_NAMES} other programs" if len(found) > _MOST_NAMES else ""
        remedy = "before a reset or a MIG change stop them; the agent lets go by itself (xpulse: SIGUSR2, lease file, node label)"
        yield Diagnosis("note", "open clients", f"{shown}{more} hold the driver", remedy)
    elif where.driver.cards:
        yield Diagnosis("good", "open clients", "nobody seen that holds the driver")
    if unseen and where.driver.cards:
        yield Diagnosis(
            "note", "open clients", f"{unseen} processes of other users cannot be looked at", "run the doctor as root to see all"
        )


def _is_card(link: Path) -> bool:
    try:
        target = str(link.readlink())
    except OSError:
        return False
    return target == "/dev/nvidiactl" or (target.startswith("/dev/nvidia") and target.removeprefix("/dev/nvidia").isdecimal())


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text(errors="replace").strip() or "?"
    except OSError:
        return "?"


def _page(port: int) -> bytes:
    """The start of its /metrics; empty where nobody answers in time."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_WAIT_SECONDS)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read(_MOST_BYTES)
    except (OSError, http.client.HTTPException):
        return b""
    finally:
        connection.close()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=_WAIT_SECONDS).close()
    except OSError:
        return False
    return True
