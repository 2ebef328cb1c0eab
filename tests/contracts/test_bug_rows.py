"""Every row of the three lists of other people's bug reports is held by tests that exist, or says honestly why it is not."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ROWS: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "tests" / "data" / "bug_rows.yaml").read_text(encoding="utf-8"))
REFERENCE = ROOT.parent / "shared" / "reference"
COVERED = {row: said["tests"] for row, said in ROWS.items() if "tests" in said}


@cache
def named_in(path: str) -> frozenset[str]:
    """Names of the test functions of a file, found without running it; those that are always skipped are none."""
    file = ROOT / path
    tree = ast.parse(file.read_text(encoding="utf-8")) if file.is_file() else ast.Module([], [])
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and not any("mark.skip(" in ast.unparse(decorator) or "xfail" in ast.unparse(decorator) for decorator in node.decorator_list)
    )


@pytest.mark.parametrize("row", COVERED)
def test_the_tests_of_a_row_exist(row: str) -> None:
    missing = [test for test in COVERED[row] if test.partition("::")[2] not in named_in(test.partition("::")[0])]
    assert missing == [], f"{row} names tests that are not there; name those that took their place in tests/data/bug_rows.yaml"
    assert len(set(COVERED[row])) == len(COVERED[row]) > 0


def test_a_row_without_tests_says_why() -> None:
    silent = [row for row, said in ROWS.items() if not said.keys() & {"tests", "later", "not_nvidia"}]
    assert silent == []
    assert {key for said in ROWS.values() for key in said} <= {"about", "tests", "later", "not_nvidia"}
    assert [row for row, said in ROWS.items() if not all(str(said.get(key, "x")).strip() for key in ("about", "later", "not_nvidia"))] == []


def test_a_test_that_names_a_row_is_in_the_table() -> None:
    """So that the table shows all that holds a row: a name like test_d48_... is listed under D48, test_row_20_... under A20."""
    listed = {test for tests in COVERED.values() for test in tests}
    forgotten = []
    for path in (ROOT / "tests").rglob("test_*.py"):
        where = path.relative_to(ROOT).as_posix()
        for name in named_in(where) if "bug_reports" in where or path.name == "test_bug_rows.py" else ():
            number = re.match(r"test_(d|row_)(\d+)_", name)
            row = number and f"{'D' if number[1] == 'd' else 'A'}{number[2]}"
            if row in ROWS and f"{where}::{name}" not in listed:
                forgotten.append(f"{where}::{name}")
    assert forgotten == []


def rows_of(text: str, letter: str, pattern: str) -> set[str]:
    return {f"{letter}{number}" for number in re.findall(pattern, text, re.MULTILINE)}


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="shared/reference is not here")
def test_no_row_is_left_out() -> None:
    peers = (REFERENCE / "peers.md").read_text(encoding="utf-8")
    reports = peers[peers.index("\n# D. ") : peers.index("\n# E. ")]
    accelerators = (REFERENCE / "accelerators.md").read_text(encoding="utf-8")
    regressions = accelerators[accelerators.index("\n## 23. ") : accelerators.index("\n## 24. ")]
    analytics = (REFERENCE / "analytics.md").read_text(encoding="utf-8")
    bugs = analytics[analytics.index("\n## 6. ") : analytics.index("\nGPU signals\n")]
    wanted = rows_of(reports, "D", r"(?:^|\. )(\d{1,2})\. \*\*") | rows_of(regressions, "S", r"^(\d{1,2})\. ")
    wanted |= rows_of(bugs, "A", r"(?:^|\. )(\d{1,2})\. (?=\[|[A-Za-z])")
    assert len(wanted) > 100
    assert set(ROWS) == wanted
