"""Finds regular expressions that can take for ever on one line: users of a machine write process names into its kernel log.

Refuses more than it must, for a rule's author can write it otherwise: a group that is repeated may hold neither a repetition, nor an
option, nor alternatives, and what fits nearly anything may be repeated three times only.
"""

from __future__ import annotations

import re
from typing import Final

MOST_WILD: Final = 3
"""Of 512 characters three take some 20 million steps at worst, a fourth makes that minutes."""

_TOKEN: Final = re.compile(
    r"(?P<escaped>\\.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<open>\((?:\?(?:P<\w+>|[aiLmsux-]*:|[=!]|<[=!]|>))?)|(?P<close>\))"
    r"|(?P<repeat>[*+]|\{(?P<from>[0-9]*)(?P<comma>,?)(?P<to>[0-9]*)\})|(?P<option>\?)|(?P<either>\|)|(?P<any>.)",
    re.DOTALL,
)


def careless(pattern: str) -> str:
    """Why the pattern, which must compile, is refused; empty where it is not."""
    varies = [False]  # by open group: whether it can fit one text in several ways
    closed: bool | None = None  # whether the group that has just ended varies; None where it was no group
    wild = was_wild = 0
    for token in _TOKEN.finditer(pattern):
        kind, text = token.lastgroup, token[0]
        if token["repeat"] is not None:
            unbounded = text in "*+" or (bool(token["comma"]) and not token["to"])
            if closed and (unbounded or int(token["to"] or token["from"] or 0) > 1):
                return "a group that is repeated holds a repetition, an option or alternatives, which can take for ever on one line"
            wild += was_wild and unbounded
            varies[-1] |= unbounded or bool(token["comma"])
            closed, was_wild = None, 0
            continue
        if kind == "open":
            varies.append(False)
        elif kind == "close" and len(varies) > 1:
            closed, was_wild = varies.pop(), 0
            varies[-1] |= closed
            continue
        elif kind in ("option", "either"):
            varies[-1] = True
        was_wild = int(text in (".", r"\S", r"\D", r"\W") or text.startswith("[^"))
        closed = None
    return f"it repeats what fits nearly anything {wild} times, more than {MOST_WILD}: name what stands between" if wild > MOST_WILD else ""
