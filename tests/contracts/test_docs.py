"""The documentation says what the code does: generated parts are current, and every name that must be documented is."""

from __future__ import annotations

import re
import shlex
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from collectors.simulated.faults import FAULT_NAMES, parse_fault
from docs import blocks, generate
from schemas.catalogue import CATALOGUE
from schemas.topics import TOPICS
from sinks.measurements import MEASUREMENTS
from streams.rules.load import DEFAULT_RULES, load_rules
from streams.rules.model import WORDS
from tests.contracts.repository import ROOT, files, name, text
from tests.contracts.test_compose import parse, resolve
from xpulse.cli.main import VERBS
from xpulse.roles import ROLES
from xpulse.run.report import SELF_METRICS

DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"


def page(path: str) -> str:
    return (DOCS / path).read_text(encoding="utf-8")


def test_generated_parts_and_the_settings_file_are_current() -> None:
    assert [name(path) for path in generate.stale()] == [], "run: python -m docs.generate"


def test_filling_a_page_twice_changes_nothing() -> None:
    once = generate.filled("# A\n\n<!-- generated: roles -->\nold\n<!-- end -->\n")
    assert "old" not in once
    assert generate.filled(once) == once


def test_an_unknown_part_is_an_error() -> None:
    with pytest.raises(KeyError, match="no generated part 'colours'"):
        generate.filled("<!-- generated: colours -->\n<!-- end -->")


def test_every_plain_part_is_on_a_page() -> None:
    used = {part for path in generate.pages() for part in generate.parts(path.read_text(encoding="utf-8"))}
    assert set(blocks._PLAIN) <= used


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("roles.md", [role.name for role in ROLES]),
        ("roles.md", [str(role.port) for role in ROLES]),
        ("roles.md", list(SELF_METRICS)),
        ("roles.md", [f"xpulse {verb}" for verb in VERBS]),
        ("roles.md", [f"xpulse {words}" for words, _ in blocks.commands()]),
        ("metrics.md", [metric.name for metric in CATALOGUE]),
        ("topics.md", [topic.name for topic in TOPICS]),
        ("store.md", list(MEASUREMENTS)),
        ("rules.md", [rule.name for rule in load_rules()]),
        ("rules.md", sorted(WORDS)),
        ("faults.md", list(FAULT_NAMES)),
    ],
    ids=["roles", "ports", "self-metrics", "verbs", "subcommands", "metrics", "topics", "store", "rules", "words", "faults"],
)
def test_each_name_is_documented(file: str, names: list[str]) -> None:
    said = page(f"reference/{file}")
    assert [word for word in names if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", said)] == []


def test_no_fault_is_documented_that_is_not_there() -> None:
    table = page("reference/faults.md").partition("## Scopes")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(FAULT_NAMES)


def test_rules_named_with_the_faults_exist() -> None:
    rows = re.findall(r"^\| `\w+` \|.*\| (.*) \|$", page("reference/faults.md").partition("## Scopes")[0], re.MULTILINE)
    rules = {rule.name for rule in load_rules()}
    assert {word for row in rows for word in re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", row)} - rules - {"driver_hang"} == set()


RUNBOOKS = sorted((DOCS / "runbooks").glob("*.md"))


def test_every_rule_has_a_runbook_and_none_is_orphaned() -> None:
    assert {path.stem for path in RUNBOOKS} == {rule.name for rule in load_rules()}


@pytest.mark.parametrize("rule", load_rules(), ids=lambda rule: rule.name)
def test_the_rule_names_its_runbook(rule) -> None:  # type: ignore[no-untyped-def]  # ids need the value, the type says nothing here
    assert rule.runbook == f"docs/runbooks/{rule.name}.md"


@pytest.mark.parametrize("path", RUNBOOKS, ids=lambda path: path.stem)
def test_a_runbook_has_its_four_answers(path: Path) -> None:
    said = path.read_text(encoding="utf-8")
    assert generate.parts(said) == [f"rule {path.stem}"]
    assert re.findall(r"^## (.+)$", said, re.MULTILINE) == ["What it means", "Likely causes", "What to do", "How it clears"]


def commands() -> list[tuple[str, str]]:
    """Every `xpulse …` that a page tells people to type, with its page; placeholders and options in brackets are prose."""
    found = []
    for path in files():
        if path.suffix != ".md" or (said := text(path)) is None:
            continue
        said = re.sub(r"<!-- generated: verbs -->.*?<!-- end -->", "", said, flags=re.DOTALL)
        typed = re.findall(r"^\$ (xpulse .+)$", said, re.MULTILINE) + re.findall(r"`(xpulse [^`\n]+)`", said)
        found += [
            (name(path), command.partition(" #")[0].strip()) for command in typed if not re.search(r"[\[<|…]|NAME|ROLE|TOPIC\b", command)
        ]
    return found


COMMANDS = commands()


@pytest.mark.parametrize(("where", "command"), COMMANDS, ids=[f"{where}: {command}" for where, command in COMMANDS])
def test_what_a_page_says_to_type_can_be_typed(where: str, command: str) -> None:
    words = [word for word in shlex.split(command)[1:] if word != "--help"]
    _, rest = resolve(words)
    if not rest:  # a verb by its name
        return
    parse(words)
    if words[0] == "query":
        fields = [word for word in words[2:] if not word.startswith("-")]
        until = next((i for i, word in enumerate(words[2:]) if word.startswith("-")), len(words))
        assert set(fields[:until]) <= set(MEASUREMENTS[words[1]].types)  # type: ignore[index]  # parse has checked the choice
    for flag, value in pairwise(words):
        if flag == "--fault":
            parse_fault(value)


def test_there_are_commands_to_check() -> None:
    assert len(COMMANDS) > 30


def test_the_dependencies_are_those_of_the_decision() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    wanted = {re.split(r"[<>=!~\[; ]", line)[0] for line in asked}
    listed = re.findall(r"^\| `([\w-]+)` \|", page("adr/0002-runtime-dependencies.md"), re.MULTILINE)
    assert sorted(listed) == sorted(wanted)


def test_decisions_are_listed_and_have_their_parts() -> None:
    index = page("adr/README.md")
    for path in sorted((DOCS / "adr").glob("0*.md")):
        assert path.name in index
        assert re.findall(r"^## (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE) == [
            "Context",
            "Decision",
            "Consequences",
            "Alternatives",
        ]


def test_the_number_of_rules_in_the_readme_is_right() -> None:
    count = len(load_rules(DEFAULT_RULES))
    assert f"[{count} of them]" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_names_real_make_targets() -> None:
    targets = set(re.findall(r"^([a-z-]+%?):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for file in ("README.md", "CONTRIBUTING.md", "docs/guide/first-alert.md"):
        said = set(re.findall(r"(?:`|^\$ )make ([a-z-]+)", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE))
        benches = {name for name in said if name.startswith("bench-") and (ROOT / "bench" / f"{name[6:]}.py").is_file()}
        assert said - benches <= targets, file
