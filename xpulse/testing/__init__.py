"""What tests of any part may use: an in-memory bus that behaves as Kafka does where it matters (tests/conformance/bus)."""

from xpulse.testing.memory import Crashed, MemoryBus

__all__ = ["Crashed", "MemoryBus"]
