"""Detection as pure operators, one module each: samples, services, silence, events, forecasts; labels name who and why."""

from streams.operators.detect.ewma import Ewma
from streams.operators.detect.samples import Times

__all__ = ["Ewma", "Times"]
