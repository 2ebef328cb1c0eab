"""Settings of the agent's spool."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from schemas.section import Section

_MIB = 1024 * 1024


class Spool(Section):
    """What happens to messages that no broker takes. With the bus inside `xpulse up` there is no spool: nothing outlives that bus."""

    enabled: bool = True
    """Write to disk what the bus does not take. Off: what memory has no room for is dropped and counted."""
    directory: Path | None = None
    """Folder of the spool, for one agent only; empty: `spool` in the state folder. Made with mode 0700."""
    max_bytes: int = Field(512 * _MIB, ge=_MIB, le=1024**4)
    """What the spool may take on disk. When it is full the oldest messages go, counted under the reason `spool_full`.
    An agent with eight GPUs writes 2 to 4 MB in ten minutes."""
    segment_bytes: int = Field(4 * _MIB, ge=64 * 1024, le=256 * _MIB)
    """Size of one file; what is deleted is deleted a file at a time. At most a quarter of `max_bytes`."""
    memory_bytes: int = Field(8 * _MIB, ge=64 * 1024, le=1024**3)
    """What the agent holds at most in memory of messages that no broker has acknowledged; it takes the place of `bus.queue_bytes`."""
    patience_seconds: float = Field(5.0, ge=0.5, le=300)
    """How long the bus may acknowledge nothing before what waits goes to disk; a `kill -9` of the agent costs no more than that."""
    fsync_seconds: float = Field(5.0, ge=0, le=3600)
    """How often what was written is forced to the disk; 0: after every write. This is what a power cut may cost: the end of a process,
    whatever its kind, costs nothing that was written."""
    replay_bytes_per_second: int = Field(4 * _MIB, ge=64 * 1024, le=1024**3)
    """How fast the backlog is sent after an outage, beside what is being read meanwhile: a thousand agents come back at once."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.segment_bytes * 4 > self.max_bytes:
            raise ValueError(
                f"segment_bytes ({self.segment_bytes}) is more than a quarter of max_bytes ({self.max_bytes}); "
                "a full spool would lose most of what it holds at once: lower segment_bytes or raise max_bytes"
            )
        if self.memory_bytes * 2 > self.max_bytes:
            raise ValueError(
                f"memory_bytes ({self.memory_bytes}) is more than half of max_bytes ({self.max_bytes}); "
                "what is in memory goes to the spool in an outage: lower memory_bytes or raise max_bytes"
            )
        return self
