"""Roles of XPulse as real processes on one bus: started, waited for, shown with their logs when a test fails, and gone afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from confluent_kafka import Producer

from schemas.codec import HEADERS, decode
from schemas.flow import Headers, Record, Rejected
from schemas.topics import MAX_MESSAGE_BYTES, TOPICS
from sinks.open import open_store
from sinks.settings import Sinks
from xpulse.bus.admin import create_topics
from xpulse.bus.embedded import EmbeddedBroker
from xpulse.bus.reader import BusReader
from xpulse.bus.settings import Bus
from xpulse.local.runfiles import read_ports
from xpulse.local.status import RoleStatus, read
from xpulse.process import PARENT

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from schemas.store import Store
    from tests.integration.servers.kafka import KafkaServer

PARTITIONS: Final = 4
PATIENCE_SECONDS: Final = 90.0
"""How long a wait may last: the machine is slow and shared. What is waited for usually comes in a few seconds."""

_POLL_SECONDS: Final = 0.1
STOP_SECONDS: Final = 10.0
_T = TypeVar("_T")


def clean_environment(state: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without any setting of ours, then the state folder and `extra`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XPULSE_")}
    return kept | {"XPULSE_STATE_DIR": str(state)} | dict(extra)


def bus_environment(bus: Bus) -> dict[str, str]:
    """The XPULSE_BUS__* variables that give a process this bus."""
    values = bus.model_dump(mode="json", exclude_unset=True)
    return {f"XPULSE_BUS__{name.upper()}": value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}


@contextmanager
def embedded_bus() -> Iterator[Bus]:
    """An embedded broker in this process, with prefixed topics."""
    prefix = f"t{uuid.uuid4().hex[:8]}."
    with EmbeddedBroker(tuple((prefix + row.name, row.partitions or PARTITIONS) for row in TOPICS)) as broker:
        yield Bus(brokers=broker.bootstrap, embedded=True, topic_prefix=prefix, group_prefix=prefix)


def kafka_bus(server: KafkaServer) -> Bus:
    """Our topics under a prefix of their own on a shared Kafka. Six seconds is the shortest session that Kafka allows."""
    prefix = f"t{uuid.uuid4().hex[:8]}."
    bus = Bus(
        brokers=server.bootstrap,
        topic_prefix=prefix,
        group_prefix=prefix,
        partitions=PARTITIONS,
        replication_factor=1,
        min_insync_replicas=1,
        session_timeout_seconds=6,
    )
    create_topics(bus)
    return bus


def wait_for(found: Callable[[], _T | None], what: str, *, say: Callable[[], str] = str, seconds: float = PATIENCE_SECONDS) -> _T:
    """The first answer that is neither None nor false. Fails with `what` and what `say` tells when the time is over."""
    deadline = time.monotonic() + seconds
    while True:
        if answer := found():
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds:g} s\n{say()}")
        time.sleep(_POLL_SECONDS)


class Role:
    """One running process of ours and its log."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path, state: Path) -> None:
        self.name = name
        self.process = process
        self.log = log
        self._state = state
        self._asked = False

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    @property
    def came_up(self) -> bool:
        """Whether it got as far as its health endpoint."""
        return read_ports(self._state, [self.name])[self.name] is not None

    def text(self) -> str:
        """All it wrote."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def status(self) -> RoleStatus | None:
        """What its health endpoint says now; None while it does not answer."""
        port = read_ports(self._state, [self.name])[self.name]
        return read(port) if port else None

    def metrics(self) -> str:
        """Its metrics page."""
        port = read_ports(self._state, [self.name])[self.name]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
            return str(page.read().decode())

    def ask_to_end(self) -> None:
        """SIGTERM, once: a second one ends a role at once."""
        if self.alive and not self._asked:
            self._asked = True
            self.process.send_signal(signal.SIGTERM)

    def stop(self) -> int:
        """Ask it to end; its exit code. Its group is killed where it does not within ten seconds."""
        self.ask_to_end()
        try:
            code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self.process.wait(STOP_SECONDS)
        return code

    def kill(self) -> None:
        """End it and what it started, now."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


class Stack:
    """Roles on one bus that share a state folder. As a context manager it ends them all, and shows their logs where the test failed."""

    def __init__(self, bus: Bus, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.bus = bus
        self.state = folder / "state"
        self.roles: list[Role] = []
        self._folder = folder
        self._work = folder / "work"
        self._work.mkdir(parents=True)
        common = {"XPULSE_CLUSTER": "c1", "XPULSE_NODE": "n1", "XPULSE_HEALTH__PORT": "0", PARENT: str(os.getpid())}
        self._environment = common | bus_environment(bus) | dict(environment or {})
        self._producer = Producer(
            {
                "bootstrap.servers": bus.brokers,
                "partitioner": "murmur2_random",
                "enable.idempotence": True,
                "compression.type": "lz4",
                "message.max.bytes": MAX_MESSAGE_BYTES,
                "log_level": 0,  # a broker that has ended is no news to a test that ends
            }
        )

    def __enter__(self) -> Stack:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            sys.stderr.write(self.logs())
        for role in self.roles:
            role.ask_to_end()
        # one that was not up yet has no handler of its own
        codes = {role.name: 0 if (code := role.stop()) == -signal.SIGTERM and not role.came_up else code for role in self.roles}
        for role in self.roles:
            role.kill()
        if kind is None:
            assert set(codes.values()) <= {0}, f"a role did not end well: {codes}\n{self.logs()}"

    def start(self, *command: str, environment: Mapping[str, str] | None = None, name: str = "", state: Path | None = None) -> Role:
        """Start `xpulse COMMAND...`. `name` is the role's (the last word of the command); `state` a state folder of its own."""
        name = name or command[-1]
        state = state or self.state
        log = self._folder / f"{name}-{len(self.roles)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "xpulse.cli.main", *command],
                cwd=self._work,
                env=clean_environment(state, self._environment | dict(environment or {})),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        role = Role(name, process, log, state)
        self.roles.append(role)
        return role

    def run(self, *command: str, environment: Mapping[str, str] | None = None, state: Path | None = None, code: int = 0) -> str:
        """What `xpulse COMMAND...` writes on standard output, then on standard error; it must end with `code`."""
        done = subprocess.run(
            [sys.executable, "-m", "xpulse.cli.main", *command],
            cwd=self._work,
            env=clean_environment(state or self.state, self._environment | dict(environment or {})),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == code, f"xpulse {' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def until(self, found: Callable[[], _T | None], what: str, *, seconds: float = PATIENCE_SECONDS) -> _T:
        """Wait for an answer, and fail at once where a role has died."""

        def look() -> _T | None:
            answer = found()
            if not answer:
                for role in self.roles:
                    assert role.alive, f"{role.name} died with {role.process.poll()} while waiting for: {what}\n{self.logs()}"
            return answer

        return wait_for(look, what, say=self.logs, seconds=seconds)

    def ready(self) -> None:
        """Wait until every role says that it is ready."""
        for role in self.roles:
            self.until(lambda role=role: (status := role.status()) and status.ready, f"{role.name} is ready")  # type: ignore[misc]  # a default binds the loop's role

    def send(self, topic: str, key: bytes, value: bytes | None, headers: Headers = HEADERS) -> None:
        """Produce one message as a producer of ours would, of any size; returns when the broker has it."""
        refused: list[object] = []

        def delivered(error: object, _: object) -> None:
            if error is not None:
                refused.append(error)

        self._producer.produce(self.bus.wire(topic), value, key, headers=list(headers), on_delivery=delivered)
        assert self._producer.flush(30) == 0, f"{topic}: the broker did not take a message within 30 s"
        assert not refused, f"{topic}: {refused[0]}"

    def records(self, topic: str) -> list[Record]:
        """Everything on a topic now, by partition and offset."""
        with BusReader(self.bus) as reader:
            return [record for partition in range(reader.partitions(topic)) for record in reader.read(topic, partition)]

    def messages(self, topic: str) -> list[Message]:
        """The messages on a topic; what is none is left out."""
        found = []
        for record in self.records(topic):
            try:
                message = decode(record)
            except Rejected:
                continue
            if message is not None:
                found.append(message)
        return found

    def store(self, sinks: Sinks | None = None) -> Store:
        """The read side of the configured store."""
        return open_store(sinks or Sinks(), self.state)

    def logs(self) -> str:
        """The end of each role's log, for a failing test."""
        parts = []
        for role in self.roles:
            state = "running" if role.alive else f"ended with {role.process.poll()}"
            lines = role.text().splitlines()[-25:]
            parts.append(f"--- {role.name} ({state})\n" + "\n".join(lines))
        return "\n".join(parts) + "\n"
