"""The embedded bus as a process of its own: prints its address on stdout, then serves until it is told to stop."""

from __future__ import annotations

import sys

from xpulse.bus.embedded import serve
from xpulse.process import die_with_parent, stop_on_signals


def main() -> int:
    die_with_parent()
    stop = stop_on_signals()

    def ready(bootstrap: str) -> None:
        sys.stdout.write(bootstrap + "\n")
        sys.stdout.flush()

    serve(ready, stop)
    return 0


if __name__ == "__main__":
    sys.exit(main())
