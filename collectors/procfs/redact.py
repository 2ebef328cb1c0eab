"""Leaves out of a command line what may be a secret; when in doubt a value is masked, so what remains can be shown to anyone.

Not a proof: a secret that is a plain short word after an option with an innocent name stays. That is why the lines are off by default.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

MASK: Final = "***"
LONGEST_ARGUMENT: Final = 256
LONGEST_LINE: Final = 4096

_SECRET_WORDS: Final = frozenset(
    {
        *("pass", "passwd", "password", "passphrase", "passcode", "pwd", "pw", "secret", "secrets", "token", "key", "apikey", "auth"),
        *("authorization", "credential", "credentials", "cred", "creds", "bearer", "cookie", "cookies", "jwt", "sas", "sig", "signature"),
        *("dsn", "webhook", "otp"),
    }
)
_SECRET_PARTS: Final = ("password", "passwd", "passphrase", "secret", "apikey", "accesskey", "privatekey", "credential", "connectionstring")
_SECRET_ENDS: Final = ("token", "pwd", "pass", "key", "auth")
_INNOCENT_WORDS: Final = frozenset({"bypass", "compass", "monkey", "hotkey", "keepass", "noauth"})
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ENVIRONMENT: Final = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*)=(.*)$", re.DOTALL)
_OPTION: Final = re.compile(r"^(-{1,2}[A-Za-z0-9][\w.\-]*|\+{0,2}[A-Za-z][\w.\-/@]*)([=:])(.*)$", re.DOTALL)
_USERINFO: Final = re.compile(r"([a-zA-Z][a-zA-Z0-9+.\-]*://)[^/\s?#]*@")
_QUERY: Final = re.compile(r"([?&;][^=&;\s#]{1,64}=)[^&;\s#'\"]*")
_HEADER: Final = re.compile(r"(?i)\b(bearer|basic|digest|negotiate)(\s+)[^\s'\"]+")
_JSON: Final = re.compile(r"""(["'])([\w.\-]{1,64})\1(\s*[:=]\s*)("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,}\]]+)""")
_WELL_KNOWN: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_|sk-|sk_|pk_|rk_|ghp_|gho_|ghs_|ghu_|ghr_|github_pat_|glpat-|xox[abeprs]-|AKIA|ASIA|AIza|ya29\.|eyJ|nvapi-|dckr_pat_|"
    r"npm_|pypi-|SG\.|hvs\.|dop_v1_|shpat_|whsec_|gsk_|r8_|tskey-)[\w.\-+/=]{6,}"
)
_RUN: Final = re.compile(r"[A-Za-z0-9+_=.~\-]{20,}")
_HEX: Final = re.compile(r"[0-9a-fA-F]{32,}")
_TAKES_NAME: Final = frozenset({"-u", "-U", "--user", "--proxy-user"})
_TAKES_CREDENTIALS: Final = _TAKES_NAME | {"-p", "-P", "--pass"}


def redacted(arguments: Sequence[str]) -> str:
    """One line of text, at most LONGEST_LINE characters, with secrets as `***`; control characters become spaces."""
    return " ".join(_arguments(arguments))[:LONGEST_LINE]


def plain(arguments: Sequence[str]) -> str:
    """The whole line as it is, cut and made one line in the same way."""
    return " ".join(_one_line(argument) for argument in arguments)[:LONGEST_LINE]


def _one_line(argument: str) -> str:
    return "".join(c if c.isprintable() else " " for c in argument)


def _arguments(arguments: Sequence[str]) -> list[str]:
    out: list[str] = []
    mask_next = ""
    for raw in arguments:
        argument = _one_line(raw)
        if mask_next and _is_value(mask_next, argument):
            out.append(MASK)
            mask_next = ""
            continue
        out.append(_shorter(_argument(argument)))
        mask_next = argument if _wants_secret(argument) else ""
    return out


def _shorter(argument: str) -> str:
    return argument if len(argument) <= LONGEST_ARGUMENT else argument[: LONGEST_ARGUMENT - 1] + "…"


def _wants_secret(argument: str) -> bool:
    """Whether the next argument is this option's value, and a secret."""
    if argument in _TAKES_CREDENTIALS:
        return True
    name = argument.rstrip(":")
    option = argument.startswith("-") or argument.endswith(":")
    return option and "=" not in name and " " not in name and secret_name(name)


def _is_value(option: str, argument: str) -> bool:
    if argument.startswith("--") and re.fullmatch(r"--[a-z][\w.\-]*(=.*)?", argument, re.DOTALL):
        return False  # the option before took no value
    if option in _TAKES_CREDENTIALS:
        # -p 8000 is a port; -u is followed by a name more often than by name and password
        return not re.fullmatch(r"[\d.:/]+", argument) and (option not in _TAKES_NAME or ":" in argument)
    return True


def secret_name(name: str) -> bool:
    """Whether a name of an option, variable or field says that its value is secret."""
    words = [word.lower() for word in _WORDS.findall(name)]
    joined = "".join(words)
    return (
        not _SECRET_WORDS.isdisjoint(words)
        or any(part in joined for part in _SECRET_PARTS)
        or any(word.endswith(end) and word not in _INNOCENT_WORDS for word in words for end in _SECRET_ENDS)
    )


def _argument(argument: str) -> str:
    if "-----BEGIN" in argument:
        return MASK
    if " " in argument.strip():
        argument = _JSON.sub(_json, argument)
        return " ".join(_arguments_of_text(argument))
    environment = _ENVIRONMENT.match(argument)
    if environment and (environment[1].isupper() or secret_name(environment[1])):
        return f"{environment[1]}={MASK}"
    option = _OPTION.match(argument)
    if option and not option[3].startswith("//") and secret_name(option[1]):
        return f"{option[1]}{option[2]}{MASK}"
    if re.fullmatch(r"-p[^\d\s=-].{3,}", argument) and not re.fullmatch(r"-p[a-z]{1,8}", argument):
        return f"-p{MASK}"  # as mysql takes its password
    return _value(argument)


def _arguments_of_text(text: str) -> list[str]:
    """An argument that is a line of its own (sh -c "...", a header)."""
    words = _HEADER.sub(rf"\1\2{MASK}", text).split(" ")
    return _arguments([word for word in words if word])


def _value(text: str) -> str:
    text = _USERINFO.sub(rf"\1{MASK}@", text)
    text = _QUERY.sub(lambda m: f"{m[1]}{MASK}" if secret_name(m[1][1:-1]) else m[0], text)
    text = _JSON.sub(_json, text)
    text = _WELL_KNOWN.sub(MASK, text)
    return _RUN.sub(lambda m: MASK if random_looking(m[0]) else m[0], text)


def _json(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2]}{match[1]}{match[3]}{match[1]}{MASK}{match[1]}" if secret_name(match[2]) else match[0]


def random_looking(text: str) -> bool:
    """Long hex, or long runs of letters and digits whose kind (lower, upper, digit) changes at most steps; names are short words."""
    if _HEX.search(text.replace("-", "")):
        return True
    runs = re.findall(r"[A-Za-z0-9]+", text)
    kinds = ["digit" if c.isdigit() else "upper" if c.isupper() else "lower" for c in "".join(runs)]
    if len(kinds) < 20 or "digit" not in kinds or len(set(kinds)) < 2 or len(kinds) / len(runs) < 10:
        return False
    changes = sum(a != b for a, b in pairwise(kinds)) / (len(kinds) - 1)
    return changes >= 0.4 if len(set(kinds)) == 3 else len(kinds) >= 32 and changes >= 0.3
