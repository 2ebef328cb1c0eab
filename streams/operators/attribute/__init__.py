"""Joins samples with allocations by event time: how much of each device each workload used."""

from streams.operators.attribute.history import History
from streams.operators.attribute.join import Arrived, Join, Joined, State, empty, forget_future, step

__all__ = ["Arrived", "History", "Join", "Joined", "State", "empty", "forget_future", "step"]
