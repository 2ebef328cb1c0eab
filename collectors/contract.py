"""The plugin contract, version 1: probe, read what is due, close. A plugin knows its devices and nothing of the bus.

An entry point in the group `xpulse.collectors` names `create(settings, env) -> Plugin`; built-in plugins use the same door.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from schemas.catalogue import Cadence
from schemas.flow import ReadingEvent
from schemas.identity import NodeRef
from schemas.telemetry import v1

API: Final = 1
GROUP: Final = "xpulse.collectors"
OnUnavailable = Literal["fail", "skip", "retry"]


@dataclass(frozen=True, slots=True)
class Env:
    """What a plugin may know of where it runs."""

    node: NodeRef
    boot_id: str
    agent_version: str
    interval_ns: int
    state_dir: Path | None = None
    """Where the agent keeps what must outlive it; None where it keeps nothing."""
    note: Callable[[str, str], None] = lambda key, uid: None
    """Say what is asked next: a key of the plugin's own and the device's uid ("" where there is none). Costs a microsecond. If the process
    hangs then, the key comes back in `avoid`; an empty key says that the plugin is past it."""
    avoid: Mapping[str, str] = field(default_factory=dict)
    """Keys, with their uids, at which an earlier process hung: leave them out. A later process gets them less often, to try again."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The source answers. `devices` are uids, in the source's order."""

    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The source cannot be read now; `reason` says what, where and the remedy."""

    reason: str
    retry_s: float


@dataclass(frozen=True, slots=True)
class NodeReading:
    """What one read gave of one node: samples made by SampleBuilder, with `info` set on each (the publisher thins them).

    `node` None is the agent's own node; a plugin that reads many nodes from one place (the simulator, many exporters) names each.
    """

    taken_at_ns: int
    samples: tuple[v1.DeviceSample, ...]
    node: NodeRef | None = None
    boot_id: str = ""
    driver_epoch: int = 0
    driver_version: str = ""
    simulated: bool = False
    processes: tuple[v1.ProcessSample, ...] | None = None
    """Every process on the node's devices, where the list was due and could be read."""
    processes_unknown: tuple[str, ...] = ()
    """Uids of devices that `processes` says nothing of."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything one read gave. `rejects` counts values turned into absences, by (metric, reason)."""

    samples: tuple[NodeReading, ...] = ()
    events: tuple[ReadingEvent, ...] = ()
    rejects: Mapping[tuple[str, str], int] = field(default_factory=dict)


class Plugin(Protocol):
    """`probe` may be called again at any time after Unavailable. `read` gets the cadences that are due (a plugin reads slow fields only
    when "slow" is among them) and a deadline in `time.monotonic()` seconds; one lost device never hides the others. A source that is
    gone as a whole is any exception out of `read`: the process starts anew. `close` releases the driver."""

    @property
    def api(self) -> int: ...

    def probe(self) -> Ready | Unavailable: ...

    def read(self, due: frozenset[Cadence], deadline: float) -> Reading: ...

    def close(self) -> None: ...


class Create(Protocol):
    """The entry point's target. `settings` is the plugin's own part of xpulse.yaml, `collectors.plugins.<name>.settings`, as a
    plain mapping; the plugin validates it with its own frozen model and raises ValueError naming the key."""

    def __call__(self, settings: Mapping[str, Any], env: Env) -> Plugin: ...
