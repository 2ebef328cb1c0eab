"""The dcgm plugin: reads every exporter at once and waits for none that is in trouble, so that a dead one delays no other."""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Final

from pydantic import ValidationError

from collectors.contract import API, Env, Reading, Ready, Unavailable
from collectors.dcgm.discovery import Files, Target
from collectors.dcgm.exporter import Exporter, Taken
from collectors.dcgm.fetch import Answer, Call, Unanswered, access
from collectors.dcgm.page import sort
from collectors.dcgm.parse import uid_of
from collectors.dcgm.settings import Dcgm
from schemas import exposition
from schemas.catalogue import Cadence
from schemas.identity import NodeRef

log = logging.getLogger("xpulse.agent")

WHERE: Final = "collectors.plugins.dcgm.settings"
_PROBE_SECONDS: Final = 5.0
"""The longest look of a probe: the agent takes a process that is silent for longer for hung."""

_LOOK_SECONDS: Final = 1.0
"""Between two looks at the file_sd files."""

_GRACE_SECONDS: Final = 0.5


def create(settings: Mapping[str, Any], env: Env) -> Plugin:
    """Entry point dcgm of xpulse.collectors. Raises ValueError naming the key that is wrong."""
    try:
        model = Dcgm.model_validate(dict(settings))
    except ValidationError as error:
        problems = (f"{WHERE}.{'.'.join(map(str, p['loc']))}: {p['msg']}".replace(".: ", ": ") for p in error.errors())
        raise ValueError("; ".join(problems)) from None
    return Plugin(model, env)


class Plugin:
    """See collectors.contract.Plugin."""

    api = API

    def __init__(self, settings: Dcgm, env: Env) -> None:
        self._settings, self._env = settings, env
        self._access = access(settings)
        self._files = Files(settings.file_sd)
        self._fixed = tuple(Target(one.url, one.node, one.cluster, own=one.is_own()) for one in settings.chosen())
        self._exporters: dict[str, Exporter] = {}
        self._owners: dict[NodeRef, str] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._look_at = 0.0
        self._said: dict[str, str] = {}

    def probe(self) -> Ready | Unavailable:
        """Asks every exporter once; Unavailable where none has a GPU."""
        self._look_at = 0.0
        self._look(time.monotonic())
        if not self._exporters:
            problems = "; ".join(f"{path}: {why}" for path, why in self._files.problems.items()) or "the files name no target"
            return Unavailable(f"dcgm: no exporter to read: {problems}; see {WHERE}.file_sd", self._settings.retry_seconds)
        futures = {self._start(one): one for one in self._exporters.values()}
        wait(futures, timeout=min(self._settings.timeout_seconds + _GRACE_SECONDS, _PROBE_SECONDS))
        uids: dict[str, None] = {}
        troubles: list[str] = []
        for future, one in futures.items():
            try:
                if not future.done():
                    raise Unanswered("no answer yet")
                found = self._uids(future.result())
                if not found:
                    raise Unanswered("its page has no GPU")
                uids |= dict.fromkeys(found)
            except Unanswered as why:
                troubles.append(f"{one.target.shown}: {why}")
            if future.done():
                one.future = one.call = None
        if uids:
            return Ready(tuple(uids))
        more = f" (and {len(troubles) - 1} more)" if len(troubles) > 1 else ""
        return Unavailable(f"dcgm: no exporter answers: {troubles[0]}{more}; see {WHERE}.endpoints", self._settings.retry_seconds)

    def read(self, due: frozenset[Cadence], deadline: float) -> Reading:
        """What the exporters that are due say. One without an answer gives its devices absent, and an event when that begins and ends."""
        slow = "slow" in due
        at = time.monotonic()
        self._look(at)
        taken = Taken()
        for one in self._exporters.values():
            one.slow_owed = one.slow_owed or slow
        # The nearest tick, not the one after it: an interval of one tick would be two.
        soon = at + min(self._env.interval_ns / 2e9, self._settings.interval_seconds / 2)
        asked = [one for one in self._exporters.values() if one.future is not None or soon >= one.due_at]
        if at > deadline:
            for one in asked:
                one.passed_by(taken, time.time_ns(), slow=slow)
        else:
            self._ask(asked, deadline)
            for one in asked:
                self._collect(one, taken, deadline)
        return Reading(tuple(taken.readings), tuple(taken.events), taken.rejects)

    def close(self) -> None:
        for one in self._exporters.values():
            one.release()
        self._exporters.clear()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def _ask(self, asked: list[Exporter], deadline: float) -> None:
        for one in asked:
            if one.future is None:
                self._start(one)
        awaited = [one.future for one in asked if not one.trouble and one.future is not None]
        left = min(deadline - time.monotonic(), self._settings.timeout_seconds + _GRACE_SECONDS)
        wait(awaited, timeout=max(0.0, left))

    def _start(self, one: Exporter) -> Future[Answer]:
        if one.future is None:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._settings.workers, thread_name_prefix="dcgm")
            one.call = Call(one.target.url, self._access)
            one.due_at = time.monotonic()
            one.future = self._pool.submit(one.call.run)
        return one.future

    def _collect(self, one: Exporter, taken: Taken, deadline: float) -> None:
        future, settings, at = one.future, self._settings, time.monotonic()
        if future is None:
            return
        if not future.done():
            began = one.call.started_at if one.call is not None else None
            if one.call is not None and began is not None and at - began > settings.timeout_seconds + _GRACE_SECONDS:
                one.call.abort()
            return
        if at > deadline:
            return  # it keeps until the next read
        one.future = one.call = None
        try:
            answer = future.result()
        except Unanswered as why:
            most, interval = settings.retry_max_seconds, settings.interval_seconds
            one.failed(why, taken, at, time.time_ns(), interval_seconds=interval, most_seconds=most)
            return
        interval = settings.interval_seconds
        if not one.nodes and len(self._exporters) > settings.workers:
            interval *= zlib.crc32(one.target.url.encode()) / 2**32  # many are spread over the interval, not read all in one tick
        one.answered(answer, taken, at, interval_seconds=interval, frozen_seconds=settings.frozen_seconds)

    def _look(self, at: float) -> None:
        """Take in what the file_sd files say now."""
        if at < self._look_at:
            return
        self._look_at = at + _LOOK_SECONDS
        wanted = {target.url: target for target in (*self._files.look(), *self._fixed)}
        for path, why in self._files.problems.items():
            if self._said.get(path) != why:
                log.warning("dcgm: file_sd %s: %s; what it said before stands", path, why)
        self._said = dict(self._files.problems)
        for url in [url for url, one in self._exporters.items() if wanted.get(url) != one.target]:
            self._exporters.pop(url).release()
        for url, target in wanted.items():
            if url not in self._exporters:
                self._exporters[url] = Exporter(target, self._env, self._owners)

    def _uids(self, answer: Answer) -> list[str]:
        page = sort(exposition.parse(answer.body, openmetrics=answer.openmetrics or None))
        return [uid_of(seen, self._env.node.node) for seen in page.devices.values()]
