"""Reads rules from YAML; whatever is wrong is said at once, with file, rule, key and remedy."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError

from streams.rules.model import Rule

DEFAULT_RULES: Final = Path(__file__).with_name("default.yaml")


class RulesError(ValueError):
    """A rules file that cannot be used; the message lists every fault."""


def load_rules(path: Path | None = None) -> tuple[Rule, ...]:
    """The rules of a file, or the built-in ones.

    Raises RulesError where the file cannot be read, is not a mapping with the one key `rules`, repeats a key or a name, or holds a
    rule that is not valid.
    """
    file = DEFAULT_RULES if path is None else path
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RulesError(f"{file}: cannot be read ({error}); set streams.detect.rules to a readable YAML file or leave it empty") from None
    try:
        document = yaml.load(text, Loader=_Unique)  # _Unique is a SafeLoader
    except yaml.YAMLError as error:
        raise RulesError(f"{file}: not valid YAML: {' '.join(str(error).split())}") from None
    return parse_rules(document, str(file))


def parse_rules(document: Any, file: str) -> tuple[Rule, ...]:
    """The rules of a parsed document; `file` is only for the messages. Raises RulesError."""
    if not isinstance(document, dict) or set(document) != {"rules"} or not isinstance(document["rules"], list):
        raise RulesError(f"{file}: must be a mapping with the one key `rules`, a list")
    rules: list[Rule] = []
    faults: list[str] = []
    for number, row in enumerate(document["rules"], start=1):
        name = row.get("name") if isinstance(row, dict) else None
        where = f"{file}: rule {name!r}" if isinstance(name, str) else f"{file}: rule number {number}"
        if not isinstance(row, dict):
            faults.append(f"{where}: must be a mapping of keys, not {type(row).__name__}")
            continue
        try:
            rule = Rule.model_validate(row)
        except ValidationError as error:
            faults += [f"{where}: {_said(fault)}" for fault in error.errors()]
            continue
        if any(rule.name == other.name for other in rules):
            faults.append(f"{where}: key name: used twice; give one of them another name")
        rules.append(rule)
    names = {rule.name for rule in rules}
    for rule in rules:
        for name in rule.unless:
            if name not in names or name == rule.name:
                near = difflib.get_close_matches(name, names - {rule.name}, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                faults.append(f"{file}: rule {rule.name!r}: key unless: no other rule {name!r}{hint}")
    if faults:
        raise RulesError("\n".join(faults))
    return tuple(rules)


def _said(fault: Any) -> str:
    """One pydantic fault in our words; the tag of the union is not part of the key."""
    path = [str(p) for i, p in enumerate(fault["loc"]) if not (i == 1 and fault["loc"][0] == "when")]
    key = ".".join(path)
    match fault["type"]:
        case "extra_forbidden":
            near = difflib.get_close_matches(path[-1], Rule.model_fields, n=1)
            return f"key {key}: unknown; " + (
                f"did you mean {near[0]}?" if near and len(path) == 1 else "remove it or correct its spelling"
            )
        case "missing":
            return f"key {key}: missing; add it"
        case "union_tag_not_found":
            return f"key {key}.type: missing; add it, one of {fault['ctx'].get('discriminator', '')} above, below, equals, ..."
        case "union_tag_invalid":
            return f"key {key}.type: {fault['ctx']['tag']!r} is not known; one of {fault['ctx']['expected_tags']}"
        case "value_error":
            return f"key {key or 'when'}: {fault['ctx']['error']}"
        case _:
            return f"key {key}: {fault['msg']}; it is {str(fault['input'])[:80]!r}"


class _Unique(yaml.SafeLoader):
    """Refuses a key given twice in one mapping: YAML's default is to forget the first."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in keys:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is given twice", key_node.start_mark)
            keys.add(key)
        return super().construct_mapping(node, deep)
