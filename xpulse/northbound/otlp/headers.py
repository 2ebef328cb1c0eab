"""The headers of a request: from the settings, and from a file that is read anew each time because tokens expire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xpulse.northbound.otlp.settings import check_header

if TYPE_CHECKING:
    from pathlib import Path

    from xpulse.northbound.otlp.settings import Otlp

_MOST_BYTES: Final = 64 * 1024


def of(settings: Otlp) -> dict[str, str]:
    """Lower-case names and their values; the file's win. Raises ValueError naming file and line of what is wrong, never a value."""
    found = {name.lower(): value.get_secret_value() for name, value in settings.headers.items()}
    return found | (_of_file(settings.headers_file) if settings.headers_file else {})


def _of_file(path: Path) -> dict[str, str]:
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_MOST_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ValueError(f"headers_file {path} cannot be read: {said}; one `name: value` a line") from None
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, colon, value = line.partition(":")
        if not colon:
            raise ValueError(f"headers_file {path}, line {number}: no colon; one `name: value` a line")
        try:
            check_header(name.strip(), value.strip())
        except ValueError as error:
            raise ValueError(f"headers_file {path}, line {number}: {error}") from None
        found[name.strip().lower()] = value.strip()
    return found
