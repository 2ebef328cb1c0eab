"""Series as devices show them, in GB on a card of 80, one value per step: what must and what must not be called a leak."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def noisy(y: Floats, seed: int, sigma: float = 0.02) -> Floats:
    """In bytes, with a flicker of `sigma` GB."""
    out: Floats = np.clip(y + np.random.default_rng(seed).normal(0, sigma, y.size), 0.004, 80.0) * 1e9
    return out


def flat(steps: int, seed: int) -> Floats:
    """A server that took 0.9 of the card and keeps it."""
    return noisy(np.full(steps, 72.0), seed)


def leak(steps: int, onset: int, duration: int, seed: int, sigma: float = 0.02) -> Floats:
    """Flat, then from 0.9 to all of the card over `duration` steps."""
    t = np.arange(steps)
    return noisy(72 + 8 * np.clip((t - onset) / duration, 0, 1), seed, sigma)


def load(steps: int, at: int, seconds: float, step_seconds: float, seed: int) -> Floats:
    """A model being loaded: 2 to 72 GB in `seconds`, then flat."""
    t = (np.arange(steps) - at) * step_seconds
    return noisy(2 + 70 * np.clip(t / seconds, 0, 1), seed)


def restart(steps: int, at: int, seed: int) -> Floats:
    """72 GB, gone in a step, empty for ten, loaded again in 40."""
    y = np.full(steps, 72.0)
    y[at : at + 10] = 2.0
    y[at + 10 : at + 50] = np.linspace(2, 72, 40)
    return noisy(y, seed)


def sawtooth(steps: int, seed: int) -> Floats:
    """Collected every 20-60 steps: rises as straight as a leak, to 70 GB, and falls back to 50."""
    rng = np.random.default_rng(seed)
    period = int(rng.integers(20, 61))
    t = np.arange(steps) + int(rng.integers(0, period))
    return noisy(50 + 20 * (t % period) / period, seed)


def growing(steps: int, seed: int) -> Floats:
    """A cache that fills from 30 to 65 GB over ten minutes, with a small collector's tooth on it."""
    t = np.arange(steps)
    return noisy(30 + 35 * np.clip(t / 600, 0, 1) + 1.2 * (t % 45) / 45, seed)


def saturating(steps: int, seed: int) -> Floats:
    """A pool that approaches 70 GB ever more slowly."""
    tau = float(np.random.default_rng(seed).uniform(30, 120))
    return noisy(70 - 45 * np.exp(-np.arange(steps) / tau), seed)


def diurnal(steps: int, seed: int, period: int = 1440) -> Floats:
    """Follows the day's load between 40 and 70 GB."""
    phase = float(np.random.default_rng(seed).uniform(0, 2 * np.pi))
    return noisy(55 + 15 * np.sin(2 * np.pi * np.arange(steps) / period + phase), seed, 0.2)


def deploy(steps: int, at: int, seed: int) -> Floats:
    """Another 12 GB taken in one step, for good."""
    return noisy(np.where(np.arange(steps) < at, 58.0, 70.0), seed)


def temperature(steps: int, seed: int) -> Floats:
    """Whole degrees: load comes and goes, the card follows with a lag, between 40 and 76 °C."""
    rng = np.random.default_rng(seed)
    goal, value, out = 45.0, 45.0, []
    for _ in range(steps):
        if rng.random() < 1 / 60:
            goal = float(rng.uniform(40, 76))
        value += (goal - value) / 20 + rng.normal(0, 0.2)
        out.append(round(value))
    return np.asarray(out, dtype=np.float64)


def stairs(steps: int, onset: int, every: float, piece: float, seed: int) -> Floats:
    """A leak in pieces: from 60 GB on, about `piece` GB about each `every` steps, never given back."""
    rng = np.random.default_rng(seed)
    y, at = np.full(steps, 60.0), float(onset)
    while at < steps:
        y[int(at) :] += piece * rng.uniform(0.7, 1.3)
        at += max(2.0, every * rng.uniform(0.7, 1.3))
    return noisy(np.minimum(y, 79.5), seed)


def deploys(steps: int, seed: int) -> Floats:
    """Three releases within an hour, each of which takes a little more, and then none."""
    at = np.arange(steps)
    taken: Floats = np.sum([at >= release for release in (60, 75, 95)], axis=0, dtype=np.float64)
    return noisy(66 + 2.5 * taken, seed)


def breathing(steps: int, seed: int) -> Floats:
    """A pool that grows and shrinks in pieces of 2 GB as requests come and go."""
    moves = np.random.default_rng(seed).choice((-2.0, 0.0, 2.0), size=steps // 10 + 1, p=(0.3, 0.4, 0.3))
    return noisy(np.clip(66.0 + np.repeat(np.cumsum(moves), 10)[:steps], 58, 74), seed)
