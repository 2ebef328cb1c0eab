"""Settings that pages show are settings: variables exist, and each YAML example loads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.contracts.repository import files, name, text
from xpulse.settings import RESERVED, check_environment, load

PAGES = [(path, found) for path in files() if path.suffix in (".md", ".yml", ".example") and (found := text(path)) is not None]
VARIABLES = sorted({(name(path), word) for path, found in PAGES for word in re.findall(r"\bXPULSE_[A-Z0-9_]*[A-Z0-9]\b", found)})
EXAMPLES = [
    pytest.param(block, id=f"{name(path)} {number}")
    for path, found in PAGES
    if path.suffix == ".md"
    for number, block in enumerate(re.findall(r"^```yaml\n(.*?)^```", found, re.MULTILINE | re.DOTALL), 1)
]


@pytest.mark.parametrize(("page", "variable"), VARIABLES, ids=[f"{page} {variable}" for page, variable in VARIABLES])
def test_a_variable_on_a_page_is_a_setting(page: str, variable: str) -> None:
    if variable not in RESERVED:
        check_environment({variable: "x"})


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_settings_example_loads(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "xpulse.yaml").write_text(example, encoding="utf-8")
    load()


def test_there_is_something_to_check() -> None:
    assert len(VARIABLES) > 10
    assert len(EXAMPLES) >= 3
