"""How Prometheus text 0.0.4 and OpenMetrics 1.0.0 are written (heads, labels, numbers, ends), and which of the two a client wants."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, Literal

Format = Literal["text", "openmetrics"]
Kind = Literal["gauge", "counter", "info"]

CONTENT_TYPE: Final[Mapping[Format, str]] = {
    "text": "text/plain; version=0.0.4; charset=utf-8",
    "openmetrics": "application/openmetrics-text; version=1.0.0; charset=utf-8",
}
EOF: Final[Mapping[Format, str]] = {"text": "", "openmetrics": "# EOF\n"}

UNITS: Final = ("bytes_per_second", "watts", "joules", "celsius", "hertz", "bytes", "seconds", "ratio")
"""What a metric's name may end with to say its unit."""

_FLOAT32: Final = struct.Struct("<f")
_NOT_IN_A_NAME: Final = re.compile(r"[^a-zA-Z0-9_]")
_QUALITY: Final = re.compile(r"\s*q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*\Z", re.IGNORECASE)


def escaped(value: str) -> str:
    """A label's value as both formats want it. Lone surrogates, which no UTF-8 has, become '?'."""
    if value.isalnum():
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    plain = value.encode("utf-8", "replace").decode()
    return plain.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def head(name: str, kind: Kind, meaning: str, form: Format, unit: str = "") -> str:
    """The lines before a family's samples. `name` is without the _total of counters and the _info of infos; `unit` only where the name
    ends with it (OpenMetrics asks for that)."""
    meaning = meaning.replace("\\", "\\\\").replace("\n", "\\n")
    if form == "openmetrics":
        meaning = meaning.replace('"', '\\"')
        lines = f"# TYPE {name} {kind}\n"
        if unit and name.endswith("_" + unit):
            lines += f"# UNIT {name} {unit}\n"
        return f"{lines}# HELP {name} {meaning}\n"
    name = sample_name(name, kind)
    return f"# HELP {name} {meaning}\n# TYPE {name} {'gauge' if kind == 'info' else kind}\n"


def unit_in(name: str) -> str:
    """The unit that a family's name ends with; "" where it says none."""
    return next((unit for unit in UNITS if name.endswith("_" + unit)), "")


def sample_name(name: str, kind: Kind) -> str:
    """What the samples of a family are called."""
    return name + {"gauge": "", "counter": "_total", "info": "_info"}[kind]


def pairs(labels: Iterable[tuple[str, str]]) -> str:
    """Labels without their braces: `a="b",c="d"`. Empty values are left out: to Prometheus they are no labels."""
    return ",".join(f'{name}="{escaped(value)}"' for name, value in labels if value)


def label_name(text: str, taken: Iterable[str] = ()) -> str:
    """A name that users chose as a label's name; one that is `taken` gets a number, so that a.b and a_b stay two."""
    name = _NOT_IN_A_NAME.sub("_", text) or "_"
    if name[0].isdigit():
        name = "_" + name
    used = set(taken)
    if name not in used:
        return name
    return next(f"{name}_{n}" for n in range(2, len(used) + 3) if f"{name}_{n}" not in used)


@lru_cache(maxsize=8192)
def short(value: float) -> str:
    """A 32-bit float as the shortest decimal that still is that float: 0.47, not 0.4699999988079071."""
    text = f"{value:.7g}"
    if _FLOAT32.unpack(_FLOAT32.pack(float(text)))[0] != value:
        text = f"{value:.9g}"
    return text


def wanted(accept: str) -> Format:
    """What a client with this Accept header gets: OpenMetrics where it wants that no less than plain text, else plain text."""
    openmetrics, text = 0.0, 0.0
    for offer in accept.lower().split(","):
        kind, *parameters = (part.strip() for part in offer.split(";"))
        quality = next((float(m[1]) for p in parameters if (m := _QUALITY.match(p))), 1.0)
        versions = {p.partition("=")[2].strip().strip('"') for p in parameters if p.partition("=")[0].strip() == "version"}
        if kind == "application/openmetrics-text" and versions <= {"1.0.0"}:
            openmetrics = max(openmetrics, quality)
        elif kind == "text/plain" and versions <= {"0.0.4"}:
            text = max(text, quality)
    return "openmetrics" if openmetrics and openmetrics >= text else "text"
