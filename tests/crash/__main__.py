"""Kills every process of a running line in turn and prints what that cost."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from streams.rules.load import load_rules
from tests.crash.evidence import FOLLOWED, Evidence
from tests.crash.receiver import Receiver
from tests.crash.stack import ROLES, Stack
from tests.integration.servers.influxdb import InfluxServer
from tests.integration.servers.kafka import KafkaServer
from xpulse.bus.follow import Follower
from xpulse.bus.settings import Bus

LEAK_EVERY_SECONDS = 110
LEAK_SECONDS = 60
MOST_HOLD_ERROR_SECONDS = 20.0
"""A process that is down cannot fire in time; one that is back must not begin to count again (that would add the whole hold time)."""


def main() -> int:
    options = _options()
    console = Console()
    receiver = Receiver()
    folder = Path(tempfile.mkdtemp(prefix="xpulse-crash-"))
    console.print(f"logs in {folder}")
    with KafkaServer() as kafka, InfluxServer() as influx:
        stack = Stack(folder, kafka, influx, webhook=receiver.url, runner=options.runner)
        stack.prepare()
        evidence, stop = Evidence(), threading.Event()
        follower = Follower(Bus(brokers=kafka.bootstrap), FOLLOWED)

        def follow() -> None:
            while not stop.is_set():
                evidence.add(follower.poll(0.2))

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        try:
            rows, summary, leaks = _story(stack, kafka, influx, options, console)
            time.sleep(2)
        finally:
            stack.close()
            stop.set()
            thread.join(5)
            follower.close()
            receiver.close()
    return _verdict(console, rows, summary, evidence, receiver, leaks)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3, help="kills of each process")
    parser.add_argument("--runner", choices=["faust", "direct"], default="faust")
    parser.add_argument("--only", action="append", choices=[*ROLES, "kafka", "influxdb server"], help="kill only these")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def _story(
    stack: Stack, kafka: KafkaServer, influx: InfluxServer, options: argparse.Namespace, console: Console
) -> tuple[list[tuple[str, int, float]], dict[str, Any], int]:
    """Start, kill, end. Returns (what, times, longest seconds until it worked again), the summary, and how many leaks had ended."""
    chance = random.Random(options.seed)
    began = time.monotonic()
    faults = [f"memory_leak@{30 + i * LEAK_EVERY_SECONDS}s+{LEAK_SECONDS}s" for i in range(20)]
    stack.start(faults)
    console.print(f"first start: all ready after {stack.await_ready([r for r in ROLES if r != 'forecast']):.1f} s")
    stack.await_ready(["forecast"])
    rows: list[tuple[str, int, float]] = []
    wanted = options.only or [*ROLES, "kafka", "influxdb server"]
    for role in [r for r in ROLES if r in wanted]:
        longest = 0.0
        for _ in range(options.times):
            time.sleep(chance.uniform(2.0, 5.0))
            pid = stack.kill(role)
            longest = max(longest, stack.await_ready([role], not_pid=pid))
        rows.append((role, options.times, longest))
        console.print(f"{time.monotonic() - began:6.0f} s  {role}: killed {options.times} times, works again after at most {longest:.1f} s")
    servers: list[tuple[str, KafkaServer | InfluxServer]] = [("kafka", kafka), ("influxdb server", influx)]
    for name, server in servers:
        if name in wanted:
            time.sleep(chance.uniform(2.0, 5.0))
            server.kill()
            time.sleep(3)
            server.start()
            seconds = stack.await_ready(list(ROLES))
            rows.append((name, 1, seconds))
            console.print(f"{time.monotonic() - began:6.0f} s  {name}: killed once, the line works again {seconds:.1f} s after its start")
            time.sleep(10)
    # End between two leaks, with the last one's alert resolved.
    elapsed = time.monotonic() - began
    leaks = max(1, int((elapsed - 30) // LEAK_EVERY_SECONDS) + 1)
    end_at = 30 + (leaks - 1) * LEAK_EVERY_SECONDS + LEAK_SECONDS + 35
    while time.monotonic() - began < end_at:
        stack.check_alive()
        time.sleep(0.5)
    return rows, stack.finish(), leaks


def _verdict(
    console: Console, rows: list[tuple[str, int, float]], summary: dict[str, Any], evidence: Evidence, receiver: Receiver, leaks: int
) -> int:
    samples = summary["samples"]
    looked_at, excused, wrong, why = evidence.owners()
    silent, falsely = evidence.silences()
    holds = evidence.holds({rule.name: rule.hold_ns / 1e9 for rule in load_rules(None)})
    early = [h for h in holds if h[1] < -0.001]
    late = [h for h in holds if h[1] > MOST_HOLD_ERROR_SECONDS]
    delivered = {(b.get("episode"), str(b.get("status")).lower()) for b in receiver.bodies.values()}
    checks = [
        ("batches published", samples["published"], None),
        ("missing (not stored + gaps inside an epoch)", samples["missing"], 0),
        ("batches without attribution", samples["published"] - samples["joined"], 0),
        ("epochs with an unacknowledged tail (agent killed)", len(samples["unacknowledged_tails"]), None),
        ("usage rows / with a wrong or unknown owner", f"{looked_at} / {wrong}", f"{looked_at} / 0"),
        ("  of them unknown since the agent was down for 15 s", excused, None),
        ("leaks that ended / memory_nearly_full fired", f"{leaks} / {evidence.fired('memory_nearly_full')}", f"{leaks} / {leaks}"),
        ("memory_exhaustion_predicted fired", evidence.fired("memory_exhaustion_predicted"), None),
        ("node_silent fired / of a node that was not silent", f"{silent} / {falsely}", f"{silent} / 0"),
        ("alert records doubled", evidence.doubled(), 0),
        ("episodes fired and never resolved", len(evidence.unresolved()), 0),
        ("JSON mirror: distinct transitions not mirrored", max(0, len(evidence.transitions()) - evidence.json_records), 0),
        ("webhook: transitions never delivered", len(evidence.owed() - delivered), 0),
        ("webhook: repeats caught by the Idempotency-Key", receiver.repeats, None),
        ("webhook: requests without a key", receiver.without_key, 0),
        ("fired before the hold time / later than it allows", f"{len(early)} / {len(late)}", "0 / 0"),
        ("shadow alerts fired (stored, never notified)", len(evidence.alerts) - len(evidence.notified()), None),
        ("dead letters", evidence.dead_letters, 0),
    ]
    kills = Table("process", "kill -9", "works again after (longest)", title="kills")
    for what, times, seconds in rows:
        kills.add_row(what, str(times), f"{seconds:.1f} s")
    console.print(kills)
    table = Table("count", "found", "expected", "", title="what it cost")
    failed = False
    for name, found, expected in checks:
        good = expected is None or found == expected
        failed |= not good
        table.add_row(name, str(found), "" if expected is None else str(expected), "[green]ok" if good else "[red]WRONG")
    console.print(table)
    for text, detail in (
        ("wrong owners", dict(why.most_common(5))),
        ("unresolved", evidence.unresolved()),
        ("late", late),
        ("early", early),
    ):
        if detail:
            console.print(f"{text}: {detail}")
    if failed:
        console.print_json(json.dumps({k: summary[k] for k in ("samples", "alerts", "restarts", "exits", "dlq")}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
