"""Hands chunks of series to worker processes and never waits for them: a worker that crashes or hangs is replaced, its chunk halved.

Not ProcessPoolExecutor: it cannot end one hung worker, its workers outlive a killed parent, and with `spawn` each imports the
command line again. A worker here holds one end of a socket pair, and ends with it.
"""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from forecasting.predict import Job, Prediction, predict_all

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_START_SECONDS: Final = 120.0
"""A worker imports numpy first: a fraction of a second here, much more on a machine that swaps."""

Result = Prediction | str
"""A prediction, or why there is none."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Series to predict: (label, job) pairs. The label comes back with the result."""

    items: tuple[tuple[int, Job], ...]
    horizon: int
    paths: int


class Labelled(NamedTuple):
    """`alone`: its chunk raised, and the series was tried by itself."""

    label: int
    result: Result
    alone: bool = False


class Pool(Protocol):
    """Predicts chunks. `poll` gives what is finished and keeps the workers going; `idle`: nothing is under way."""

    def submit(self, chunk: Chunk) -> None: ...

    def poll(self) -> list[Labelled]: ...

    @property
    def idle(self) -> bool: ...

    def close(self) -> None: ...


def predict_chunk(chunk: Chunk) -> list[Labelled]:
    """Every item gets a result: one bad series never costs the others theirs."""
    jobs = [job for _, job in chunk.items]
    alone = False
    try:
        results: list[Result] = [*predict_all(jobs, horizon=chunk.horizon, paths=chunk.paths)]
    except Exception:  # whatever a numerical library may raise: the chunk's other series must not pay for it
        alone = True
        results = [_alone(job, chunk) for job in jobs]
    return [
        Labelled(label, f"unpredictable: {result}" if isinstance(result, str) else result, alone)
        for (label, _), result in zip(chunk.items, results, strict=True)
    ]


def _alone(job: Job, chunk: Chunk) -> Result:
    try:
        return predict_all([job], horizon=chunk.horizon, paths=chunk.paths)[0]
    except Exception as error:  # as above
        return f"{type(error).__name__}: {error}"


class Inline:
    """Predicts in this process, at once: for tests, and for `workers: 0`."""

    def __init__(self, events: Counter[str] | None = None) -> None:
        self._done: list[Labelled] = []
        self._events: Counter[str] = Counter() if events is None else events

    def submit(self, chunk: Chunk) -> None:
        done = predict_chunk(chunk)
        self._done += done
        _count(self._events, done)

    def poll(self) -> list[Labelled]:
        done, self._done = self._done, []
        return done

    @property
    def idle(self) -> bool:
        return not self._done

    def close(self) -> None:
        pass


@dataclass(slots=True)
class _Worker:
    process: subprocess.Popen[bytes]
    pipe: Connection
    since: float
    ready: bool = False
    chunk: Chunk | None = None


@dataclass(slots=True)
class Processes:
    """`workers` processes, started at the first submit (or `start`). `events` counts worker_crashed, worker_hung,
    series_given_up, and series_tried_alone: their chunk raised, which the others must not pay for, but somebody should look into."""

    workers: int
    timeout_seconds: float
    events: Counter[str]
    monotonic: Callable[[], float] = time.monotonic
    module: str = "forecasting.child"
    _waiting: deque[Chunk] = field(default_factory=deque)
    _running: list[_Worker] = field(default_factory=list)
    _lost: list[Labelled] = field(default_factory=list)

    def start(self) -> None:
        while len(self._running) < self.workers:
            self._running.append(self._spawn())

    def submit(self, chunk: Chunk) -> None:
        self._waiting.append(chunk)
        self.start()
        self._feed()

    @property
    def idle(self) -> bool:
        return not self._waiting and not self._lost and all(worker.chunk is None for worker in self._running)

    def pids(self) -> list[int]:
        return [worker.process.pid for worker in self._running]

    def poll(self) -> list[Labelled]:
        """Never blocks longer than it takes to read what has arrived."""
        done: list[Labelled] = []
        for worker in list(self._running):
            try:
                while worker.pipe.poll(0):
                    reply = worker.pipe.recv()
                    if reply == "ready":
                        worker.ready = True
                    else:
                        done += reply
                        worker.chunk = None
                        _count(self.events, reply)
            except (EOFError, OSError, pickle.UnpicklingError):
                self._replace(worker, "worker_crashed")
                continue
            overdue = self.monotonic() - worker.since
            if (worker.chunk is not None and overdue > self.timeout_seconds) or (not worker.ready and overdue > _START_SECONDS):
                self._replace(worker, "worker_hung")
        self._feed()
        done += self._lost
        self._lost = []
        return done

    def close(self) -> None:
        """End the workers; what they had is dropped."""
        for worker in self._running:
            _end(worker)
        self._running.clear()
        self._waiting.clear()

    def _feed(self) -> None:
        for worker in self._running:
            if worker.ready and worker.chunk is None and self._waiting:
                worker.chunk = self._waiting.popleft()
                worker.since = self.monotonic()
                try:
                    worker.pipe.send(worker.chunk)  # it waits in recv, so this does not block for long
                except OSError:
                    continue  # it died just now; the next poll replaces it and keeps the chunk

    def _replace(self, worker: _Worker, event: str) -> None:
        self.events[event] += 1
        _end(worker)
        self._running.remove(worker)
        if worker.chunk is not None:
            items = worker.chunk.items
            if len(items) == 1:
                self.events["series_given_up"] += 1
                self._lost.append(Labelled(items[0][0], event))
            else:
                for half in (items[len(items) // 2 :], items[: len(items) // 2]):
                    self._waiting.appendleft(Chunk(half, worker.chunk.horizon, worker.chunk.paths))
        if worker.ready or event == "worker_hung":
            self._running.append(self._spawn())
        # One that never came up is not started again at once: the next submit tries, once per round.

    def _spawn(self) -> _Worker:
        ours, theirs = socket.socketpair()
        env = os.environ | {
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]),
        }
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", self.module, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=env,
            )
        return _Worker(process, Connection(ours.detach()), self.monotonic())


def _count(events: Counter[str], done: Sequence[Labelled]) -> None:
    if done and done[0].alone:
        events["series_tried_alone"] += len(done)


def _end(worker: _Worker) -> None:
    worker.pipe.close()
    worker.process.kill()
    worker.process.wait()


def open_pool(workers: int, *, timeout_seconds: float, events: Counter[str]) -> Pool:
    """As the settings say; the processes start importing at once, so that the first round does not wait for them."""
    if workers == 0:
        return Inline(events)
    pool = Processes(workers, timeout_seconds, events)
    pool.start()
    return pool


def chunks(items: Sequence[tuple[int, Job]], size: int, *, horizon: int, paths: int) -> list[Chunk]:
    return [Chunk(tuple(items[i : i + size]), horizon, paths) for i in range(0, len(items), size)]
