"""Makes the pictures of the guides from our simulator and the shipped detectors and models: `make pictures` writes docs/images/*.svg.

The same code makes the same bytes. `python -m docs.pictures NAME ...` makes only those.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click

from docs import pictures_detection, pictures_forecasting

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PICTURES: Final[dict[str, Callable[[], Path]]] = {**pictures_detection.PICTURES, **pictures_forecasting.PICTURES}


def main(names: list[str]) -> int:
    for name in names or PICTURES:
        if name not in PICTURES:
            click.echo(f"no picture {name!r}; there are: {', '.join(PICTURES)}", err=True)
            return 2
        path = PICTURES[name]()
        click.echo(f"{path.relative_to(path.parents[2])}: {path.stat().st_size / 1000:.0f} kB", err=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
