"""One look at the NVIDIA driver, in a process of its own: a driver that hangs or crashes costs the doctor that process and no more."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from collectors.nvidia import gpm
from collectors.nvidia.remedy import Missing, bindings_warning
from collectors.nvidia.reply import Failed
from collectors.nvidia.source import Handle, Source

PATIENCE_SECONDS: Final = 20.0
"""A first call may bring all cards up, which takes seconds each where the persistence mode is off."""

HANGS: Final = -1
"""DriverLook.code where the driver did not answer."""


@dataclass(frozen=True, slots=True)
class CardLook:
    """One card. `code` is NVML's return code where it could not be opened; None stands for what could not be read."""

    index: int
    code: int = 0
    name: str = ""
    bdf: str = ""
    has_gpm: bool = False
    persistence: bool | None = None
    mig: bool | None = None
    mig_pending: bool | None = None
    instances: int = 0
    instance_code: int = 0
    """NVML's code where an instance could not be opened, other than that there is none."""


@dataclass(frozen=True, slots=True)
class DriverLook:
    """The driver. `trouble` is why there is no session, with its remedy, and `code` NVML's return code (0: it was not asked)."""

    trouble: str = ""
    code: int = 0
    bindings: str = ""
    driver: str = ""
    library: str = ""
    cuda: str = ""
    missing: tuple[str, ...] = ()
    """Symbols that the library lacks, of those that were asked for."""
    cards: tuple[CardLook, ...] = ()


def look(source: Source, symbols: Iterable[str]) -> DriverLook:
    """Everything in one short session, which is closed again."""
    try:
        source.open()
        handles = source.handles()
        cuda = source.cuda_version()
        return DriverLook(
            bindings=bindings_warning(),
            driver=_text(source.driver_version()),
            library=_text(source.library_version()),
            cuda=f"{cuda // 1000}.{cuda % 1000 // 10}" if isinstance(cuda, int) else "",
            missing=tuple(symbol for symbol in symbols if source.function(symbol) is None),
            cards=tuple(_card(source, index, handle) for index, handle in enumerate(handles)),
        )
    except Missing as error:
        return DriverLook(str(error), error.code, bindings_warning())
    finally:
        source.close()


def _card(source: Source, index: int, handle: Handle | Failed) -> CardLook:
    if isinstance(handle, Failed):
        return CardLook(index, handle.code)
    n = source.nvml
    name = source.text(n.nvmlDeviceGetName, handle)
    if isinstance(name, Failed):
        return CardLook(index, name.code)
    pci = source.ask(n.nvmlDeviceGetPciInfo_v3, handle)
    persistence = source.ask(n.nvmlDeviceGetPersistenceMode, handle)
    modes = source.ask(n.nvmlDeviceGetMigMode, handle)
    mig, pending = (None, None) if isinstance(modes, Failed) else (bool(modes[0]), bool(modes[1]))
    instances, code = _instances(source, handle) if mig else (0, 0)
    return CardLook(
        index,
        0,
        str(name),
        "" if isinstance(pci, Failed) else _text(source.text(lambda: pci.busId)),
        gpm.supported(source, handle),
        None if isinstance(persistence, Failed) else bool(persistence),
        mig,
        pending,
        instances,
        code,
    )


def _instances(source: Source, handle: Handle) -> tuple[int, int]:
    """How many MIG instances can be opened, and the code of the first that cannot."""
    n = source.nvml
    most = source.ask(n.nvmlDeviceGetMaxMigDeviceCount, handle)
    found = [source.ask(n.nvmlDeviceGetMigDeviceHandleByIndex, handle, i) for i in range(most if isinstance(most, int) else 0)]
    codes = [each.code for each in found if isinstance(each, Failed) and each.code != n.NVML_ERROR_NOT_FOUND]
    return len([each for each in found if not isinstance(each, Failed)]), codes[0] if codes else 0


def _text(reply: object) -> str:
    return "" if isinstance(reply, Failed) else str(reply)


def look_aside(symbols: Sequence[str], patience_seconds: float = PATIENCE_SECONDS) -> DriverLook:
    """The same in a child. It is left behind where it cannot be ended: a call that hangs in the kernel takes no signal."""
    child = subprocess.Popen(
        [sys.executable, "-m", "xpulse.node_doctor.look", *symbols],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        answer, _ = child.communicate(timeout=patience_seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.communicate(timeout=1.0)
        said = f"the driver did not answer for {patience_seconds:g} s; see dmesg for Xid and hung tasks; a reboot is the likely end of it"
        return DriverLook(said, HANGS)
    try:
        return of_json(answer)
    except (ValueError, TypeError, KeyError):
        return DriverLook(f"the driver's library ended the process that asked it (exit {child.returncode}); see dmesg", HANGS)


def of_json(answer: bytes) -> DriverLook:
    """Raises ValueError, TypeError or KeyError where it is not what `main` writes."""
    data = json.loads(answer)
    cards = tuple(CardLook(**card) for card in data.pop("cards"))
    return DriverLook(**{**data, "missing": tuple(data["missing"]), "cards": cards})


def main(symbols: Sequence[str]) -> None:
    sys.stdout.write(json.dumps(asdict(look(Source(), symbols))))


if __name__ == "__main__":
    main(sys.argv[1:])
