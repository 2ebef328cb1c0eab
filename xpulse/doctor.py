"""Looks at this machine and says what is off, why, and what to do: each finding is one line, each check one function."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distributions, version
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from xpulse.settings import Settings

Level = Literal["good", "note", "problem"]
LEAST_FREE_BYTES: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`remedy` is empty where there is nothing to do, `lost` (what is missed until it is done) where nothing is."""

    level: Level
    subject: str
    text: str
    remedy: str = ""
    lost: str = ""


def python() -> Iterator[Diagnosis]:
    if sys.prefix == sys.base_prefix:
        yield Diagnosis(
            "note", "python", f"{sys.version.split()[0]}, not in an environment of its own", "make setup, or pipx install xpulse"
        )
    else:
        yield Diagnosis("good", "python", f"{sys.version.split()[0]} in {sys.prefix}")


def packages() -> Iterator[Diagnosis]:
    for name, why, extra in (
        ("confluent-kafka", "the bus client", ""),
        ("faust-streaming", "stream processors under Faust", "stream"),
        ("cramjam", "without it a compressed message ends a Faust worker", "stream"),
        ("nvidia-ml-py", "reads NVIDIA devices", "agent"),
    ):
        try:
            yield Diagnosis("good", name, version(name))
        except PackageNotFoundError:
            remedy = f"pip install 'xpulse[{extra}]'" if extra else "install XPulse again"
            yield Diagnosis("note" if extra else "problem", name, f"not installed: {why}", remedy)


def shadowing() -> Iterator[Diagnosis]:
    """The deprecated distribution `pynvml` owns the module of the official bindings; other owners of our roots would shadow us."""
    ours = {"schemas", "collectors", "streams", "sinks", "forecasting", "xpulse"}
    for found in distributions():
        name = (found.metadata["Name"] or "").lower()
        if name == "pynvml":
            yield Diagnosis(
                "problem", "pynvml", f"the deprecated distribution pynvml {found.version} shadows nvidia-ml-py", "pip uninstall pynvml"
            )
        if name != "xpulse" and (owned := ours & set((found.read_text("top_level.txt") or "").split())):
            yield Diagnosis("problem", name, f"it owns the package {', '.join(sorted(owned))} too", "give XPulse an environment of its own")


def accelerators() -> Iterator[Diagnosis]:
    from xpulse.local.up import accelerator_library

    if name := accelerator_library():
        yield Diagnosis("good", "accelerators", f"{name} can be loaded")
    else:
        yield Diagnosis(
            "note", "accelerators", "no vendor library on this machine", "xpulse up shows a simulated fleet; on a node, install the driver"
        )


def memory_and_disk(settings: Settings) -> Iterator[Diagnosis]:
    folder = settings.state()
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE_BYTES:
        yield Diagnosis("problem", "disk", f"{free / 2**20:.0f} MiB free under {folder}", "free space, or set state_dir elsewhere")
    else:
        yield Diagnosis("good", "disk", f"{free / 2**30:.1f} GiB free under {folder}")
    if not os.access(folder, os.W_OK):
        yield Diagnosis("problem", "state folder", f"{folder} cannot be written", "change its owner, or set state_dir")


def bus(settings: Settings) -> Iterator[Diagnosis]:
    if "brokers" not in settings.bus.model_fields_set:
        yield Diagnosis("note", "bus", "no brokers set: xpulse up brings its own bus; a role alone needs bus.brokers")
        return
    for broker in settings.bus.brokers.split(","):
        host, _, port = broker.strip().rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=3):
                yield Diagnosis("good", "bus", f"{broker} accepts connections")
        except (OSError, ValueError) as error:
            yield Diagnosis("problem", "bus", f"{broker}: {error}", "check bus.brokers (host:port) and the network between here and there")


def store(settings: Settings) -> Iterator[Diagnosis]:
    from sinks.open import open_store

    try:
        open_store(settings.sinks, settings.state()).close()
        yield Diagnosis("good", "store", f"{settings.sinks.store} opens")
    except FileNotFoundError:
        yield Diagnosis("note", "store", "no embedded store yet: its writer makes it")
    except Exception as error:
        yield Diagnosis("problem", "store", f"{settings.sinks.store}: {error}", "check sinks.* (xpulse config show)")


def ports(settings: Settings) -> Iterator[Diagnosis]:
    from xpulse.roles import ROLES

    busy = []
    for role in ROLES:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((settings.health.host, role.port))
            except OSError:
                busy.append(f"{role.name} {role.port}")
    if busy:
        yield Diagnosis("note", "ports", f"in use: {', '.join(busy)} (by XPulse or another program)", "set health.port of that role")
    else:
        yield Diagnosis("good", "ports", "every documented health port is free")


def examine(settings: Settings) -> list[Diagnosis]:
    """All checks; one that breaks is itself a finding."""
    return findings(
        [
            ("python", python),
            ("packages", packages),
            ("shadowing", shadowing),
            ("accelerators", accelerators),
            ("disk", lambda: memory_and_disk(settings)),
            ("bus", lambda: bus(settings)),
            ("store", lambda: store(settings)),
            ("ports", lambda: ports(settings)),
        ]
    )


def findings(checks: Iterable[tuple[str, Callable[[], Iterable[Diagnosis]]]]) -> list[Diagnosis]:
    """What the named checks find; one that breaks is itself a finding."""
    found: list[Diagnosis] = []
    for name, check in checks:
        try:
            found += check()
        except Exception as error:  # the doctor examines broken machines: one failing look must not hide the others
            found.append(Diagnosis("problem", name, f"the check itself failed: {type(error).__name__}: {error}", "report this"))
    return found
