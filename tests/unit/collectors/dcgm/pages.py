"""Pages as tests need them: the two in tests/data/dcgm, and single lines put together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from collectors.contract import Env
from collectors.dcgm import parse
from collectors.dcgm.node import Node, Understood
from collectors.dcgm.page import sort
from schemas import exposition
from schemas.catalogue import BY_NUMBER
from schemas.identity import NodeRef
from schemas.telemetry import v1
from schemas.values import REASON_OF_NUMBER

DATA = Path(__file__).parents[3] / "data" / "dcgm"
H100 = (DATA / "h100x2.prom").read_text(encoding="utf-8")
MIG = (DATA / "a100-mig.prom").read_text(encoding="utf-8")
ENV = Env(NodeRef("c", "gpu-node-1"), "boot", "0.1", 10**9)
GPU = "GPU-0d5a3c1e-7a11-4b0e-9c55-000000000001"
UID = f"nvidia:{GPU}"


def lines(values: Mapping[str, object], *, uuid: str = GPU, more: str = "") -> str:
    """One GPU's page."""
    return "".join(
        f'{name}{{gpu="0",UUID="{uuid}",modelName="NVIDIA L40S",Hostname="gpu-node-1"{more}}} {value}\n' for name, value in values.items()
    )


def understood(page: str, node: Node | None = None, *, at_ns: int = 1, slow: bool = True) -> Understood:
    devices = sort(exposition.parse(page)).devices
    return (node or Node(ENV.node, "boot")).understand(parse.instances(devices), at_ns, slow=slow)


def samples(page: str) -> dict[str, v1.DeviceSample]:
    return {sample.uid: sample for sample in understood(page).reading.samples}


def sample(values: Mapping[str, object]) -> v1.DeviceSample:
    (only,) = understood(lines(values)).reading.samples
    return only


def absences(of: v1.DeviceSample) -> dict[str, str]:
    return {BY_NUMBER[number].name: REASON_OF_NUMBER[absence.reason] for absence in of.absences for number in absence.field_number}
