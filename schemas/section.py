"""The base of every settings model: frozen, no unknown key, each setting documented where it is declared."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """One part's settings; a docstring below each field is its documentation."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
