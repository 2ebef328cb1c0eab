"""What the command line may end with.

XPulseError
├── UsageError      exit 2: wrong use or configuration; says what, where, and the remedy
└── ProblemFound    exit 1: the command worked and found something wrong
    └── GivenUp     exit 78: a role that would do harm if it were started again as things are
"""

from __future__ import annotations

from typing import Final

GIVEN_UP: Final = 78
"""EX_CONFIG of sysexits.h: something remains in an unconfigured or misconfigured state."""


class XPulseError(Exception):
    """Ends a command with one message on stderr and no traceback."""

    exit_code = 1


class UsageError(XPulseError):
    """Wrong use or configuration."""

    exit_code = 2


class ProblemFound(XPulseError):
    """The command ran and found a problem."""

    exit_code = 1


class GivenUp(ProblemFound):
    """A role ended for good: starting it again before somebody has looked only repeats what it stopped for."""

    exit_code = GIVEN_UP
