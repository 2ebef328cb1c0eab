"""Builds every server that is not yet in the cache: `python -m tests.integration.servers.prepare [NAME …]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.integration.servers import compose, influxdb_build, kafka, kcat, kubernetes_types, otelcol_build, prometheus
from tests.integration.servers.progress import Progress
from tests.integration.servers.toolchain import Missing

SERVERS: dict[str, Callable[[Progress], Path]] = {
    "kafka": kafka.prepare,
    "compose": compose.prepare,
    "kcat": kcat.prepare,
    "prometheus": prometheus.prepare,
    "kubernetes-types": kubernetes_types.prepare,
    "otelcol": otelcol_build.prepare,
    "influxdb": influxdb_build.prepare,
}
"""In the order of building: the slow one last, so that a mistake in the quick ones shows early."""


def main(arguments: Sequence[str]) -> int:
    """Build the named servers, or all; 1 when this machine cannot have one of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.integration.servers.prepare", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(SERVERS)}; without a name: all")
    names = parser.parse_args(arguments).names
    if unknown := [name for name in names if name not in SERVERS]:
        parser.error(f"unknown: {', '.join(unknown)}; choose from {', '.join(SERVERS)}")
    missing = [name for name in SERVERS if name in (names or SERVERS) and not _prepared(name)]
    return 1 if missing else 0


def _prepared(name: str) -> bool:
    progress = Progress(name)
    try:
        progress.line(f"ready: {SERVERS[name](progress)}")
    except Missing as missing:
        progress.line(f"missing: {missing.reason}; {missing.remedy}")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
