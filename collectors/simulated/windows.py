"""InferenceWindows of the simulated services: requests, tokens, queue and latency histograms that follow from load and clocks."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from collectors.simulated.physics import WINDOW_SECONDS
from collectors.simulated.workload import workload
from schemas.telemetry import v1

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collectors.simulated.fleet import Fleet
    from collectors.simulated.physics import Boundary
    from collectors.simulated.services import Service

FIRST_TOKEN_BOUNDS: Final = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0)
INTER_TOKEN_BOUNDS: Final = (0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
"""Upper bounds in seconds."""
FIRST_TOKEN_SPREAD: Final = 0.45
INTER_TOKEN_SPREAD: Final = 0.25
"""Sigma of the log-normal latencies; an assumption."""
BATCHING_COST: Final = 0.9
"""How much slower a token comes at full load than alone, because it shares its step with others; an assumption."""
KV_TOKENS_PER_CARD: Final = 400_000


def inference_windows(fleet: Fleet, after: int, until: int) -> Iterator[v1.InferenceWindow]:
    """Windows that ended in (after, until], of services that were up at their end."""
    for before, now in pairwise(fleet.state.windows):
        if not after < now.step <= until:
            continue
        for service in fleet.services:
            life = fleet.timeline.life(service.number, now.step)
            if life.opened < now.step:
                yield _window(fleet, service, before, now)


def _window(fleet: Fleet, service: Service, before: Boundary, now: Boundary) -> v1.InferenceWindow:
    i = service.number
    # Differences of whole totals: no request is lost or doubled between windows.
    requests = math.floor(now.served[i]) - math.floor(before.served[i])
    served = max(now.served[i] - before.served[i], 1e-9)
    wait_seconds = (now.waited[i] - before.waited[i]) / served
    load, speed = float(now.utilization[i]), float(now.speed[i])
    token_seconds = service.token_seconds * (1 + BATCHING_COST * load) / speed
    first_seconds = service.prefill_seconds * (1 + 0.5 * load) / speed + wait_seconds
    generated = round(requests * service.generated_tokens)
    lasts_seconds = first_seconds - wait_seconds + service.generated_tokens * token_seconds
    running = requests / WINDOW_SECONDS * lasts_seconds
    kv_tokens = running * (service.prompt_tokens + service.generated_tokens / 2)
    life = fleet.timeline.life(i, now.step)
    return v1.InferenceWindow(
        cluster=service.cluster,
        node=service.node,
        workload=workload(service, life),
        engine="simulated",
        model=service.model,
        started_at_ns=fleet.time_ns(before.step),
        ended_at_ns=fleet.time_ns(now.step),
        device_uid=[fleet.layout.devices[card].uid for card in service.cards],
        requests=requests,
        prompt_tokens=round(requests * service.prompt_tokens),
        generated_tokens=generated,
        requests_running=running,
        requests_waiting=float(now.backlog[i]),
        kv_cache_used_ratio=min(1.0, kv_tokens / (KV_TOKENS_PER_CARD * len(service.cards))),
        time_to_first_token_seconds=lognormal_histogram(FIRST_TOKEN_BOUNDS, requests, first_seconds, FIRST_TOKEN_SPREAD),
        inter_token_latency_seconds=lognormal_histogram(
            INTER_TOKEN_BOUNDS, max(0, generated - requests), token_seconds, INTER_TOKEN_SPREAD
        ),
        simulated=True,
    )


def lognormal_histogram(bounds: tuple[float, ...], count: int, median: float, sigma: float) -> v1.Histogram:
    """`count` values of a log-normal, put into buckets without randomness; the counts add up exactly (largest remainders)."""
    if count == 0:
        return v1.Histogram(bound=bounds, count=[0] * (len(bounds) + 1))
    below = [0.5 * (1 + math.erf(math.log(bound / median) / (sigma * math.sqrt(2)))) for bound in bounds]
    exact = [count * (b - a) for a, b in pairwise([0.0, *below, 1.0])]
    counts = [math.floor(x) for x in exact]
    short = count - sum(counts)
    for k in sorted(range(len(exact)), key=lambda k: (counts[k] - exact[k], k))[:short]:
        counts[k] += 1
    return v1.Histogram(bound=bounds, count=counts, sum=count * median * math.exp(sigma**2 / 2))
