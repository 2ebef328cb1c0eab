"""What is kept of open events over a restart, as plain data: the next process goes on counting in the same event instead of a new one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from collectors.nvidia.xid.group import Group, Groups, Named
from collectors.nvidia.xid.verdict import Verdict


def dump(state: Groups) -> dict[str, Any]:
    """For JSON."""
    return {
        "clock_ns": state.clock_ns,
        "folded": state.folded,
        "cards": [list(card) for card in state.cards.values()],
        "open": [_group(group) for group in state.open.values()],
    }


def _group(group: Group) -> dict[str, Any]:
    kept = asdict(group)
    follows = group.verdict.follows
    kept["verdict"]["follows"] = None if follows is None else sorted(follows)
    return kept


def restore(state: Groups, kept: Mapping[str, Any]) -> None:
    """Into a fresh state. Raises KeyError, TypeError or ValueError where the data is not what `dump` gives."""
    groups = [_restored(group) for group in kept["open"]]
    cards = [Named(*card) for card in kept["cards"]]
    state.clock_ns, state.folded = int(kept["clock_ns"]), int(kept["folded"])
    state.cards = {card.bdf: card for card in cards}
    state.open = {group.key: group for group in groups}
    state.of_device = Counter(group.key[1] for group in groups)
    state.loose = sum(1 for group in groups if group.symptom and not group.caused_by)
    state.due_ns = 0  # the first line or Tick looks at all of them


def _restored(kept: Mapping[str, Any]) -> Group:
    verdict = dict(kept["verdict"])
    follows = verdict["follows"]
    verdict["follows"] = None if follows is None else frozenset(follows)
    verdict["together_with"] = tuple((int(code), action) for code, action in verdict["together_with"])
    kind, bdf, code, apart = kept["key"]
    return Group(**{**kept, "key": (str(kind), str(bdf), int(code), str(apart)), "verdict": Verdict(**verdict)})
