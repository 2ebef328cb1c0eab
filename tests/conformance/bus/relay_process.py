"""A process that relays xpulse.samples to xpulse.usage until it is killed: `python -m … BROKERS TOPIC_PREFIX embedded|kafka`."""

from __future__ import annotations

import sys
import threading

from schemas.status import RunnerStatus
from tests.conformance.bus.processors import Relay
from xpulse.bus.loop import run
from xpulse.bus.settings import Bus


def main(brokers: str, prefix: str, kind: str) -> None:
    bus = Bus(brokers=brokers, topic_prefix=prefix, group_prefix=prefix, embedded=kind == "embedded", partitions=4)
    run(Relay(), bus, status=RunnerStatus("attribute"), stop=threading.Event())


if __name__ == "__main__":
    main(*sys.argv[1:])
