"""Why NVML cannot be used, and what to do about it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


class Missing(Exception):
    """Library, driver or bindings cannot be used; the text says what, where and the remedy. `code` is NVML's, 0 where it was not asked."""

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = code


def bindings_warning() -> str:
    """What is wrong with the installed bindings although they may work; empty where nothing is."""
    try:
        found = version("pynvml")
    except PackageNotFoundError:
        return ""
    return (
        f"the deprecated distribution pynvml {found} is installed beside nvidia-ml-py and shadows or wraps its module; "
        "remove it: pip uninstall pynvml && pip install --force-reinstall nvidia-ml-py"
    )


def why(code: int, what: str) -> str:
    """The remedy for NVML's return code of the call `what`."""
    match code:
        case 12:
            return (
                "libnvidia-ml.so.1 was not found: there is no NVIDIA driver here, or the container was started without the utility "
                "capability (NVIDIA_DRIVER_CAPABILITIES=utility); set collectors.plugins.nvidia.enabled: false on hosts without one"
            )
        case 1:
            return "the NVIDIA driver ended the session (NVML 1): it was reloaded, or the GPUs were taken away"
        case 9:
            return "the NVIDIA driver is not loaded (NVML 9); load it: modprobe nvidia, and look for its reason in dmesg"
        case 4:
            return "no permission to talk to the NVIDIA driver (NVML 4); the agent needs to open /dev/nvidiactl"
        case 18:
            return "library and kernel driver are of different versions (NVML 18): the driver was upgraded; reboot or reload it"
        case 999:
            return (
                "NVML says Unknown Error (NVML 999); in a container this is what remains after `systemctl daemon-reload` took its "
                "devices away: restart the container (nvidia-container-toolkit issue 48 has the lasting cure); else see dmesg"
            )
        case _:
            return f"NVML cannot be used: {what} (NVML {code}); see what nvidia-smi says"
