"""A libnvidia-ml.so.1 built from C and served from a JSON file that may change at any time: for tests, benchmarks and demonstrations.

    library = build(cache_dir)                       # its folder belongs into LD_LIBRARY_PATH of a process that uses NVML
    state = State(tmp / "nvml.json", "h100", count=8)
    os.environ[STATE_VARIABLE] = str(state.path)
    state.device(2).set(temperature_celsius=91)      # seen by the next call of every process that has the library loaded
    state.fail("nvmlDeviceGetFanSpeed", 999, device=2)

What the file may say is in docs/guide/fake-nvml.md; what any stand-in must do is tests/conformance/nvml.
"""

from xpulse.testing.nvml.building import CALLS_VARIABLE, LIBRARY, OLD_DRIVER_MISSING, STATE_VARIABLE, NoCompiler, build, compiler
from xpulse.testing.nvml.calls import calls
from xpulse.testing.nvml.profile import profile, profiles
from xpulse.testing.nvml.state import Device, Process, State, code

__all__ = [
    "CALLS_VARIABLE",
    "LIBRARY",
    "OLD_DRIVER_MISSING",
    "STATE_VARIABLE",
    "Device",
    "NoCompiler",
    "Process",
    "State",
    "build",
    "calls",
    "code",
    "compiler",
    "profile",
    "profiles",
]
