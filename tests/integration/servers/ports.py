"""Chooses TCP ports that are free now and that no outgoing connection takes while a server is down for a restart."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

LOWEST = 15_000
EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count: int, *, candidates: Iterable[int] | None = None) -> tuple[int, ...]:
    """`count` different free loopback ports: the first candidates that can be bound.

    All are held until the last is found, so that none comes twice.
    """
    found: list[int] = []
    with ExitStack() as held:
        for port in _shuffled() if candidates is None else candidates:
            if len(found) == count:
                break
            probe = held.enter_context(socket.socket())
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.append(port)
    if len(found) < count:
        raise OSError(f"only {len(found)} of {count} ports are free on 127.0.0.1: stop what holds them")
    return tuple(found)


def below_ephemeral(range_text: str) -> range:
    """The ports under the kernel's range for outgoing connections ("first last"); all when it starts too low."""
    first = int(range_text.split()[0])
    return range(LOWEST, first) if first - LOWEST >= 1_000 else range(LOWEST, 65_536)


def _shuffled() -> Iterator[int]:
    text = EPHEMERAL_RANGE.read_text() if EPHEMERAL_RANGE.exists() else "49152 65535"
    ports = list(below_ephemeral(text))
    random.shuffle(ports)
    return iter(ports)
