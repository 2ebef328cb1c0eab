"""A /proc and a /sys/bus/pci/devices made of plain files, to say what a test needs the kernel to say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

BOOTED_AT_SECONDS = 1_790_000_000


class FakeProc:
    """A host's /proc; `host` False is one of another PID namespace."""

    def __init__(self, root: Path, *, host: bool = True) -> None:
        self.root = root
        root.mkdir(parents=True)
        (root / "stat").write_text(f"cpu  1 2 3\nintr 9\nbtime {BOOTED_AT_SECONDS}\nprocesses 7\n")
        (root / "self" / "ns").mkdir(parents=True)
        if host:
            self.add(2, "kthreadd", ticks=0)
        (root / "self" / "ns" / "pid").symlink_to("pid:[4026531836]" if host else "pid:[4026532999]")

    def add(
        self,
        pid: int,
        name: str = "python3",
        *,
        ticks: int = 1000,
        namespace_pids: Sequence[int] = (),
        user_id: int = 1000,
        cgroup: str = "0::/user.slice\n",
        arguments: Sequence[str] = (),
        program: str = "",
    ) -> None:
        """A process that started `ticks` clock ticks (1/100 s) after the boot."""
        folder = self.root / str(pid)
        folder.mkdir(exist_ok=True)
        # Fields 3 to 52 of proc(5); number 22 is the start.
        fields = ["S", "1", *["0"] * 17, str(ticks), *["0"] * 30]
        (folder / "stat").write_text(f"{pid} ({name[:15]}) {' '.join(fields)}\n")
        (folder / "comm").write_text(name[:15] + "\n")
        numbers = "\t".join(str(n) for n in (pid, *namespace_pids))
        uids = "\t".join([str(user_id)] * 4)
        (folder / "status").write_text(f"Name:\t{name[:15]}\nUmask:\t0022\nUid:\t{uids}\nNSpid:\t{numbers}\n")
        (folder / "cgroup").write_text(cgroup)
        (folder / "cmdline").write_bytes(b"".join(argument.encode() + b"\0" for argument in arguments))
        if program:
            (folder / "exe").symlink_to(program)

    def end(self, pid: int) -> None:
        folder = self.root / str(pid)
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()

    def give_driver(self, *bdfs: str) -> None:
        """The GPUs that the NVIDIA kernel module lists."""
        for bdf in bdfs:
            (self.root / "driver" / "nvidia" / "gpus" / bdf).mkdir(parents=True, exist_ok=True)


class FakePciBus:
    """A PCI bus; devices come and go as folders do."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True)

    def add(self, bdf: str, *, vendor: int = 0x10DE, class_code: int = 0x030200, driver: str = "nvidia", virtual: bool = False) -> None:
        folder = self.root / bdf
        folder.mkdir()
        (folder / "vendor").write_text(f"{vendor:#06x}\n")
        (folder / "device").write_text("0x2330\n")
        (folder / "class").write_text(f"{class_code:#08x}\n")
        if driver:
            (folder / "driver").symlink_to(f"../../../bus/pci/drivers/{driver}")
        if virtual:
            (folder / "physfn").symlink_to("../0000:10:00.0")

    def remove(self, bdf: str) -> None:
        folder = self.root / bdf
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
