"""The base of every settings model: frozen, no unknown key, each setting documented where it is declared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import SecretStr


class Section(BaseModel):
    """One part's settings; a docstring below each field is its documentation."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def resolve_secret(name: str, value: SecretStr | None, file: Path | None) -> str:
    """The secret `name`, from its own setting or from the file in `<name>_file`; "" where neither is set.

    Raises ValueError where both are set, or where the file cannot be read or is empty; the message never holds the secret.
    """
    if value is not None and file is not None:
        raise ValueError(f"{name} and {name}_file are both set: keep one")
    if file is None:
        return value.get_secret_value() if value is not None else ""
    try:
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{name}_file {file}: {error}; give a readable text file that holds only the secret") from None
    if not text:
        raise ValueError(f"{name}_file {file} is empty")
    return text
