"""Builds the fake libnvidia-ml.so.1 with the compiler at hand, once for each set of symbols that it shall lack."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

LIBRARY: Final = "libnvidia-ml.so.1"
STATE_VARIABLE: Final = "FAKE_NVML_STATE"
"""Names the JSON file that the library serves."""
CALLS_VARIABLE: Final = "FAKE_NVML_CALLS"
"""Names the file of call counts, see xpulse.testing.nvml.calls; unset: nothing is counted."""
OLD_DRIVER_MISSING: Final = (
    "nvmlDeviceGetTemperatureV",
    "nvmlDeviceGetMarginTemperature",
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetSupportedClocksEventReasons",
    "nvmlDeviceGetGpuFabricInfoV",
    "nvmlDeviceGetSramEccErrorStatus",
    "nvmlDeviceGetProcessesUtilizationInfo",
    "nvmlDeviceGetRunningProcessDetailList",
    "nvmlDeviceGetRemappedRows_v2",
    "nvmlDeviceGetPlatformInfo",
    "nvmlDeviceGetNumaNodeId",
    "nvmlGpmQueryDeviceSupport",
    "nvmlGpmSampleAlloc",
    "nvmlGpmSampleFree",
    "nvmlGpmSampleGet",
    "nvmlGpmMigSampleGet",
    "nvmlGpmMetricsGet",
)
"""What a driver of the 515 branch does not export of what this library has."""

_SOURCES: Final = Path(__file__).with_name("library")
_FLAGS: Final = ("-shared", "-fPIC", "-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-pthread")


class NoCompiler(FileNotFoundError):
    """There is no C compiler on this machine. The text names the remedy."""


def compiler() -> str | None:
    """Path of the C compiler ($CC, else cc, gcc or clang); None where there is none."""
    return next((found for name in (os.environ.get("CC"), "cc", "gcc", "clang") if name and (found := shutil.which(name))), None)


def build(cache_dir: Path, *, missing: Iterable[str] = ()) -> Path:
    """The library in a folder of its own under `cache_dir`, built unless it is there; the folder is what LD_LIBRARY_PATH needs.

    The symbols in `missing` are absent, as in a driver too old for them. Several processes may build at once.
    Raises NoCompiler, ValueError for a symbol that the library does not have, RuntimeError with the compiler's words where it fails.
    """
    absent = sorted(set(missing))
    if unknown := [name for name in absent if name not in exported()]:
        raise ValueError(f"the fake libnvidia-ml has no symbol {', '.join(unknown)}, which shall be missing")
    digest = hashlib.blake2b(digest_size=8)
    for source in sorted(_SOURCES.glob("*.c")):
        digest.update(source.read_bytes())
    digest.update("\n".join(("", *_FLAGS, *absent)).encode())
    library = cache_dir / f"fake-nvml-{digest.hexdigest()}" / LIBRARY
    if library.exists():
        return library
    found = compiler()
    if found is None:
        raise NoCompiler("no C compiler (cc, gcc or clang) to build the fake libnvidia-ml.so.1 with; install one, as in: apt install gcc")
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        dir=library.parent
    ) as folder:  # each of those who build at once has its own, and the rename is one step
        built, exports = Path(folder, LIBRARY), Path(folder, "exports")
        exports.write_text(f"{{ global: nvml*; local: {''.join(f'{name}; ' for name in absent)}*; }};\n")
        linked = (f"-Wl,-soname,{LIBRARY}", f"-Wl,--version-script={exports}")
        command = [found, *_FLAGS, *linked, str(_SOURCES / "nvml.c"), "-o", str(built)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"the fake libnvidia-ml.so.1 cannot be built: {done.stderr}")
        built.rename(library)
    return library


@cache
def exported() -> frozenset[str]:
    """The names of all functions of the library when nothing is missing, read from its sources."""
    defined = re.findall(r"^\s*API [a-z *]*?\b(nvml\w+)\(", _text(), re.MULTILINE)
    by_macro = re.findall(r"^[A-Z0-9]+_(?:CALL|UINT|TEXT)\((nvml\w+)[,)]", _text(), re.MULTILINE)
    return frozenset(defined) | frozenset(by_macro)


@cache
def keys() -> frozenset[str]:
    """The names that the library looks for in a state file, read from its sources."""
    return frozenset(re.findall(r'"([a-z][a-z0-9_]*)"', _text()))


@cache
def _text() -> str:
    return "".join(source.read_text() for source in sorted(_SOURCES.glob("*.c")))
