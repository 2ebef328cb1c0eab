"""The pool: workers that crash, hang or refuse are replaced, one bad series costs only itself, and nothing outlives its parent."""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from forecasting.pool import Chunk, Inline, Labelled, Pool, Processes, chunks, open_pool, predict_chunk
from forecasting.predict import Job, Prediction
from tests.unit.forecasting.fragile_child import POISON, SLOW

ROOT = Path(__file__).parents[3]


def job(value: float) -> Job:
    return Job(np.full(20, value), False, 1)


def drain(pool: Pool, seconds: float = 60) -> dict[int, Prediction | str]:
    found: dict[int, Prediction | str] = {}
    end = time.monotonic() + seconds
    while not pool.idle and time.monotonic() < end:
        found |= {item.label: item.result for item in pool.poll()}
        time.sleep(0.02)
    assert pool.idle
    return found


@pytest.fixture
def events() -> Counter[str]:
    return Counter()


@pytest.fixture
def fragile(events: Counter[str]) -> Iterator[Processes]:
    """Workers that die of one value and sleep over another; without statsmodels, so that they start fast."""
    pool = Processes(1, 1.0, events, module="tests.unit.forecasting.fragile_child")
    yield pool
    pool.close()


def test_a_real_worker_fits_models(events: Counter[str]) -> None:
    pool = Processes(1, 60.0, events)
    try:
        y = 70 + 0.2 * np.arange(30) + np.random.default_rng(1).normal(0, 0.02, 30)
        pool.submit(Chunk(((7, Job(y, True, 1, limit=78.0)), (8, job(1.0))), 30, 200))
        found = drain(pool)
    finally:
        pool.close()
    assert isinstance(found[7], Prediction)
    assert found[7].model == "holt"
    assert isinstance(found[8], Prediction)
    assert not events


def test_a_poisoned_series_costs_only_itself(fragile: Processes, events: Counter[str]) -> None:
    fragile.submit(Chunk(tuple((i, job(POISON if i == 2 else 1.0)) for i in range(4)), 5, 100))
    found = drain(fragile)
    assert found[2] == "worker_crashed"
    assert all(isinstance(found[i], Prediction) for i in (0, 1, 3))
    assert events == {"worker_crashed": 3, "series_given_up": 1}


def test_a_hung_worker_is_replaced(fragile: Processes, events: Counter[str]) -> None:
    fragile.submit(Chunk(((0, job(SLOW)),), 5, 100))
    fragile.submit(Chunk(((1, job(1.0)),), 5, 100))
    found = drain(fragile)
    assert found[0] == "worker_hung"
    assert isinstance(found[1], Prediction)
    assert events["worker_hung"] == 1


def test_submit_and_poll_do_not_wait(fragile: Processes) -> None:
    began = time.monotonic()
    for i in range(20):
        fragile.submit(Chunk(tuple((100 * i + k, Job(np.ones(240), False, 1)) for k in range(64)), 5, 100))
        fragile.poll()
    assert time.monotonic() - began < 1.0
    assert len(drain(fragile)) == 20 * 64


def test_workers_end_with_their_parent() -> None:
    script = (
        "import os, time\nfrom collections import Counter\nfrom forecasting.pool import Processes\n"
        "pool = Processes(1, 9.0, Counter(), module='tests.unit.forecasting.fragile_child')\n"
        "pool.start()\nwhile not any(w.ready for w in pool._running):\n    pool.poll(); time.sleep(0.01)\n"
        "print(pool.pids()[0], flush=True)\nos.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    pid = int(done.stdout)
    end = time.monotonic() + 10
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.02)
    assert not alive(pid)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def test_one_series_that_raises_does_not_spoil_the_chunk() -> None:
    found = predict_chunk(Chunk(((0, Job(np.full(20, np.nan), True, 1)), (1, job(1.0)), (2, Job(np.empty(0), False, 1))), 5, 100))
    assert isinstance(found[0].result, str)
    assert isinstance(found[1].result, Prediction)
    assert isinstance(found[2].result, str)


def test_a_chunk_that_raises_is_tried_series_by_series_and_counted() -> None:
    """A horizon of nothing is refused by the backtest, whatever the series."""
    events: Counter[str] = Counter()
    pool = open_pool(0, timeout_seconds=1.0, events=events)
    pool.submit(Chunk(((0, job(1.0)), (1, job(2.0))), 0, 100))
    found = pool.poll()
    assert [type(one.result) for one in found] == [str, str]
    assert events == {"series_tried_alone": 2}
    pool.submit(Chunk(((0, job(1.0)),), 5, 100))
    assert events == {"series_tried_alone": 2}


def test_chunks_are_bounded() -> None:
    items = [(i, job(1.0)) for i in range(130)]
    assert [len(chunk.items) for chunk in chunks(items, 64, horizon=5, paths=100)] == [64, 64, 2]


def test_no_workers_means_inline() -> None:
    pool = open_pool(0, timeout_seconds=1.0, events=Counter())
    assert isinstance(pool, Inline)
    pool.submit(Chunk(((3, job(1.0)),), 5, 100))
    assert [type(item) for item in pool.poll()] == [Labelled]
    assert pool.idle
