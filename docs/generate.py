"""Fills the generated parts of the documentation from the code: `python -m docs.generate`, or `--check` to only say what is stale.

A part stands between `<!-- generated: NAME -->` and `<!-- end -->`; docs/blocks.py makes the text of each NAME.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

from docs.blocks import block

ROOT: Final = Path(__file__).resolve().parent.parent
SETTINGS: Final = ROOT / "xpulse.yaml"
_PART: Final = re.compile(r"(?P<head><!-- generated: (?P<name>[^>]+?) -->\n)(?P<body>.*?)(?P<tail><!-- end -->)", re.DOTALL)


def filled(text: str) -> str:
    """A page with every generated part as the code has it now. Raises KeyError for a part nobody makes."""
    return _PART.sub(lambda match: f"{match['head']}\n{block(match['name']).strip()}\n\n{match['tail']}", text)


def parts(text: str) -> list[str]:
    """Names of the generated parts of a page."""
    return [match["name"] for match in _PART.finditer(text)]


def pages() -> list[Path]:
    """Every page of the documentation."""
    return sorted((ROOT / "docs").rglob("*.md"))


def settings_file() -> str:
    """What xpulse.yaml has to hold: the output of `xpulse config show`."""
    from xpulse.document import render
    from xpulse.settings import Settings

    return render(Settings)


def stale() -> dict[Path, str]:
    """Files that are not as the code would make them, with what they have to hold."""
    wanted = {page: filled(page.read_text(encoding="utf-8")) for page in pages()} | {SETTINGS: settings_file()}
    return {path: text for path, text in wanted.items() if not path.is_file() or path.read_text(encoding="utf-8") != text}


def main(arguments: list[str]) -> int:
    """0 when all is current (or was made so), 1 when `--check` found something stale, 2 for wrong use."""
    if set(arguments) - {"--check"}:
        sys.stderr.write("use: python -m docs.generate [--check]\n")
        return 2
    found = stale()
    for path, text in found.items():
        sys.stderr.write(f"{path.relative_to(ROOT)}: {'stale; run python -m docs.generate' if arguments else 'written'}\n")
        if not arguments:
            path.write_text(text, encoding="utf-8")
    return 1 if found and arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
