"""Gives findings a life: pending, firing, resolved; each transition published exactly once, also across crashes."""

from streams.operators.alert.incidents import Grouping
from streams.operators.alert.lifecycle import Lifecycle, Observed, State, adopt, empty, recall, remember, step
from streams.operators.alert.outbox import Drop, Effect, Save, Transition, complete, lay_out

__all__ = [
    "Drop",
    "Effect",
    "Grouping",
    "Lifecycle",
    "Observed",
    "Save",
    "State",
    "Transition",
    "adopt",
    "complete",
    "empty",
    "lay_out",
    "recall",
    "remember",
    "step",
]
