"""The guide's page on the plugin has every setting with its default, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from collectors.nvidia.settings import Nvidia

PAGE = Path(__file__).parents[4] / "docs" / "guide" / "plugins" / "nvidia.md"


def shown(default: object) -> str:
    return "" if default in (None, "") else f"`{str(default).lower() if isinstance(default, bool) else default}`"


def test_the_page_names_every_setting_with_its_default() -> None:
    table = PAGE.read_text().partition("## Settings")[2]
    rows = dict(re.findall(r"^\| `(\w+)` \| ?(.*?) \| ", table, re.MULTILINE))
    assert {name: default.strip() for name, default in rows.items()} == {
        name: shown(field.default) for name, field in Nvidia.model_fields.items()
    }
