"""Settings of what the agent tells the world: Kafka with its spool, and whoever else is to hear it."""

from __future__ import annotations

from schemas.section import Section
from xpulse.northbound.exposition.settings import Exposition
from xpulse.northbound.otlp.settings import Otlp
from xpulse.northbound.spool.settings import Spool


class Northbound(Section):
    """The ways out of the agent. All of them carry the same catalogue."""

    kafka: bool = True
    """Push to the bus. Off: the agent needs no bus at all, and is a pull exporter (with OTLP, where that is on)."""

    spool: Spool = Spool()
    """What waits on disk while the bus does not answer."""

    otlp: Otlp = Otlp()
    """Push to an OpenTelemetry collector."""

    exposition: Exposition = Exposition()
    """The agent's own endpoint, which Prometheus reads."""
