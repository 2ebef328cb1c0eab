"""The roles of a running XPulse: their commands and the documented port of each one's health endpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from xpulse.errors import UsageError


@dataclass(frozen=True, slots=True)
class Role:
    """`command` is what follows `xpulse` on the command line; `port` the documented health port on loopback."""

    name: str
    command: tuple[str, ...]
    port: int
    meaning: str


ROLES: Final = (
    Role("agent", ("agent",), 9610, "reads the devices of this node and publishes what they say"),
    Role("attribute", ("stream", "attribute"), 9611, "joins samples with allocations: who uses which device"),
    Role("detect", ("stream", "detect"), 9612, "turns samples, events and forecasts into findings"),
    Role("alert", ("stream", "alert"), 9613, "gives findings a life: pending, firing, resolved"),
    Role("sqlite", ("sink", "sqlite"), 9614, "writes the embedded store"),
    Role("influxdb", ("sink", "influxdb"), 9615, "writes InfluxDB"),
    Role("notify", ("sink", "notify"), 9616, "tells people"),
    Role("mirror", ("sink", "mirror"), 9617, "repeats alerts as JSON for plain consumers"),
    Role("forecast", ("forecast",), 9618, "says where series go and when a limit is crossed"),
)
BY_NAME: Final = {role.name: role for role in ROLES}


def role(name: str) -> Role:
    """The role of that name. Raises UsageError with the names there are."""
    try:
        return BY_NAME[name]
    except KeyError:
        raise UsageError(f"no role {name!r}; roles: {', '.join(BY_NAME)}") from None
