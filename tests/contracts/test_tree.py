"""Rules about every file: no machine's paths or registry hosts, no mocks, no module too long, no link into nothing."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.contracts.repository import ROOT, files, name, text

LONGEST_LINES = 400
GENERATED = re.compile(r"_pb2\.pyi?$|\.lock$|descriptor\.binpb$")

# Split, so that this file does not hold what it looks for.
HOSTS = [
    f"{site}.{top}"
    for top, sites in {
        "org": ("pypi", "pythonhosted", "npmjs", "proxy.golang", "repo1.maven", "repo.maven.apache", "deb.debian"),
        "io": ("docker", "quay", "ghcr", "gcr", "crates"),
    }.items()
    for site in sites
]
PATHS = re.compile(r"(?<![\w.$}/-])/(?:work|farm|root|home/(?!nonroot)\w+)/|/tmp/(?:bash|pytest)")

TEXTS = [(path, found) for path in files() if (found := text(path)) is not None]
PYTHON = [(path, found) for path, found in TEXTS if path.suffix == ".py" and not GENERATED.search(path.name)]
PAGES = [(path, found) for path, found in TEXTS if path.suffix == ".md"]


def test_there_is_something_to_look_at() -> None:
    assert len(PYTHON) > 100
    assert len(PAGES) > 30


def test_no_registry_host_is_named() -> None:
    assert [(name(path), host) for path, found in TEXTS for host in HOSTS if host in found] == []


def test_no_path_of_a_machine_is_named() -> None:
    assert [(name(path), match[0]) for path, found in TEXTS for match in PATHS.finditer(found)] == []


def test_no_module_is_longer_than_a_screenful_of_screens() -> None:
    long = {name(path): lines for path, found in PYTHON if (lines := found.count("\n")) > LONGEST_LINES}
    assert long == {}, f"split what is longer than {LONGEST_LINES} lines"


def test_every_module_says_what_it_is() -> None:
    ours = [(path, found) for path, found in PYTHON if found.strip() and not name(path).startswith("tests/")]
    assert [name(path) for path, found in ours if not ast.get_docstring(ast.parse(found))] == []


def test_nothing_is_mocked() -> None:
    words = ("unittest" + ".mock", "from unittest " + "import mock")
    assert [name(path) for path, found in PYTHON for word in words if word in found] == []


def anchors(page: str) -> set[str]:
    """GitHub's anchors of a page's headings."""
    headings = re.findall(r"^#+ +(.+)$", re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(path: Path, page: str) -> list[str]:
    """Links of a page that lead nowhere in this repository."""
    broken = []
    plain = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", plain):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = unquote(target).partition("#")
        there = (path.parent / file).resolve() if file else path
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there.read_text(encoding="utf-8"))):
            broken.append(target)
    return broken


@pytest.mark.parametrize(("path", "page"), PAGES, ids=[name(path) for path, _ in PAGES])
def test_links_lead_somewhere(path: Path, page: str) -> None:
    assert links(path, page) == []


def test_the_check_sees_a_broken_link(tmp_path: Path) -> None:
    page = "# A b\n[good](#a-b) [bad](none.md) [worse](#c) [out](https://example.com)\n"
    here = tmp_path / "page.md"
    here.write_text(page)
    assert links(here, page) == ["none.md", "#c"]


@pytest.mark.parametrize("text_", ["/wor" + "k/main", "see /roo" + "t/x", '"/hom' + 'e/me/x"'])
def test_the_check_sees_a_path(text_: str) -> None:
    assert PATHS.search(text_)


def test_the_root_has_what_people_look_for() -> None:
    for wanted in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "xpulse.yaml", "docker-compose.yml", ".env.example"):
        assert (ROOT / wanted).is_file(), wanted
