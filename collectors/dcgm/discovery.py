"""Exporters by Prometheus' file_sd: files are read again when they change; a broken one stands for what it said before."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from collectors.dcgm.settings import NAME, address_problem

MOST_TARGETS: Final = 5000
MOST_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class Target:
    """One exporter. `node` "" leaves the name to the page, `fallback` is used where that has none either; `own`: of the agent's node."""

    url: str
    node: str = ""
    cluster: str = ""
    fallback: str = ""
    own: bool = False

    @property
    def shown(self) -> str:
        """The address for people: without its query, which may hold a secret."""
        return self.url.partition("?")[0]


def targets(text: str, *, yaml_text: bool) -> tuple[Target, ...]:
    """The targets of one file: a list of {targets: [host:port], labels: {...}}. Raises ValueError saying what is wrong."""
    if yaml_text:
        import yaml  # not needed where no file is YAML

        try:
            groups = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            raise ValueError(f"is no YAML: {' '.join(str(error).split())[:200]}") from None
    else:
        try:
            groups = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"is no JSON: {str(error)[:200]}") from None
    if groups is None:
        return ()
    if not isinstance(groups, list):
        raise ValueError("is not a list of {targets, labels}")
    found: list[Target] = []
    for number, group in enumerate(groups, 1):
        if not isinstance(group, dict) or not isinstance(group.get("targets"), list) or not isinstance(group.get("labels") or {}, dict):
            raise ValueError(f"group {number} has no list `targets`, or its `labels` are no mapping")
        found += (_target(number, str(one), group.get("labels") or {}) for one in group["targets"])
        if len(found) > MOST_TARGETS:
            raise ValueError(f"has more than {MOST_TARGETS} targets; split the work over several agents")
    return tuple(dict.fromkeys(found))


def _target(number: int, address: str, labels: Mapping[str, Any]) -> Target:
    def label(name: str) -> str:
        return str(labels.get(name) or "")

    if "://" in address:
        url = address
    else:
        path = label("__metrics_path__") or "/metrics"
        url = f"{label('__scheme__') or 'http'}://{address}{path if path.startswith('/') else '/' + path}"
    if problem := address_problem(url):
        raise ValueError(f"group {number}: {problem}")
    for name in ("node", "cluster"):
        if label(name) and not NAME.fullmatch(label(name)):
            raise ValueError(f"group {number}: {name} {label(name)!r} is no name (letters, digits, . _ : -)")
    return Target(url, label("node"), label("cluster"), label("instance") if NAME.fullmatch(label("instance")) else "")


@dataclass(slots=True)
class Files:
    """The file_sd files of the settings. `look` is cheap: it reads only what has changed since."""

    patterns: tuple[str, ...]
    _known: dict[str, tuple[tuple[int, int, int], tuple[Target, ...]]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    """What is wrong now, by file (or by pattern where no file is there)."""

    def look(self) -> tuple[Target, ...]:
        problems: dict[str, str] = {}
        known: dict[str, tuple[tuple[int, int, int], tuple[Target, ...]]] = {}
        for pattern in self.patterns:
            paths = sorted(glob.glob(pattern))  # noqa: PTH207 - pathlib's glob takes no absolute patterns
            if not paths:
                problems[pattern] = "no such file"
            for path in paths:
                before = self._known.get(path)
                try:
                    known[path] = self._read(path, before)
                except (OSError, ValueError) as error:
                    problems[path] = error.strerror or str(error) if isinstance(error, OSError) else str(error)
                    if before is not None:
                        known[path] = before
        self._known, self.problems = known, problems
        return _unique(one for _, found in known.values() for one in found)

    def _read(
        self, path: str, before: tuple[tuple[int, int, int], tuple[Target, ...]] | None
    ) -> tuple[tuple[int, int, int], tuple[Target, ...]]:
        stat = os.stat(path)  # noqa: PTH116 - 5,000 times a second of Path objects are not free
        mark = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if before is not None and before[0] == mark:
            return before
        if stat.st_size > MOST_BYTES:
            raise ValueError(f"is larger than {MOST_BYTES >> 20} MiB")
        text = Path(path).read_bytes().decode("utf-8", "replace")
        return mark, targets(text, yaml_text=not path.endswith(".json"))


def _unique(found: Iterable[Target]) -> tuple[Target, ...]:
    """One target an address: the first."""
    kept: dict[str, Target] = {}
    for one in found:
        kept.setdefault(one.url, one)
    return tuple(kept.values())
