"""A client that librdkafka has given up is ended or made anew: it says nothing by itself for ever after."""

from __future__ import annotations

import threading
import time

import pytest
from confluent_kafka import KafkaError

from schemas.status import RunnerStatus
from sinks.mirror import MirrorProcessor
from xpulse.bus.intake import Intake
from xpulse.bus.sending import Sender
from xpulse.bus.settings import Bus
from xpulse.errors import ProblemFound

NOWHERE = Bus(brokers="127.0.0.1:1")
FENCED = KafkaError(KafkaError._FATAL, "Fatal error: Broker: Static consumer fenced by other consumer with same group.instance.id")


def test_a_fenced_consumer_ends_its_role_with_the_remedy() -> None:
    """As after a broker's kill -9: the code is the fatal one, and `fatal()` of the event is false."""
    assert not FENCED.fatal()
    intake = Intake(
        MirrorProcessor(),
        NOWHERE,
        status=RunnerStatus("mirror"),
        stop=threading.Event(),
        clock=time.time_ns,
        beat=lambda: None,
        on_change=lambda: None,
    )
    try:
        intake._on_error(FENCED)
        with pytest.raises(ProblemFound, match="instance_ordinal"):
            intake.take(0.0)
    finally:
        intake.close()


def test_a_producer_given_up_is_made_anew() -> None:
    sender = Sender(NOWHERE)
    sender._on_error(FENCED)
    assert sender.fatal
