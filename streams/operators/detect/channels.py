"""A channel is one detector looking at one metric; which of them a rule asks, and which active rules say already what one would say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np

from streams.rules.condition import Anomalous, Beyond, Bursting, Residual, Unlike
from streams.rules.families import family_of
from streams.rules.vocabulary import PEER_METRICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from streams.rules.condition import Condition
    from streams.rules.model import Rule

Kind = Literal["usual", "burst", "below", "above", "residual", "load"]

KINDS: Final[tuple[Kind, ...]] = ("usual", "burst", "below", "above", "residual", "load")
"""Far from its own past; grows as its past makes unlikely; below or above its like; does not go together with the others; above what its
load explains."""

SIDES: Final[tuple[Kind, Kind]] = ("below", "above")


class Channel(NamedTuple):
    """`load` is what the metric follows, and `least` in its unit what is odd above that, where the kind is "load"."""

    kind: Kind
    metric: str
    load: str = ""
    least: float = 0.0


def channels(rules: Sequence[Rule]) -> list[Channel]:
    """Those that some rule asks, by kind. Peers come whole: all features are compared at once."""
    found: dict[Channel, None] = {}
    for rule in rules:
        found.update(dict.fromkeys(asked(rule.when)))
    if any(isinstance(rule.when, Unlike) and rule.when.among == "node" for rule in rules):
        compared = [Channel(kind, metric) for kind in SIDES for metric in PEER_METRICS]
        found = dict.fromkeys([c for c in found if c.kind not in SIDES] + compared)
    return sorted(found, key=lambda c: KINDS.index(c.kind))


def asked(when: Condition) -> list[Channel]:
    """Channels that a condition looks at; none where it is not judged by a score of the device's own readings."""
    match when:
        case Anomalous():
            return [Channel("usual", metric) for metric in when.metrics]
        case Bursting():
            return [Channel("burst", metric) for metric in when.counters]
        case Unlike(among="node"):
            return [Channel(when.side, metric) for metric in when.metrics]
        case Residual():
            return [Channel("residual", when.metrics[0])]
        case Beyond():
            return [Channel("load", when.metric, when.load, when.least)]
        case _:
            return []


def said_already(found: Sequence[Channel], rules: Sequence[Rule], left: Sequence[str]) -> NDArray[np.bool_]:
    """(channels, rules): whether an active rule speaks of the same trouble in plainer words. `left` is what each rule compares.

    A threshold names its trouble; a burst or a comparison with peers is plainer than that something is unusual; that things do not go
    together says least.
    """
    plain = [_vagueness(rule.when) for rule in rules]
    families = [family(metric) for metric in left]
    vague = {"usual": 2, "residual": 3}
    table = [[p < vague.get(c.kind, 1) and f == family(c.metric) for p, f in zip(plain, families, strict=True)] for c in found]
    return np.array(table, np.bool_).reshape(len(found), len(rules))


def family(metric: str) -> str:
    """Metrics that one trouble of a device moves together: heat, power, clock and activity are one family here."""
    name = family_of("", metric).name
    return "work" if name in ("", "heat", "power", "load") else name


def _vagueness(when: Condition) -> int:
    match when:
        case Bursting() | Unlike() | Beyond():
            return 1
        case Anomalous():
            return 2
        case Residual():
            return 3
        case _:
            return 0
