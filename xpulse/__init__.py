"""The shell: command line, settings, bus clients and loops, local stack, live view, doctor, testing kit."""

from typing import Final

__version__: Final = "0.1.0"
