"""Reads docker-compose.yml as Compose would: variables filled from an .env, services of the active profiles."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
COMPOSE: Final = ROOT / "docker-compose.yml"
EXAMPLE: Final = ROOT / ".env.example"
_VARIABLE: Final = re.compile(r"\$(?:\$|\{(?P<name>\w+)(?:(?P<how>:?[-?])(?P<rest>[^{}]*))?\})")


class Unset(ValueError):
    """A required variable has no value; the text is what Compose would say."""


def example() -> dict[str, str]:
    """What .env.example sets, empty values included."""
    pairs = (line.partition("=") for line in EXAMPLE.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#"))
    return {name: value for name, _, value in pairs}


def filled() -> dict[str, str]:
    """.env.example as a user would have filled it in."""
    return {name: value or f"test-{name.lower()}" for name, value in example().items()}


def fill(text: str, variables: Mapping[str, str]) -> str:
    """Compose's own substitution, as far as the file uses it: ${A}, ${A:-default}, ${A:?error}, $$."""

    def value(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        found, how, rest = variables.get(match["name"], ""), match["how"] or "", match["rest"] or ""
        if found:
            return found
        if how.endswith("?"):
            raise Unset(f"{match['name']}: {rest}")
        return rest

    # A comment may name a variable too; it is not Compose's.
    lines = [line if line.lstrip().startswith("#") else _VARIABLE.sub(value, line) for line in text.splitlines()]
    return "\n".join(lines) + "\n"


def model(variables: Mapping[str, str], profiles: frozenset[str]) -> dict[str, Any]:
    """The file with its variables filled and only the services that run under these profiles."""
    document: dict[str, Any] = yaml.safe_load(fill(COMPOSE.read_text(encoding="utf-8"), variables))
    services = document["services"]
    document["services"] = {n: s for n, s in services.items() if not s.get("profiles") or profiles & set(s["profiles"])}
    return document
