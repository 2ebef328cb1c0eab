"""All looks at this node, in the order in which one would mend what they find."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xpulse.doctor import Diagnosis, bus, findings, shadowing
from xpulse.node_doctor import beside, driver, machine, pod
from xpulse.node_doctor.endpoint import endpoint
from xpulse.node_doctor.look import DriverLook, look_aside
from xpulse.node_doctor.symbols import LOST
from xpulse.node_doctor.where import Where

if TYPE_CHECKING:
    from xpulse.settings import Settings


def examine(settings: Settings) -> list[Diagnosis]:
    """This machine. The driver is asked once, in a process of its own, and not at all where its plugin is off."""
    where = Where(settings, DriverLook())
    if where.runs("nvidia"):
        where = Where(settings, look_aside(tuple(LOST)))
    return of(where)


def of(where: Where) -> list[Diagnosis]:
    """What is found there; a look that breaks is itself a finding and hides no other."""
    checks = [("plugins", machine.plugins)]
    if where.runs("nvidia"):
        checks += [
            ("driver", driver.library),
            ("versions", driver.versions),
            ("device files", driver.device_files),
            ("cards", driver.cards),
            ("old driver", driver.symbols),
            ("open clients", beside.clients),
            ("process ids", machine.process_ids),
        ]
    checks += [
        ("kernel log", machine.kernel_log),
        ("dcgm", beside.dcgm),
        ("node name", pod.node_name),
        ("node labels", pod.node_labels),
        ("pod resources", pod.pod_resources),
        ("clock", machine.clock),
        ("spool", machine.spool),
        ("endpoint", endpoint),
    ]
    found = findings([(name, lambda check=check: check(where)) for name, check in checks])  # type: ignore[misc]  # a default binds the loop's value
    found += findings([("shadowing", shadowing)])
    if where.settings.northbound.kafka:
        found += findings([("bus", lambda: bus(where.settings))])
    return found
