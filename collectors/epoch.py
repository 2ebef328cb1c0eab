"""Numbers the agent's runs so that a later one is greater, also where the node's clock was set back or was wrong at boot.

Consumers skip batches of an epoch below the newest one: a node that starts with a clock of last year would not be heard.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

log = logging.getLogger("xpulse.agent")

_MOST: Final = 2**62
"""What a file may say: more is none of ours, and leaves no room for the next."""


def next_epoch(now_ns: int, file: Path | None) -> int:
    """`now_ns` (UTC), or one more than the last where that is not less. `file` None remembers nothing."""
    if file is None:
        return now_ns
    epoch = max(now_ns, _last(file) + 1)
    new = file.with_suffix(".new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new.write_text(str(epoch))
        new.replace(file)
    except OSError as error:
        log.warning("%s cannot be written (%s): should the clock be set back, a later run of the agent is not heard", file, error.strerror)
    return epoch


def _last(file: Path) -> int:
    try:
        text = file.read_text(errors="replace").strip()
    except OSError:
        return 0
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 and int(text) < _MOST else 0
