"""The generated parts of the documentation, each a function of the code: tables of roles, verbs, metrics, topics, store and rules."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import click
from pydantic import BaseModel

from docs.words import bounds, condition, seconds
from schemas.catalogue import CATALOGUE
from schemas.telemetry import v1
from schemas.topics import TOPICS
from sinks.measurements import MEASUREMENTS
from streams.rules.load import load_rules
from streams.rules.model import Rule
from xpulse.cli.main import VERBS
from xpulse.cli.main import command as cli
from xpulse.document import HEAD, render
from xpulse.roles import ROLES
from xpulse.run.report import SELF_METRICS

_DAY_MS: Final = 86_400_000


def block(name: str) -> str:
    """The text of one part; `rule NAME` and `plugin NAME` take an argument. KeyError for a name that is not made here."""
    word, _, argument = name.partition(" ")
    try:
        return _ARGUED[word](argument) if argument else _PLAIN[name]()
    except KeyError as error:
        known = sorted([*_PLAIN, *(f"{word} NAME" for word in _ARGUED)])
        raise KeyError(f"no generated part {name!r} ({error}); there are: {', '.join(known)}") from None


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; a bar within a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _roles() -> str:
    return table(
        ["role", "command", "port", "what it does"],
        ([_code(r.name), _code("xpulse " + " ".join(r.command)), str(r.port), r.meaning] for r in ROLES),
    )


def _self_metrics() -> str:
    return table(["name", "kind", "meaning"], ([_code(n), kind, meaning] for n, (kind, meaning) in SELF_METRICS.items()))


def commands() -> list[tuple[str, click.Command]]:
    """Every command there is, groups left out, by its words: ("topics create", ...)."""
    found: list[tuple[str, click.Command]] = []

    def walk(words: str, command: click.Command) -> None:
        if isinstance(command, click.Group):
            if command.invoke_without_command:
                found.append((words, command))
            for name in command.list_commands(click.Context(command)):
                if (inner := command.get_command(click.Context(command), name)) is not None:
                    walk(f"{words} {name}".strip(), inner)
        else:
            found.append((words, command))

    for verb in VERBS:
        walk(verb, importlib.import_module(f"xpulse.cli.{verb}").command)
    return found


def _verbs() -> str:
    common = "\n".join(_option(p) for p in cli.params if isinstance(p, click.Option) and p.name != "version")
    return f"Before every verb:\n\n{common}\n\n" + "\n\n".join(_verb(words, command) for words, command in commands())


def _verb(words: str, command: click.Command) -> str:
    arguments = [_argument(p) for p in command.params if isinstance(p, click.Argument)]
    options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
    usage = " ".join(["xpulse", words, *(["[OPTIONS]"] if options else []), *arguments])
    said = (command.help or "").partition("\b")[0].split("\n\n")[0]
    lines = [f"#### `{usage}`", "", " ".join(said.split())]
    if options:
        lines += ["", *(_option(p) for p in options)]
    return "\n".join(lines)


def _argument(argument: click.Argument) -> str:
    name = argument.human_readable_name
    if isinstance(argument.type, click.Choice):
        name = "|".join(map(str, argument.type.choices))
    name = f"[{name}]" if not argument.required else name
    return name.removesuffix("...") + ("..." if argument.nargs != 1 else "")


def _option(option: click.Option) -> str:
    takes = "" if option.is_flag else f" {option.metavar or option.type.name.upper()}"
    if isinstance(option.type, click.Choice):
        takes = " " + "|".join(map(str, option.type.choices))
    names = ", ".join([*option.opts, *option.secondary_opts])
    return f"* `{names}{takes}`: {option.help or ''}"


def _metrics() -> str:
    rows = (
        [
            _code(m.name),
            m.unit,
            m.kind,
            m.cadence,
            seconds(m.max_age_ns / 1e9),
            bounds(m.minimum, m.maximum),
            _code(m.otel_name),
            _code(m.prometheus_name + ("_total" if m.kind == "counter" else "")),
            m.meaning + (" Whole board." if m.board_level else ""),
        ]
        for m in CATALOGUE
    )
    return table(["metric", "unit", "kind", "cadence", "held for", "valid range", "OpenTelemetry", "Prometheus", "meaning"], rows)


def _throttle_reasons() -> str:
    return table(
        ["bit", "reason"], ([str(n), _code(name.removeprefix("THROTTLE_REASON_").lower())] for name, n in v1.ThrottleReason.items())
    )


def _absence_reasons() -> str:
    return ", ".join(_code(n.removeprefix("ABSENCE_REASON_").lower()) for n, number in v1.AbsenceReason.items() if number)


def _topics() -> str:
    rows = (
        [
            _code(t.name),
            t.key,
            _code(t.message.DESCRIPTOR.name) if t.message else "–",
            "node count" if t.partitions is None else str(t.partitions),
            "compacted" if t.retention_ms is None else f"{t.retention_ms / _DAY_MS:g} d",
            "append" if t.append_time else "create",
            ", ".join(t.writers) or "–",
            ", ".join(t.readers) or "–",
            t.meaning,
        ]
        for t in TOPICS
    )
    return table(["topic", "key", "value", "partitions", "kept", "time", "written by", "read by", "what it holds"], rows)


def _store() -> str:
    parts = []
    for m in MEASUREMENTS.values():
        fields = table(
            ["field", "type", "written", "unit", "meaning"], ([_code(f.name), f.type, f.when, f.unit, f.meaning] for f in m.fields)
        )
        parts.append(f"### `{m.name}`\n\n{m.meaning}\n\nTags: {', '.join(map(_code, m.tags))}\n\n{fields}")
    return "\n\n".join(parts)


def _rules() -> str:
    rows = (
        [
            f"[{r.name}](../runbooks/{r.name}.md)",
            r.severity + (" (shadow)" if r.mode == "shadow" else ""),
            condition(r.when),
            seconds(r.hold_seconds),
            seconds(r.clear_seconds),
            r.meaning,
        ]
        for r in load_rules()
    )
    return table(["rule", "severity", "when", "held", "clear", "meaning"], rows)


def _rule(name: str) -> str:
    rule: Rule = {r.name: r for r in load_rules()}[name]
    shadow = ", shadow: evaluated and stored, nobody is told" if rule.mode == "shadow" else ""
    hold = f"after {seconds(rule.hold_seconds)}" if rule.hold_seconds else "at once"
    beside = f" It is not raised while {' or '.join(f'`{name}`' for name in rule.unless)} stands for the device." if rule.unless else ""
    clear = f"after {seconds(rule.clear_seconds)} without it" if rule.clear_seconds else "as soon as it ends"
    return (
        f"**{rule.meaning}** Severity {rule.severity}{shadow}, about a {rule.entity}.\n\n"
        f"Condition: {condition(rule.when)}. It fires {hold} and resolves {clear}.{beside}"
    )


def _plugin(name: str) -> str:
    from collectors.dcgm.settings import Dcgm
    from collectors.kernel.settings import Kernel
    from collectors.nvidia.settings import Nvidia
    from collectors.simulated.settings import Simulated

    models: dict[str, type[BaseModel]] = {"nvidia": Nvidia, "kernel": Kernel, "dcgm": Dcgm, "simulated": Simulated}
    text = render(models[name], models[name]()).removeprefix(HEAD).strip()
    lines = ["collectors:", "  plugins:", f"    {name}:", "      settings:"]
    return "```yaml\n" + "\n".join(lines + [f"        {line}" if line else "" for line in text.splitlines()]) + "\n```"


_PLAIN: Final[dict[str, Callable[[], str]]] = {
    "roles": _roles,
    "self-metrics": _self_metrics,
    "verbs": _verbs,
    "metrics": _metrics,
    "throttle-reasons": _throttle_reasons,
    "absence-reasons": _absence_reasons,
    "topics": _topics,
    "store": _store,
    "rules": _rules,
}
_ARGUED: Final[dict[str, Callable[[str], str]]] = {"rule": _rule, "plugin": _plugin}
