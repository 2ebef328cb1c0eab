"""Renders the settings model as an annotated YAML file: every setting, its default, one comment each. xpulse.yaml is made with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import yaml
from pydantic import BaseModel, SecretStr
from pydantic_core import PydanticUndefined

HEAD: Final = """\
# Every setting of XPulse with its default. Made by `xpulse config show`; `make test` holds it against the code.
# A line that begins with # and no space after it is a default: remove the # to set it. As it is, this file sets nothing.
# Each key may also be set in the environment: bus.brokers is XPULSE_BUS__BROKERS. The environment wins.
# A secret `k` may be given as `k_file` (a file that holds it) or in the environment; keep it out of this file.
"""


def render(model: type[BaseModel], values: BaseModel | None = None) -> str:
    """The whole file, defaults as comments: what a file sets counts as set, a broker's address for example. With `values`, their
    values, and not as comments; secrets are never written."""
    return HEAD + "\n" + "\n".join(_section(model, values, 0, "#" if values is None else "")) + "\n"


def _section(model: type[BaseModel], values: BaseModel | None, depth: int, mark: str) -> list[str]:
    lines: list[str] = []
    pad = "  " * depth
    for name, field in model.model_fields.items():
        default = field.get_default(call_default_factory=True)
        value = getattr(values, name) if values is not None else default
        lines += [f"{pad}# {line}" for line in _comment(field.description)]
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            lines.append(f"{pad}{name}:")
            lines += _section(annotation, value if isinstance(value, BaseModel) else None, depth + 1, mark)
        else:
            lines += [pad + re.sub(r"^( *)", rf"\1{mark}", line) for line in _value(name, value)]
        if depth == 0:
            lines.append("")
    return lines


def _comment(description: str | None) -> list[str]:
    text = re.sub(r"\s+", " ", description or "").strip()
    return [text] if text else []


def _plain(value: Any) -> Any:
    if value is PydanticUndefined:
        return None
    if isinstance(value, SecretStr):
        return "**********"
    if isinstance(value, BaseModel):
        return {k: _plain(getattr(value, k)) for k in type(value).model_fields}
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(v) for v in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def _value(name: str, value: Any) -> list[str]:
    plain = _plain(value)
    if plain is None:
        return [f"{name}:"]
    text = yaml.safe_dump({name: plain}, default_flow_style=False, sort_keys=False, width=120, allow_unicode=True)
    return text.rstrip("\n").split("\n")
