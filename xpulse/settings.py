"""One frozen settings model: xpulse.yaml, over it XPULSE_* environment variables; nothing unknown is accepted in either."""

from __future__ import annotations

import difflib
import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import yaml
from pydantic import BaseModel, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from collectors.settings import Collectors
from forecasting.settings import Forecasting
from schemas.section import Section
from sinks.settings import Sinks
from streams.settings import Streams
from xpulse.bus.settings import Bus
from xpulse.errors import UsageError
from xpulse.northbound.settings import Northbound

PREFIX: Final = "XPULSE_"
_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9_.-]*"

RESERVED: Final = frozenset({"XPULSE_CONFIG", "XPULSE_REQUIRE"})
"""Names that are not settings: the file to read, and what the tests must not skip."""

SEARCH: Final = (Path("xpulse.yaml"), Path("/etc/xpulse/xpulse.yaml"))


class Logs(Section):
    """What a role writes on stderr."""

    format: Literal["text", "json"] = "text"
    """`text` for people, `json` (one object a line) for log collectors."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least level that is written."""


class Health(Section):
    """The HTTP endpoint of each role: /healthz, /readyz, /metrics."""

    host: str = "127.0.0.1"
    """Address to listen on. Loopback unless you say otherwise: the endpoint has no authentication (the agent's can
    have: northbound.exposition)."""
    port: int | None = Field(None, ge=0, le=65535)
    """Port of this process; empty: the role's documented one (docs/reference/roles.md). 0: any free port, written to the log."""


class Settings(BaseSettings):
    """Every setting of XPulse. A secret `k` may also be given as `k_file`."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        env_ignore_empty=True,
        use_attribute_docstrings=True,
    )

    cluster: str = Field("", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$|^$", max_length=63)
    """Name of the cluster these nodes are in; required outside the local stack. Two clusters may have equal node names."""
    node: str = Field("", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$|^$", max_length=253)
    """Name of this node; empty: the environment variable NODE_NAME, else the host's name."""
    state_dir: Path | None = None
    """Where a role keeps what must outlive it: the embedded store, logs of the local stack, Faust's data folder.
    Empty: $XDG_STATE_HOME/xpulse, that is ~/.local/state/xpulse."""
    log: Logs = Logs()
    health: Health = Health()
    bus: Bus = Bus()
    collectors: Collectors = Collectors()
    northbound: Northbound = Northbound()
    streams: Streams = Streams()
    sinks: Sinks = Sinks()
    forecasting: Forecasting = Forecasting()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment wins over the file; a .env file and a secrets folder are not read."""
        return env_settings, init_settings

    def state(self) -> Path:
        """The state folder, absolute; made (mode 0700) where it does not exist."""
        home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
        folder = (self.state_dir or Path(home) / "xpulse").absolute()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise UsageError(f"state folder {folder} cannot be made: {error.strerror}; set state_dir (XPULSE_STATE_DIR)") from None
        return folder

    def node_name(self) -> str:
        """The node's name: setting, else NODE_NAME, else the host's. Raises UsageError for one that could not stand in a key."""
        name = self.node or os.environ.get("NODE_NAME") or socket.gethostname()
        if not re.fullmatch(_NAME, name):
            source = "NODE_NAME" if os.environ.get("NODE_NAME") else "the host's name"
            raise UsageError(f"{source} is {name!r}: letters, digits, '_', '.' and '-' only; set node in xpulse.yaml or XPULSE_NODE")
        return name

    def require_cluster(self) -> str:
        """The cluster's name. Raises UsageError where it is not set (the local stack sets it)."""
        if not self.cluster:
            raise UsageError("cluster is not set: name the cluster in xpulse.yaml (cluster: prod-a) or in XPULSE_CLUSTER")
        return self.cluster


def find_file(given: Path | None) -> Path | None:
    """The settings file: --config, else XPULSE_CONFIG, else the first of SEARCH that exists; None where there is none."""
    named = given or (Path(p) if (p := os.environ.get("XPULSE_CONFIG")) else None)
    if named is not None:
        if named.is_dir():
            raise UsageError(f"settings file {named} is a folder; give the file, as in {named / 'xpulse.yaml'}")
        if not named.exists():  # a pipe, as of <(...), is welcome
            raise UsageError(f"settings file {named} does not exist; write one with: xpulse config show > {named}")
        return named
    return next((path for path in SEARCH if path.is_file()), None)


def load(path: Path | None = None) -> Settings:
    """Read the file (see find_file) and the environment. Raises UsageError naming file or variable, key and remedy."""
    found = find_file(path)
    check_environment(os.environ)
    data = _read_yaml(found) if found else {}
    try:
        return Settings(**_without_empty(Settings, data))
    except ValidationError as error:
        raise UsageError(_explain(error, str(found) if found else "defaults", data)) from None
    except Exception as error:  # pydantic-settings' SettingsError: an environment value that is no JSON where JSON is due
        if type(error).__name__ != "SettingsError":
            raise
        raise UsageError(f"environment: {error}; lists and mappings are given as JSON") from None


def check_environment(environment: Mapping[str, str]) -> None:
    """Raise UsageError for an XPULSE_* variable that names no setting: a typing error must not be ignored silently."""
    known = {PREFIX + "__".join(p).upper() for p in paths(Settings)}
    open_ended = tuple(PREFIX + "__".join(p).upper() + "__" for p in free_mappings(Settings))
    for name in environment:
        upper = name.upper()
        if not upper.startswith(PREFIX) or upper in RESERVED or upper in known or upper.startswith(open_ended):
            continue
        near = difflib.get_close_matches(upper, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else "see: xpulse config show"
        raise UsageError(f"environment variable {name} names no setting; {hint}")


def paths(model: type[BaseModel]) -> list[tuple[str, ...]]:
    """Every key path of a settings model, sections included."""
    found: list[tuple[str, ...]] = []
    for name, field in model.model_fields.items():
        found.append((name,))
        if section := _section(field.annotation):
            found += [(name, *rest) for rest in paths(section)]
    return found


def free_mappings(model: type[BaseModel]) -> list[tuple[str, ...]]:
    """Key paths whose keys below are chosen by the user."""
    found: list[tuple[str, ...]] = []
    for name, field in model.model_fields.items():
        if section := _section(field.annotation):
            found += [(name, *rest) for rest in free_mappings(section)]
        elif "dict" in str(field.annotation).lower() or "mapping" in str(field.annotation).lower():
            found.append((name,))
    return found


def _section(annotation: Any) -> type[BaseModel] | None:
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_Unique)  # _Unique is a SafeLoader
    except yaml.MarkedYAMLError as error:  # without the text of the line, as YAML's own message has it: it may hold a secret
        at = f" in line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1}" if error.problem_mark else ""
        raise UsageError(f"{path} is not YAML{at}: {error.problem}") from None
    except yaml.YAMLError as error:  # a character that YAML does not have
        raise UsageError(f"{path} is not YAML: {str(error).splitlines()[0]}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start}); write one with: xpulse config show > {path}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise UsageError(f"{path}: the top must be a mapping of settings, this is a {type(data).__name__}")
    if odd := [key for key in data if not isinstance(key, str)]:
        raise UsageError(f"{path}: {odd[0]!r}: unknown key; keys here: {', '.join(Settings.model_fields)}")
    return data


class _Unique(yaml.SafeLoader):
    """Refuses a key given twice in one mapping: YAML's default is to forget the first."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys: set[str] = set()
        for key_node, _ in node.value:
            if isinstance(key_node, yaml.ScalarNode) and key_node.tag != "tag:yaml.org,2002:merge":
                if key_node.value in keys:
                    raise yaml.constructor.ConstructorError(None, None, f"key {key_node.value!r} is given twice", key_node.start_mark)
                keys.add(key_node.value)
        return super().construct_mapping(node, deep)


def _without_empty(model: type[BaseModel], data: dict[str, Any]) -> dict[str, Any]:
    """A section whose keys are all commented out (null in YAML) sets nothing."""
    found = {}
    for name, value in data.items():
        section = _section(field.annotation) if (field := model.model_fields.get(name)) else None
        if section is not None and value is None:
            continue
        found[name] = _without_empty(section, value) if section is not None and isinstance(value, dict) else value
    return found


def _explain(error: ValidationError, where: str, data: Mapping[str, Any]) -> str:
    """One line a problem: source, key, what is wrong, and what to do."""
    lines = []
    for problem in error.errors():
        location = [str(part) for part in problem["loc"]]
        key = ".".join(location)
        variable = PREFIX + "__".join(location).upper()
        source = f"environment variable {variable}" if _in_environment(variable) and not _in(data, location) else f"{where}: {key}"
        if problem["type"] == "extra_forbidden":
            section = _model_at(location[:-1])
            near = difflib.get_close_matches(location[-1], section.model_fields if section else (), n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"keys here: {', '.join(section.model_fields) if section else '-'}"
            lines.append(f"{source}: unknown key; {hint}")
        else:
            shown = f" (given: {problem['input']!r})" if _showable(key, problem["input"]) else ""
            lines.append(f"{source}: {problem['msg']}{shown}")
    return "\n".join(lines)


def _showable(key: str, given: object) -> bool:
    """Whether a bad value may be repeated: no secret, no section or list that may hold one, no address with a password in it."""
    private = any(word in key for word in ("secret", "password", "token", "headers"))
    return not private and isinstance(given, str | int | float | None) and "@" not in str(given)


def _in_environment(variable: str) -> bool:
    return variable in {name.upper() for name in os.environ}


def _in(data: Mapping[str, Any], location: list[str]) -> bool:
    here: Any = data
    for part in location:
        if not isinstance(here, Mapping) or part not in here:
            return False
        here = here[part]
    return True


def _model_at(location: list[str]) -> type[BaseModel] | None:
    model: type[BaseModel] | None = Settings
    for part in location:
        field = model.model_fields.get(part) if model else None
        model = _section(field.annotation) if field else None
    return model


__all__ = [
    "PREFIX",
    "RESERVED",
    "Health",
    "Logs",
    "Settings",
    "check_environment",
    "find_file",
    "free_mappings",
    "load",
    "paths",
]
