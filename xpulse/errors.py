"""What the command line may end with.

XPulseError
├── UsageError      exit 2: wrong use or configuration; says what, where, and the remedy
└── ProblemFound    exit 1: the command worked and found something wrong
"""


class XPulseError(Exception):
    """Ends a command with one message on stderr and no traceback."""

    exit_code = 1


class UsageError(XPulseError):
    """Wrong use or configuration."""

    exit_code = 2


class ProblemFound(XPulseError):
    """The command ran and found a problem."""

    exit_code = 1
