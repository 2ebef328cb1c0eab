"""Patterns that can hang on one line are refused, whatever way they are written; those that cannot are not."""

from __future__ import annotations

import pytest

from collectors.kernel.careless import careless
from collectors.kernel.lines import shipped


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+b",
        "(?:a*)*b",
        "((a|b)*)*",
        "(a|aa)+b",
        "(?:.*,)*x",
        "(?P<detail>[a-z]+ )+x",
        "(a?a?)*b",
        r"(\w+\s*){2,}x",
        "(?:(?:a)+x)*b",
        "(a{1,5}){9}b",
        "(a+){1,9}b",
        "(?i:a+)+b",
        "(a+)+?b",
    ],
)
def test_repeated_groups_that_fit_in_several_ways(pattern: str) -> None:
    assert "for ever" in careless(pattern)


def test_wildcards_without_number() -> None:
    assert careless(r".*a\S+b[^c]*d.+e") != ""
    assert careless(r".*a\S+b[^c]*d") == ""


@pytest.mark.parametrize(
    "pattern",
    [r"(abc)+", r"(?:\[ *[0-9.]+\] ?)?x", r"a\(b+\)+c", r"[(+)]+x", r"(?P<code>[0-9]{1,6})x", r"[]a+)]+(x)", r"(a+)?b", r"(a+){1}", "a+b+"],
)
def test_what_is_well_is_let_be(pattern: str) -> None:
    assert careless(pattern) == ""


def test_ours_are_well() -> None:
    assert {name: why for name, rule in shipped().items() if (why := careless(rule.pattern.format(bdf="")))} == {}
