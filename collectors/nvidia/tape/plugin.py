"""The nvidia plugin on a bundle instead of a driver: `xpulse agent --replay BUNDLE`. Plays it from begin to end, and again."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from typing import Final

from collectors.contract import API, Env, Reading, Ready, Unavailable
from collectors.nvidia.plugin import Plugin
from collectors.nvidia.reply import FUNCTION_NOT_FOUND
from collectors.nvidia.settings import Nvidia
from collectors.nvidia.source import Source
from collectors.nvidia.tape.bundle import QUIET, BadBundle, read
from collectors.nvidia.tape.play import Player
from schemas.catalogue import Cadence

log = logging.getLogger("xpulse.agent")

_SECONDS_TO_READ: Final = 60.0


@dataclass(slots=True)
class _Meminfo:
    text: str = ""

    def read_text(self) -> str:
        if not self.text:
            raise OSError("the bundle has no /proc/meminfo")
        return self.text


class Replay:
    """See collectors.contract.Plugin. What is due is what was due then. Each round is a counter epoch of its own, so that nothing falls."""

    api = API

    def __init__(self, settings: Nvidia, env: Env) -> None:
        assert settings.replay is not None
        try:
            self.head, self._ticks = read(settings.replay)
        except BadBundle as error:
            raise ValueError(f"replay: {error}") from None
        self._settings, self._env = settings, env
        self._rounds = 0
        self._begin()

    def _begin(self) -> None:
        self._next = 0
        self._at = self._ticks[0].at
        self._meminfo = _Meminfo()
        self.player = Player(self.head.get("missing_symbols", ()), lambda symbol: self._source.error(FUNCTION_NOT_FOUND))
        self._source = Source(self.player.wrap, library=False)
        known = {key: value for key, value in self.head.get("settings", {}).items() if key in Nvidia.model_fields}
        model = Nvidia.model_validate({**known, **QUIET, "simulated": self._settings.simulated})
        self._plugin = Plugin(model, self._env, self._source, meminfo=self._meminfo, monotonic=lambda: self._at)
        self._load()

    def probe(self) -> Ready | Unavailable:
        return self._plugin.probe()

    def read(self, due: frozenset[Cadence], deadline: float) -> Reading:
        if self._next >= len(self._ticks):
            self._told()
            self._plugin.close()
            self._rounds += 1
            self._begin()
            self._plugin.probe()
        tick = self._ticks[self._next]
        if self._next:
            self._load()
        self._next += 1
        reading = self._plugin.read(frozenset(tick.due), time.monotonic() + _SECONDS_TO_READ)  # type: ignore[arg-type]  # cadences, as they were written
        parts = tuple(
            replace(
                part,
                taken_at_ns=tick.taken_at_ns if self._settings.replay_times == "original" else part.taken_at_ns,
                driver_epoch=tick.driver_epoch + self._rounds,
            )
            for part in reading.samples
        )
        return replace(reading, samples=parts)

    def close(self) -> None:
        self._plugin.close()

    def _load(self) -> None:
        tick = self._ticks[self._next]
        self._at, self._meminfo.text = tick.at, tick.meminfo
        self.player.tick(tick.said)

    def _told(self) -> None:
        if self.player.unknown and not self._rounds:
            asked = ", ".join(sorted(self.player.unknown))
            log.warning("the bundle was made by a release that did not ask for %s: those fields are absent", asked)
