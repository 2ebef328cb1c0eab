"""Detection as pure operators, one module each: samples, services, silence, events, forecasts; labels name who and why."""

from streams.operators.detect.samples import Times
from streams.operators.detect.scoring import Detectors

__all__ = ["Detectors", "Times"]
