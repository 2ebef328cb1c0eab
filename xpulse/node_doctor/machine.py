"""The machine around the driver: kernel log, process ids, clock, the spool's disk, and the settings of the plugins."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Final

from collectors.kernel.kmsg import Kmsg
from collectors.kernel.settings import Kernel
from collectors.kernel.source import Missing
from collectors.nvidia.settings import Nvidia
from collectors.procfs.process import Proc
from schemas.section import Section
from xpulse.doctor import Diagnosis
from xpulse.node_doctor.where import Where

_CHECKED: Final[dict[str, type[Section]]] = {"nvidia": Nvidia, "kernel": Kernel}


def plugins(where: Where) -> Iterator[Diagnosis]:
    """Their own settings; which of the usual ones do not run."""
    for name, model in _CHECKED.items():
        chosen = where.settings.collectors.plugins.get(name)
        if chosen is None or not chosen.enabled:
            continue
        try:
            model.model_validate(chosen.settings)
        except ValueError as error:
            yield Diagnosis("problem", f"plugin {name}", f"its settings are wrong: {error}", "xpulse config check", "all it would read")
    if not where.runs("nvidia"):
        yield Diagnosis("note", "plugin nvidia", "it is not turned on", "collectors.plugins.nvidia: {}", "what NVIDIA's cards say")
    if not where.runs("kernel"):
        lost = "SXids, what the kernel says of a card, and its causes: NVML's own events name the Xid only"
        yield Diagnosis("note", "plugin kernel", "it is not turned on", "collectors.plugins.kernel: {}", lost)


def kernel_log(where: Where) -> Iterator[Diagnosis]:
    """Whether /dev/kmsg can be read, else the journal."""
    if not where.runs("kernel"):
        return
    settings = where.of_plugin("kernel", Kernel)
    journal = settings.source != "kmsg" and shutil.which(settings.journalctl) is not None
    kmsg = Kmsg(where.path(settings.kmsg_path))
    try:
        kmsg.open(None)
    except Missing as error:
        what, _, remedy = str(error).partition("; ")
        if journal:
            yield Diagnosis("note", "kernel log", f"{what}; the journal is read instead", remedy)
        else:
            yield Diagnosis("problem", "kernel log", what, remedy, "Xids with their causes, SXids, cards that fell off the bus")
    else:
        kmsg.close()
        yield Diagnosis("good", "kernel log", f"{settings.kmsg_path} can be read")


def process_ids(where: Where) -> Iterator[Diagnosis]:
    """The driver names processes by the host's numbers."""
    folder = where.of_plugin("nvidia", Nvidia).proc_folder
    view = Proc(where.path(folder)).view()
    if view == "host":
        yield Diagnosis("good", "process ids", f"{folder} shows the host's processes")
    elif view == "other":
        remedy = "hostPID: true (docker: --pid=host), or mount the host's /proc and set collectors.plugins.nvidia.settings.proc_folder"
        text = f"{folder} shows another PID namespace than the driver's"
        yield Diagnosis("note", "process ids", text, remedy, "names, owners, cgroups and pods of the processes on a card")
    else:
        text = f"{folder} hides some of the host's processes (mount option hidepid)"
        remedy = "run the agent in the group that the option gid= names"
        yield Diagnosis("note", "process ids", text, remedy, "names and owners of those processes")


def clock(where: Where) -> Iterator[Diagnosis]:
    state = where.synchronised()
    if state is False:
        lost = "if it is off, this node's readings and events stand beside those of other times"
        yield Diagnosis("note", "clock", "the kernel says that its clock follows no other", "run chrony or systemd-timesyncd", lost)
    elif state:
        yield Diagnosis("good", "clock", "it follows another")
    else:
        yield Diagnosis("note", "clock", "the kernel does not say whether it follows another")


def spool(where: Where) -> Iterator[Diagnosis]:
    """Room for what waits while the bus is away."""
    northbound = where.settings.northbound
    if not northbound.kafka or not northbound.spool.enabled:
        return
    folder = northbound.spool.directory or where.settings.state() / "spool"
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    if free < northbound.spool.max_bytes:
        text = f"{free / 2**20:.0f} MiB free under {there}, the spool may take {northbound.spool.max_bytes / 2**20:.0f}"
        yield Diagnosis("problem", "spool", text, "free space, or lower northbound.spool.max_bytes", "samples of a long outage of the bus")
    else:
        yield Diagnosis("good", "spool", f"{free / 2**30:.1f} GiB free under {there}")
