"""A libnvidia-ml.so.1 made for tests: built from one C file, served from a text file that a test may change while it runs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_name("fake_nvml.c")
LIBRARY: Final = "libnvidia-ml.so.1"
STATE_VARIABLE: Final = "FAKE_NVML_STATE"
H100: Final = Path(__file__).parents[2] / "data" / "nvidia" / "h100.state"


def compiler() -> str | None:
    """Path of gcc or cc; None where there is none."""
    return shutil.which("gcc") or shutil.which("cc")


def build(cache_dir: Path, *, old_driver: bool = False) -> Path:
    """The library in a folder of its own under `cache_dir`, built unless it is there; its parent is what LD_LIBRARY_PATH needs.

    Raises FileNotFoundError without a compiler, RuntimeError with the compiler's words where it fails.
    """
    found = compiler()
    if found is None:
        raise FileNotFoundError("no C compiler (gcc or cc) to build the fake libnvidia-ml.so.1 with")
    digest = hashlib.blake2b(SOURCE.read_bytes(), digest_size=6).hexdigest()
    library = cache_dir / f"fake-nvml-{digest}{'-old' if old_driver else ''}" / LIBRARY
    if library.exists():
        return library
    library.parent.mkdir(parents=True, exist_ok=True)
    built = library.with_suffix(f".{os.getpid()}")
    command = [found, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", f"-Wl,-soname,{LIBRARY}", str(SOURCE), "-o", str(built)]
    done = subprocess.run([*command, *(["-DOLD_DRIVER"] if old_driver else [])], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the fake libnvidia-ml.so.1 cannot be built: {done.stderr}")
    built.rename(library)
    return library


class State:
    """The file the library reads. Later lines win, and each change is one rename, so no call sees half of it."""

    def __init__(self, path: Path, base: Path = H100, *, count: int = 1) -> None:
        self.path = path
        self._lines = base.read_text().splitlines()
        if count != 1:
            self._lines.append(f"count={count}")
            for i in range(count):
                self._lines += [
                    f"{i}.uuid=GPU-5a0c3f1e-9d52-4b7a-8f64-0c1e5b2d7a{0x90 + i:02x}",
                    f"{i}.serial=16529230145{27 + i}",
                    f"{i}.bus_id=00000000:{0x10 + 8 * i:02X}:00.0",
                    f"{i}.module_id={i}",
                ]
        self._write()

    def set(self, **values: object) -> None:
        """Keys with `__` for the dot and `every` for the star: set(every__fan_percent=30, _2__error=15)."""
        for key, value in values.items():
            name = key.removeprefix("_").replace("__", ".")
            self._lines.append(f"{'*' + name.removeprefix('every') if name.startswith('every.') else name}={value}")
        self._write()

    def _write(self) -> None:
        new = self.path.with_suffix(".new")
        new.write_text("\n".join(self._lines) + "\n")
        new.rename(self.path)
