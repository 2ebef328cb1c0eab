"""Activity of cards without GPM, borrowed from a dcgm-exporter that runs anyway: the counters allow one client only, and it is that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from collectors.nvidia.fast_fields import PROFILED
from schemas.builder import SampleBuilder

_FIELDS: Final = tuple(name for name, _ in PROFILED)


class Lender(Protocol):
    """What collectors.dcgm.background gives: fields of the catalogue by UUID (GPU-...), of an instance <its card's UUID>/gi<number>."""

    def values(self, uuid: str) -> Mapping[str, float]: ...

    def close(self) -> None: ...


class Borrowed:
    """Fills activity in. What was there once and is not now is absent(stale), what never was stays absent(not_supported)."""

    def __init__(self, lender: Lender) -> None:
        self._lender = lender
        self._seen: dict[str, set[str]] = {}

    def fill(self, builder: SampleBuilder, key: str) -> None:
        values = self._lender.values(key)
        seen = self._seen.setdefault(key, set())
        for name in _FIELDS:
            if name in values:
                seen.add(name)
                builder.set(name, values[name])
            elif name in seen:
                builder.absent(name, "stale")

    def close(self) -> None:
        self._lender.close()


def borrow(url: str) -> Borrowed | None:
    """None where no exporter is named. Raises ValueError where the address is none."""
    if not url:
        return None
    from collectors.dcgm.background import Background  # most nodes never need it

    return Borrowed(Background(url))
