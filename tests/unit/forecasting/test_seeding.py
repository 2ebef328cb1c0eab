"""What the store remembers: gauges, counters over resets, services; nothing from before a device was resized."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from forecasting import targets
from forecasting.seeding import seed_devices, seed_services
from forecasting.series import History
from forecasting.services import Services
from forecasting.settings import Forecasting
from forecasting.targets import Target
from schemas.telemetry import v1
from tests.unit.forecasting import shapes
from tests.unit.forecasting.fleet import SECOND, START_NS, batch, window
from tests.unit.forecasting.scoring.kept import Kept
from tests.unit.forecasting.shapes import Floats

STEP_NS = 60 * SECOND


def kept(*chosen: Target) -> Kept:
    return Kept(Forecasting(workers=0, targets=chosen))


def seeded(run: Kept, folder: Path, history: History | None = None, *, keep: bool = True) -> tuple[History, Floats]:
    """A history of the run's targets filled from its store, and the values of its first target for sim:a."""
    history = history or History(run.settings.targets, step_ns=STEP_NS, history_steps=240, max_series=100, dropped=Counter())
    with run.store(folder) as store:
        seed_devices(history, store, at_ns=run.now_ns, step_ns=STEP_NS, history_steps=240, keeps=lambda cluster, node: keep)
    device = history.device("c0", "n0", "sim:a")
    if device is None:
        return history, np.empty(0)
    values = history.snapshot([device], 0, run.now_ns + STEP_NS).values[0]
    return history, values[np.isfinite(values)]


def test_gauges_and_their_limits(tmp_path: Path) -> None:
    run = kept(targets.MEMORY)
    y = shapes.flat(50, 1)
    run.feed({"sim:a": {"memory_used_bytes": y}}, step_seconds=60)
    history, values = seeded(run, tmp_path)
    assert values.size >= 49
    assert values == pytest.approx(y[: values.size], abs=1)
    device = history.device("c0", "n0", "sim:a")
    assert device is not None
    assert device.limit("memory_total_bytes", START_NS + 60 * SECOND) == 80e9


def test_nothing_of_nodes_that_are_another_s(tmp_path: Path) -> None:
    run = kept(targets.MEMORY)
    run.feed({"sim:a": {"memory_used_bytes": shapes.flat(50, 1)}}, step_seconds=60)
    history, _ = seeded(run, tmp_path, keep=False)
    assert len(history) == 0


def test_nothing_from_before_a_device_was_resized(tmp_path: Path) -> None:
    run = kept(targets.MEMORY)
    run.feed({"sim:a": {"memory_used_bytes": shapes.noisy(np.full(60, 70.0), 1)}}, step_seconds=60)
    run.limits = {"memory_total_bytes": 40 * 10**9}
    run.feed({"sim:a": {"memory_used_bytes": shapes.noisy(np.full(60, 30.0), 1)}}, step_seconds=60)
    _, values = seeded(run, tmp_path)
    assert 55 <= values.size <= 60
    assert values.max() < 31e9


def counted(steps: int, per_step: float, seed: int) -> Floats:
    out: Floats = 500 + np.cumsum(np.random.default_rng(seed).poisson(per_step, steps)).astype(np.float64)
    return out


def test_a_counter_goes_on_where_the_store_ends_over_a_reset(tmp_path: Path) -> None:
    run = kept(targets.ECC_CORRECTED)
    run.feed({"sim:a": {"ecc_corrected_volatile_errors": counted(40, 3.0, 1)}}, step_seconds=60)
    run.boot_id = "another"
    after = counted(40, 3.0, 2) - 500
    run.feed({"sim:a": {"ecc_corrected_volatile_errors": after}}, step_seconds=60)
    history, values = seeded(run, tmp_path)
    assert values.size >= 70
    assert values.max() < 10
    for minute in range(1, 20):  # and the samples that follow
        at_ns = run.now_ns + minute * STEP_NS
        history.take(
            batch(at_ns, {"sim:a": {"ecc_corrected_volatile_errors": after[-1] + 3 * minute}}, sequence=900 + minute, boot_id="another")
        )
    device = history.device("c0", "n0", "sim:a")
    assert device is not None
    rates = history.snapshot([device], 0, run.now_ns + 21 * STEP_NS).values[0]
    assert rates[-1] == pytest.approx(3)
    assert np.nanmax(rates) < 10


def test_samples_that_came_first_are_met_by_what_the_store_has_of_before(tmp_path: Path) -> None:
    run = kept(targets.ECC_CORRECTED)
    counter = counted(40, 3.0, 1)
    run.feed({"sim:a": {"ecc_corrected_volatile_errors": counter}}, step_seconds=60)
    history = History(run.settings.targets, step_ns=STEP_NS, history_steps=240, max_series=100, dropped=Counter())
    history.take(batch(run.now_ns, {"sim:a": {"ecc_corrected_volatile_errors": counter[-1] + 3}}, sequence=900))
    history.take(batch(run.now_ns + STEP_NS, {"sim:a": {"ecc_corrected_volatile_errors": counter[-1] + 6}}, sequence=901))
    run.second += 60
    _, values = seeded(run, tmp_path, history)
    assert values.size >= 36
    assert values.max() < 10


def test_services_are_seeded_as_bad_as_their_worst_instance(tmp_path: Path) -> None:
    run = kept(targets.KV_CACHE)
    for minute in range(40):
        run.give(window(run.now_ns, pod="b", node="n1", kv_cache_used_ratio=0.9), 0)
        run.give(window(run.now_ns, kv_cache_used_ratio=0.5 + 0.001 * minute), 60)
    services = Services(run.settings.targets, step_ns=STEP_NS, history_steps=240, max_series=100, dropped=Counter())
    with run.store(tmp_path) as store:
        seed_services(services, store, at_ns=run.now_ns, step_ns=STEP_NS, history_steps=240, keeps=lambda cluster, node: True)
    (service,) = services.everybody()
    assert service.entity == "service/c0/prod/chat"
    values = services.snapshot([service], 0, run.now_ns + STEP_NS).values[0]
    known = values[np.isfinite(values)]
    assert known.size >= 38
    assert known == pytest.approx(0.9)


def test_a_restarted_forecaster_speaks_at_once_of_a_service(tmp_path: Path) -> None:
    run = kept(targets.KV_CACHE)
    for minute in range(75):
        fill = min(1.0, 0.6 + 0.42 * max(0, minute - 40) / 50) + 0.001 * (minute % 3)
        run.give(window(run.now_ns, kv_cache_used_ratio=fill), 60)
    assert run.processor.standing == 1
    services = Services(run.settings.targets, step_ns=STEP_NS, history_steps=240, max_series=100, dropped=Counter())
    services.expect("c0", "n0", "service/c0/prod/chat")
    with run.store(tmp_path) as store:
        seed_services(services, store, at_ns=run.now_ns, step_ns=STEP_NS, history_steps=240, keeps=lambda cluster, node: True)
    (service,) = services.everybody()
    assert service.node == "n0"


def test_a_window_is_kept_in_the_name_of_one_node() -> None:
    services = Services((targets.KV_CACHE,), step_ns=STEP_NS, history_steps=240, max_series=100, dropped=Counter())
    for node in ("n3", "n1", "n2"):
        message = window(START_NS, pod=node, node=node, kv_cache_used_ratio=0.5)
        assert isinstance(message, v1.InferenceWindow)
        services.take(message)
    assert [(one.node, one.entity) for one in services.everybody()] == [("n3", "service/c0/prod/chat")]
