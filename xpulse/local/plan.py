"""Which processes a local stack needs, and the environment that turns the common settings into theirs. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from xpulse.errors import UsageError
from xpulse.local.child import Spec
from xpulse.local.fakenvml import FakeNvml

_SHAPE: Final = re.compile(r"(?:([0-9]{1,9})x)?([0-9]{1,9})x([0-9]{1,9})")
_DURATION: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m|h|d)?")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, None: 1.0}
LONGEST_SECONDS: Final = 10 * 365.25 * 86_400
"""More is a typing error, and times in ns have to fit 63 bits."""

NOTHING: Final[Mapping[str, str]] = {}
STREAMS: Final = ("attribute", "detect", "alert")


@dataclass(frozen=True, slots=True)
class Shape:
    """Clusters x nodes x devices per node of the simulated fleet."""

    clusters: int
    nodes: int
    devices: int

    def cluster_names(self, cluster: str = "local") -> list[str]:
        """One cluster is the stack's own; several are named after it."""
        return [cluster] if self.clusters == 1 else [f"{cluster}-{chr(ord('a') + i)}" for i in range(self.clusters)]


@dataclass(frozen=True, slots=True)
class Options:
    """What `xpulse up` was asked for."""

    simulate: Shape | None = None
    seed: int = 7
    faults: tuple[str, ...] = ()
    for_seconds: float | None = None
    summary: Path | None = None
    view: bool = True
    runner: str | None = None
    fake_nvml: FakeNvml | None = None

    @property
    def simulated(self) -> bool:
        """Whether no device of this stack is a real one."""
        return self.simulate is not None or self.fake_nvml is not None


@dataclass(frozen=True, slots=True)
class Where:
    """Bus, store and folders of this run. `embedded` is the built-in bus; else Kafka as configured. `agent` is for the agent alone."""

    brokers: str
    embedded: bool
    store: str
    state: Path
    cluster: str
    scenario_started_at_ns: int = 0
    demo_forecast: bool = False
    extra: Mapping[str, str] = field(default_factory=dict)
    agent: Mapping[str, str] = field(default_factory=dict)


def shape(text: str) -> Shape:
    """`2x8` (nodes x devices) or `2x2x8` (clusters x nodes x devices). Raises UsageError."""
    match = _SHAPE.fullmatch(text)
    numbers = [int(n) if n else 1 for n in match.groups()] if match else []
    if not match or min(numbers) < 1:
        raise UsageError(f"--simulate {text!r}: give NODESxDEVICES as in 2x8, or CLUSTERSxNODESxDEVICES as in 2x2x8, each at least 1")
    found = Shape(*numbers)
    if found.clusters > 26 or found.clusters * found.nodes * found.devices > 4096:
        raise UsageError(f"--simulate {text!r}: at most 26 clusters and 4096 devices on one machine")
    return found


def duration_seconds(text: str, option: str) -> float:
    """`90s`, `2m`, `1.5h`, `7d`, `500ms`, or plain seconds. Raises UsageError."""
    match = _DURATION.fullmatch(text)
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if not 0 < seconds <= LONGEST_SECONDS:
        raise UsageError(f"{option} {text!r}: give a duration above zero, at most ten years, as in 150s, 5m, 1h or 7d")
    return seconds


def environment(options: Options, where: Where) -> dict[str, str]:
    """XPULSE_* variables over the user's settings for every role of this stack."""
    found = {
        "XPULSE_CLUSTER": where.cluster,
        "XPULSE_STATE_DIR": str(where.state),
        "XPULSE_BUS__BROKERS": where.brokers,
        "XPULSE_BUS__EMBEDDED": "true" if where.embedded else "false",
        "XPULSE_SINKS__STORE": where.store,
        **where.extra,
    }
    if options.runner:
        found["XPULSE_STREAMS__RUNNER"] = options.runner
    if options.fake_nvml:
        found["XPULSE_COLLECTORS__PLUGINS"] = json.dumps(options.fake_nvml.settings)
    if options.simulate:
        found["XPULSE_COLLECTORS__PLUGINS"] = json.dumps(
            {
                "nvidia": {"enabled": False},
                "simulated": {
                    "enabled": True,
                    "on_unavailable": "fail",
                    "settings": {
                        "clusters": options.simulate.cluster_names(where.cluster),
                        "nodes": options.simulate.nodes,
                        "devices_per_node": options.simulate.devices,
                        "seed": options.seed,
                        "started_at_ns": where.scenario_started_at_ns,
                        "faults": list(options.faults),
                    },
                },
            }
        )
    return found


def specs(where: Where, environment_: Mapping[str, str]) -> list[Spec]:
    """The roles of the stack, the ones behind the first row first: readings, then the store, then what reads streams, then the rest."""

    def role(name: str, command: Sequence[str], stage: int, more: Mapping[str, str] = NOTHING) -> Spec:
        return Spec(name, ("-m", "xpulse.cli.main", *command), {**environment_, **more}, stage)

    return [
        role("agent", ("agent",), 0, where.agent),
        role(where.store, ("sink", where.store), 0),
        *(role(name, ("stream", name), 1) for name in STREAMS),
        role("notify", ("sink", "notify"), 2),
        role("mirror", ("sink", "mirror"), 2),
        role("forecast", ("forecast",), 2),
    ]
