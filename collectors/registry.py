"""Finds the installed collector plugins by their entry points and makes one; every mistake is named with its remedy."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pydantic import ValidationError

from collectors.contract import API, GROUP, Env, Plugin
from collectors.settings import PluginSettings


class Misconfigured(ValueError):
    """The plugin or its settings are wrong: starting it again does not help."""


@dataclass(frozen=True, slots=True)
class Registered:
    """An installed plugin: the name of its entry point, `module:attribute`, and the distribution that brought it."""

    name: str
    target: str
    distribution: str = ""


def installed(points: Iterable[EntryPoint] | None = None) -> dict[str, Registered]:
    """Every plugin in the group xpulse.collectors by name; Misconfigured where two distributions claim one name."""
    found: dict[str, Registered] = {}
    for point in entry_points(group=GROUP) if points is None else points:
        new = Registered(point.name, point.value, point.dist.name if point.dist is not None else "")
        old = found.setdefault(point.name, new)
        if old.target != new.target:
            raise Misconfigured(
                f"collector plugin {point.name!r} is installed twice: {old.target} by {old.distribution or 'an unknown distribution'} "
                f"and {new.target} by {new.distribution or 'an unknown distribution'}; uninstall one of them"
            )
    return found


def chosen(settings: Mapping[str, PluginSettings], known: Mapping[str, Registered]) -> dict[str, Registered]:
    """The enabled plugins of the settings; Misconfigured where a name is unknown (enabled or not) or none is enabled."""
    for name in settings:
        if name not in known:
            names = ", ".join(sorted(known)) or "none is installed"
            raise Misconfigured(f"collectors.plugins.{name}: no such plugin; installed are: {names}")
    enabled = {name: known[name] for name, plugin in settings.items() if plugin.enabled}
    if not enabled:
        raise Misconfigured(f"collectors.plugins: none is enabled; enable one of: {', '.join(sorted(known)) or 'none is installed'}")
    return enabled


def load(target: str) -> Callable[..., Any]:
    """The `create` function that `module:attribute` names."""
    module, _, attribute = target.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise Misconfigured(f"collector plugin {target} cannot be loaded: {error}; reinstall its distribution") from error
    if not callable(found):
        raise Misconfigured(f"collector plugin {target} is not callable: it must be create(settings, env) -> Plugin")
    return found  # type: ignore[no-any-return]  # callable() narrows to Callable[..., object]


def _said(error: ValueError) -> str:
    """What a plugin says of its settings; a model's list of errors as one line, without the links to its maker's pages."""
    if not isinstance(error, ValidationError):
        return str(error)
    lines = []
    for one in error.errors(include_url=False, include_input=False):
        key = ".".join(map(str, one["loc"])) or "its settings"
        # Not what was given: it may be a password.
        lines.append(f"{key}: {'no such setting' if one['type'] == 'extra_forbidden' else one['msg']}")
    return "; ".join(lines)


def make(target: str, settings: Mapping[str, Any], env: Env) -> Plugin:
    """Create the plugin and check its contract version; Misconfigured where settings or version do not fit."""
    try:
        plugin = load(target)(settings, env)
    except ValueError as error:
        raise error if isinstance(error, Misconfigured) else Misconfigured(f"settings of {target}: {_said(error)}") from error
    if plugin.api != API:
        raise Misconfigured(
            f"collector plugin {target} speaks contract version {plugin.api}, this agent speaks {API}; "
            f"install a release of the plugin made for version {API}"
        )
    return plugin  # type: ignore[no-any-return]  # an entry point is untyped; the contract is checked by tests/conformance
