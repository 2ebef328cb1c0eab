"""One NVML session through nvidia-ml-py, and the only module that imports it: vendor units and return codes come out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from collectors.nvidia.remedy import Missing, bindings_warning, why
from collectors.nvidia.reply import FAILED, UNKNOWN, Failed, Reply, text

Handle = Any
"""NVML's opaque handle of a device, a MIG instance or a vGPU; good for one session."""

Wrap = Callable[[str, Callable[[str], Any]], Any]

_TEXT_ERRORS: Final = (UnicodeDecodeError,)


class Source:
    """Opens and closes the session. `nvml` are the bindings; a call through `ask` answers or is a Failed: it raises nothing of NVML's."""

    def __init__(self, wrap: Wrap | None = None, *, library: bool = True) -> None:
        """`wrap` gets each symbol's name and how to find it, and gives the function that is called instead; with `library` False it has
        to give them all, and no library is loaded."""
        self._wrap, self._library = wrap, library
        self._undo: Callable[[], None] | None = None
        self._nvml: ModuleType | None = None
        self._open = False
        self.sessions = 0
        """How many sessions were opened: handles of an earlier one are void."""

    @property
    def nvml(self) -> Any:
        """The bindings; open() first."""
        assert self._nvml is not None, "open() first"
        return self._nvml

    @property
    def is_open(self) -> bool:
        return self._open

    def open(self) -> None:
        """Load the library and start a session, unless there is one; raises Missing."""
        if self._nvml is None:
            self._nvml = _bindings()
        if self._open:
            return
        if self._wrap is not None and self._undo is None:
            self._undo = _wrapped(self._nvml, self._wrap, library=self._library)
        try:
            self._nvml.nvmlInit()
        except self._nvml.NVMLError as error:
            raise Missing(why(error.value, str(error)), error.value) from None
        self._open = True
        self.sessions += 1

    def close(self) -> None:
        """End the session: nothing then stands in the way of a reset of the GPU."""
        if self._open and self._nvml is not None:
            self._open = False
            self.ask(self._nvml.nvmlShutdown)
        self.unwrap()

    def unwrap(self) -> None:
        """Have the bindings' calls go straight to the library again; what was found through `wrap` stays as it is."""
        if self._undo is not None:
            self._undo()
            self._undo = None

    def error(self, code: int) -> Exception:
        """The bindings' own exception for a code."""
        return self.nvml.NVMLError(code)  # type: ignore[no-any-return]  # the bindings are untyped

    def ask(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """The call's answer, or Failed."""
        try:
            return call(*arguments)
        except self.nvml.NVMLError as error:
            return FAILED[error.value]
        except _TEXT_ERRORS:
            return FAILED[UNKNOWN]

    def text(self, call: Callable[..., Any], *arguments: Any) -> Reply:
        """The call's answer as a text, or Failed."""
        answer = self.ask(call, *arguments)
        return answer if isinstance(answer, Failed) else text(answer)

    def function(self, symbol: str) -> Callable[..., int] | None:
        """The library's own function, which takes ctypes arguments and returns a code; None where the driver is older than it.

        The bindings' wrappers make new ctypes objects for each call, which costs more than the call; see collectors.nvidia.calls.
        """
        found = self.ask(self.nvml._nvmlGetFunctionPointer, symbol)
        return None if isinstance(found, Failed) else found

    def driver_version(self) -> Reply:
        return self.text(self.nvml.nvmlSystemGetDriverVersion)

    def library_version(self) -> Reply:
        return self.text(self.nvml.nvmlSystemGetNVMLVersion)

    def cuda_version(self) -> Reply:
        """As NVML has it: 1000 × major + 10 × minor."""
        return self.ask(self.nvml.nvmlSystemGetCudaDriverVersion_v2)  # type: ignore[no-any-return]  # the bindings are untyped

    def handles(self) -> list[Handle | Failed]:
        """A handle or the reason for none, by NVML index; raises Missing where even the count cannot be had."""
        return [self.handle(index) for index in range(self.count())]

    def count(self) -> int:
        """How many cards NVML lists; raises Missing where even that cannot be had."""
        count = self.ask(self.nvml.nvmlDeviceGetCount)
        if isinstance(count, Failed):
            raise Missing(why(count.code, "nvmlDeviceGetCount"), count.code)
        return int(count)

    def handle(self, index: int) -> Handle | Failed:
        """The handle of a card, or the reason for none."""
        return self.ask(self.nvml.nvmlDeviceGetHandleByIndex, index)


def _wrapped(nvml: Any, wrap: Wrap, *, library: bool) -> Callable[[], None]:
    """Have every call of the bindings go through `wrap`; what is given undoes it."""
    find, loaded, cached = nvml._nvmlGetFunctionPointer, nvml.nvmlLib, {}

    def instead(symbol: str) -> Any:
        if symbol not in cached:
            cached[symbol] = wrap(symbol, find)
        return cached[symbol]

    def undo() -> None:
        nvml._nvmlGetFunctionPointer = find
        if not library:
            nvml.nvmlLib = loaded

    nvml._nvmlGetFunctionPointer = instead
    if not library:
        nvml.nvmlLib = wrap  # anything but None: it is taken for a loaded library, and never asked
    return undo


def _bindings() -> ModuleType:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # pynvml 13's redirector warns in nvidia-ml-py's name
            import pynvml
    except ImportError as error:
        raise Missing(f"the bindings of NVML are not installed ({error}); install them: pip install 'xpulse[agent]'") from None
    if hasattr(pynvml, "__path__") or not hasattr(pynvml, "nvmlGpmSampleGet"):
        other = f"the module pynvml at {pynvml.__file__} is not nvidia-ml-py 13; install it: pip install 'nvidia-ml-py>=13.580'"
        raise Missing(bindings_warning() or other)
    return pynvml  # type: ignore[no-any-return]  # the module is untyped
