"""Makes the processor of a stream role from the settings: one place for both runners, the benchmarks and the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from schemas.flow import Processor
    from streams.settings import Streams

ROLES: Final = ("attribute", "detect", "alert")


def build(role: str, settings: Streams) -> Processor:
    """The processor of `role`. Raises KeyError for a name not in ROLES, ValueError where the rules file is wrong."""
    match role:
        case "attribute":
            from streams.processors.attribute import AttributeProcessor

            return AttributeProcessor.of(settings.attribute, rebuild_seconds=settings.rebuild_seconds)
        case "detect":
            from streams.processors.detect import DetectProcessor

            return DetectProcessor.of(settings.detect, rebuild_seconds=settings.rebuild_seconds)
        case "alert":
            from streams.processors.alert import AlertProcessor

            return AlertProcessor.of(settings.alerting)
    raise KeyError(f"no stream role {role!r}; roles: {', '.join(ROLES)}")
