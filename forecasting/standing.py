"""Which breach forecasts stand: raised after some rounds, refreshed while they hold, withdrawn exactly once when they do not."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

K = TypeVar("K", bound=Hashable)

Verdict = Literal["none", "publish", "receded", "breached", "recovered", "signal_lost"]
"""What a round means for a series: nothing to say of a breach; say or repeat it; or withdraw it, and why."""


@dataclass(frozen=True, slots=True)
class Hysteresis:
    """The two levels and how many rounds in a row each takes."""

    raise_probability: float
    raise_rounds: int
    recede_probability: float
    recede_rounds: int


@dataclass(frozen=True, slots=True)
class Look:
    """One round's look at one series. `probability` None: it could not be assessed this round, which proves nothing either way.

    `fallen` says by how much the value must fall below where it was when the breach was first said to have recovered.
    """

    current: float | None
    limit: float | None
    probability: float | None
    lost: bool = False
    fallen: float = 0.0


@dataclass(slots=True)
class _State:
    stands: bool = False
    above: int = 0
    below: int = 0
    raised_at: float | None = None


class Standing(Generic[K]):
    """State per series; a series of which nothing stands and nothing is pending is not in it."""

    def __init__(self, hysteresis: Hysteresis) -> None:
        self._h = hysteresis
        self._state: dict[K, _State] = {}

    def __contains__(self, key: K) -> bool:
        state = self._state.get(key)
        return state is not None and state.stands

    def keys(self) -> list[K]:
        """Series of which a breach forecast stands."""
        return [key for key, state in self._state.items() if state.stands]

    def adopt(self, key: K, raised_at: float | None) -> None:
        """One that stood before this process began."""
        self._state[key] = _State(stands=True, raised_at=raised_at)

    def forget(self, key: K) -> None:
        """Without a word: another process owns it now."""
        self._state.pop(key, None)

    def look(self, key: K, look: Look) -> Verdict:
        """Take a round's look in. A withdrawal's verdict is given once; the series then starts from nothing."""
        state = self._state.get(key) or _State()
        verdict = self._stands(state, look) if state.stands else self._rests(state, look)
        if state.stands or state.above:
            self._state[key] = state
        else:
            self._state.pop(key, None)
        return verdict

    def _rests(self, state: _State, look: Look) -> Verdict:
        crossed = look.current is not None and look.limit is not None and look.current >= look.limit
        if look.lost or crossed or (look.probability is not None and look.probability < self._h.raise_probability):
            state.above = 0
            return "none"
        if look.probability is None:
            return "none"
        state.above += 1
        if state.above < self._h.raise_rounds:
            return "none"
        state.stands, state.above, state.below, state.raised_at = True, 0, 0, look.current
        return "publish"

    def _stands(self, state: _State, look: Look) -> Verdict:
        reason: Verdict = "none"
        if look.lost:
            reason = "signal_lost"
        elif look.current is not None and look.limit is not None and look.current >= look.limit:
            reason = "breached"
        elif self._fell(state, look) or (look.probability is not None and look.probability < self._h.recede_probability):
            state.below += 1
            if state.below >= self._h.recede_rounds:
                reason = "recovered" if self._fell(state, look) else "receded"
        elif look.probability is not None:
            state.below = 0
            return "publish"
        if reason != "none":
            state.stands, state.above = False, 0
        return reason

    @staticmethod
    def _fell(state: _State, look: Look) -> bool:
        return look.current is not None and state.raised_at is not None and look.current < state.raised_at - look.fallen
