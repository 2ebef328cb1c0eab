"""Writes the file that the fake libnvidia-ml serves; each change is one rename, so that no call sees half of it."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypedDict

from xpulse.testing.nvml import faults, mig
from xpulse.testing.nvml.profile import profile as named_profile

_EVENTS_KEPT: Final = 4096
XID: Final = 8
"""nvmlEventTypeXidCriticalError."""


class Process(TypedDict, total=False):
    """One entry of a device's process list. `memory_bytes` None is NVML's "not available"; without sm_percent it has no samples."""

    pid: int
    name: str
    type: str
    memory_bytes: int | None
    gi: int
    ci: int
    sm_percent: int
    memory_percent: int
    encoder_percent: int
    decoder_percent: int
    jpeg_percent: int
    ofa_percent: int


def code(number: int) -> str:
    """What stands in the place of a value that cannot be read: NVML's return code."""
    return f"!{number}"


class Device:
    """One card of a State, or (`State.every`) what holds for all that say nothing else."""

    def __init__(self, state: State, data: dict[str, Any]) -> None:
        self._state, self.data = state, data

    def set(self, **values: object) -> None:
        """What its calls answer, by the names of the guide. None: not supported, whatever the defaults say. ValueError: no such name."""
        faults.check_names(values)
        with self._state.changing():
            self.data.update(values)

    def put(self, group: str, **values: object) -> None:
        """Several values of a group: put("ecc_errors", **{"corrected.volatile.dram": 3})."""
        with self._state.changing():
            self.data.setdefault(group, {}).update(values)

    def field(self, number: int, value: object, *, scope: int | None = None) -> None:
        """What nvmlDeviceGetFieldValues answers for a field; of one link where a scope is given."""
        self.put("fields", **{str(number) if scope is None else f"{number}:{scope}": value})

    def gpm(self, number: int, value: object) -> None:
        """What nvmlGpmMetricsGet answers for a metric of the card, in percent or MiB/s."""
        self.put("gpm", **{str(number): value})

    def link(self, number: int | None, **values: object) -> None:
        """What is said of an NVLink by its number; None: of each."""
        with self._state.changing():
            self.data.setdefault("nvlink", {}).setdefault("each" if number is None else str(number), {}).update(values)

    def forget(self, *names: str) -> None:
        """Say nothing of one's own any more: the defaults hold again."""
        with self._state.changing():
            for name in names:
                self.data.pop(name, None)


class State:
    """The state of a node with fake cards. Changes hold for every process that has the library loaded, from its next call on."""

    def __init__(self, path: Path, profile: str | Mapping[str, Any] = "h100", *, count: int = 1) -> None:
        """Write the file. `profile` is the name of a board or a whole state of one's own; `count` cards of the board."""
        self.path = path
        self.data: dict[str, Any] = named_profile(profile, count) if isinstance(profile, str) else json.loads(json.dumps(profile))
        self._changing = 0
        self._generation = 0
        self._sequence = 0
        self._write()

    @property
    def every(self) -> Device:
        """What holds for all cards; a card's own word wins."""
        return Device(self, self.data.setdefault("defaults", {}))

    def device(self, index: int) -> Device:
        """The card at this place of the file, which is NVML's index as long as none is unplugged."""
        return Device(self, self.data["devices"][index])

    def value(self, index: int, name: str, group: str | None = None) -> Any:
        """What a card says now: its own word, else that of the defaults; None where nobody says anything."""
        for data in (self.data["devices"][index], self.data.get("defaults", {})):
            found = data.get(group, {}) if group else data
            if name in found:
                return found[name]
        return None

    def set(self, **values: object) -> None:
        """What belongs to no device: driver_version, nvml_version, cuda_version, fields_known_below, pcie_window_us."""
        faults.check_names(values)
        with self.changing():
            self.data.update(values)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Several changes as one."""
        self._changing += 1
        try:
            yield
        finally:
            self._changing -= 1
            if not self._changing:
                self._write()

    # ---- what goes wrong

    def fail(self, symbol: str, number: int, *, device: int | None = None) -> None:
        """This call answers with the return code, of one card or everywhere; 0 ends it. A name without _v2 stands for every version."""
        with self.changing():
            faults.put(self._of(device), symbol, "return", number or None)

    def latency(self, microseconds: int, symbol: str | None = None, *, device: int | None = None) -> None:
        """How long a call takes: of one symbol, else of all that have none of their own. Below 1 ms it burns CPU, as a driver does."""
        with self.changing():
            if symbol is None:
                self._of(device)["latency_us"] = microseconds
            else:
                faults.put(self._of(device), symbol, "latency_us", microseconds)

    def hang(self, symbol: str, *, device: int | None = None) -> None:
        """The call does not come back until `release`."""
        with self.changing():
            faults.put(self._of(device), symbol, "hang", True)

    def release(self, symbol: str, *, device: int | None = None) -> None:
        """What hangs goes on."""
        with self.changing():
            faults.put(self._of(device), symbol, "hang", None)

    def lose(self, device: int, number: int = 15) -> None:
        """The card fell off the bus (15), or requires a reset (16): every call for it fails."""
        self.device(device).set(error=number)

    def recover(self, device: int) -> None:
        """The card answers again."""
        self.device(device).forget("error")

    def unplug(self, device: int) -> None:
        """The card is gone from the bus: lost to a running session, not listed in a new one. Its place in the file stays."""
        self.device(device).set(unplugged=True, error=15)

    def plug(self, device: int) -> None:
        """The card is back, for sessions that start now."""
        self.device(device).forget("unplugged", "error")

    def unload_driver(self) -> None:
        """nvmlInit fails with DRIVER_NOT_LOADED, running sessions with UNINITIALIZED."""
        self.set(init_error=9, driver_load=self.data.get("driver_load", 0) + 1)

    def load_driver(self, version: str | None = None) -> None:
        """The driver is there again: counters begin anew, and sessions have to be opened again."""
        with self.changing():
            self.data.pop("init_error", None)
            self.data.update({"driver_version": version} if version else {})
            for index in range(len(self.data["devices"])):
                self.reset_counters(index)

    def break_container(self, number: int = 999) -> None:
        """Every call fails with "Unknown Error", nvmlInit too, as after a reload of the container runtime. `mend_container` ends it."""
        self.set(error=number, init_error=number)

    def mend_container(self) -> None:
        with self.changing():
            self.data.pop("error", None)
            self.data.pop("init_error", None)

    def reset_counters(self, device: int) -> None:
        """What counts since the driver was loaded begins at zero."""
        with self.changing():
            faults.reset_counters(self.data["devices"][device], self.data.get("defaults", {}))

    # ---- what happens

    def push_event(self, device: int, kind: int, data: int, *, gi: int | None = None, ci: int | None = None) -> None:
        """An event for the sets that wait for this kind of it."""
        with self.changing():
            events = self.data.setdefault("events", [])
            number = events[-1]["id"] + 1 if events else 1
            made = {"id": number, "bus_id": self.data["devices"][device]["bus_id"], "type": kind, "data": data}
            instance = {name: value for name, value in (("gi", gi), ("ci", ci)) if value is not None}
            events.append(made | instance)
            del events[:-_EVENTS_KEPT]

    def push_xid(self, device: int, number: int, *, gi: int | None = None, ci: int | None = None) -> None:
        """An Xid, as the driver tells it."""
        self.push_event(device, XID, number, gi=gi, ci=ci)

    def processes(self, device: int, processes: Sequence[Process]) -> None:
        """Who uses the card."""
        self.device(device).set(processes=[dict(process) for process in processes])

    def mig(self, device: int, layout: Sequence[str | Mapping[str, Any]] | None) -> None:
        """Cut the card: names of profiles ("3g.40gb"), or mappings with `profile` and what else of index, gi, ci, uuid and values is given.

        Instances made again have new UUIDs, as real ones do. None: MIG mode off. Raises ValueError for a profile the board has not.
        """
        with self.changing():
            self._generation += 1
            mig.cut(self.data["devices"][device], self.data.get("defaults", {}), layout, self._generation)

    def instances(self, device: int) -> list[dict[str, Any]]:
        """The instances of a card, as the file has them; change them within `changing`."""
        found: list[dict[str, Any]] = self.data["devices"][device].get("mig", {}).get("instances", [])
        return found

    def remove(self) -> None:
        """Delete the file: to every process that has the library loaded, there is no driver any more."""
        self.path.unlink(missing_ok=True)
        self._tell()
        self._counter.unlink(missing_ok=True)

    @property
    def _counter(self) -> Path:
        return self.path.with_name(f"{self.path.name}.seq")

    def _of(self, device: int | None) -> dict[str, Any]:
        found: dict[str, Any] = self.data if device is None else self.data["devices"][device]
        return found

    def _write(self) -> None:
        new = self.path.with_name(f"{self.path.name}.{os.getpid()}.new")
        new.write_text(json.dumps(self.data))
        new.rename(self.path)
        self._tell()

    def _tell(self) -> None:
        """Raise the counter that the library has mapped, so that it looks at the file at its next call."""
        fd = os.open(self._counter, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            before = os.pread(fd, 8, 0)
            self._sequence = max(self._sequence, struct.unpack("=Q", before)[0] if len(before) == 8 else 0) + 1
            os.pwrite(fd, struct.pack("=Q", self._sequence), 0)
        finally:
            os.close(fd)
