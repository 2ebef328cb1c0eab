"""Keeps the profiling figures of one exporter at hand for the nvidia plugin, fetched aside: its own reads never wait for HTTP."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from collectors.dcgm.fetch import Call, Unanswered, access
from collectors.dcgm.profile import profiles
from collectors.dcgm.settings import Dcgm, Endpoint

_LATEST_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class _Page:
    at: float
    values: Mapping[str, Mapping[str, float]]


class Background:
    """A thread that asks `url` each `interval_seconds`. `values` gives what is not older than `max_age_seconds` (monotonic clock), so that
    an exporter that died gives nothing; `trouble` says why there is nothing, empty where there is."""

    def __init__(self, url: str, *, interval_seconds: float = 5.0, timeout_seconds: float = 3.0, max_age_seconds: float = 15.0) -> None:
        """Raises ValueError where `url` is no address of a metrics page."""
        endpoint = Endpoint(url=url)
        self._access = access(Dcgm(endpoints=(endpoint,), timeout_seconds=timeout_seconds))
        self._url, self._interval_seconds, self._max_age_seconds = url, interval_seconds, max_age_seconds
        self._page = _Page(float("-inf"), {})
        self._stop = threading.Event()
        self._call: Call | None = None
        self.trouble = "not asked yet"
        self._thread = threading.Thread(target=self._run, name="dcgm-profile", daemon=True)
        self._thread.start()

    def values(self, uuid: str) -> Mapping[str, float]:
        """Catalogue fields of a GPU (GPU-...) or an instance (GPU-.../gi<number>); empty where nothing fresh is known."""
        page = self._page  # replaced as a whole by the thread
        return page.values.get(uuid, {}) if time.monotonic() - page.at <= self._max_age_seconds else {}

    def close(self) -> None:
        """The thread ends now, or with the request it is in."""
        self._stop.set()
        if self._call is not None:
            self._call.abort()
        self._thread.join(1.0)

    def _run(self) -> None:
        wait_seconds = 0.0
        while not self._stop.wait(wait_seconds):
            call = self._call = Call(self._url, self._access)
            try:
                answer = call.run()
            except Unanswered as why:
                self.trouble = f"{self._url}: {why}"
                wait_seconds = min(_LATEST_SECONDS, max(self._interval_seconds, 2 * wait_seconds))
                continue
            found = profiles(answer.body)
            self.trouble = "" if found else f"{self._url}: the page has no profiling fields (DCGM_FI_PROF_...)"
            self._page = _Page(time.monotonic(), found)
            wait_seconds = self._interval_seconds
