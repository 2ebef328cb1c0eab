"""file_sd as Prometheus reads it, and files that change or break while they are read."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.dcgm.discovery import Files, Target, targets

GROUPS = [
    {"targets": ["10.0.0.1:9400", "10.0.0.2:9400"], "labels": {"node": "a", "cluster": "west"}},
    {"targets": ["gpu-3:9401"], "labels": {"__scheme__": "https", "__metrics_path__": "dcgm", "instance": "gpu-3"}},
    {"targets": ["http://gpu-4:1/m"]},
]
FOUND = (
    Target("http://10.0.0.1:9400/metrics", "a", "west"),
    Target("http://10.0.0.2:9400/metrics", "a", "west"),
    Target("https://gpu-3:9401/dcgm", fallback="gpu-3"),
    Target("http://gpu-4:1/m"),
)


def test_json_and_yaml_say_the_same() -> None:
    assert targets(json.dumps(GROUPS), yaml_text=False) == FOUND
    assert targets(json.dumps(GROUPS), yaml_text=True) == FOUND
    assert targets("", yaml_text=True) == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is no JSON"),
        ("{}", "is not a list"),
        ("[1]", "group 1"),
        ('[{"targets": "x"}]', "group 1 has no list"),
        ('[{"targets": [], "labels": []}, {"targets": ["a b:1"]}]', "group 2"),
        ('[{"targets": ["u:p@x"]}]', "no password"),
        ('[{"targets": ["x"], "labels": {"node": "a/b"}}]', "is no name"),
        (json.dumps([{"targets": [f"h{n}:1" for n in range(5001)]}]), "more than 5000"),
    ],
)
def test_what_is_wrong_is_said(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        targets(text, yaml_text=False)


@settings(max_examples=50)
@given(st.text(max_size=60) | st.recursive(st.none() | st.integers() | st.text(max_size=5), st.lists).map(json.dumps), st.booleans())
def test_no_text_raises_anything_else(text: str, yaml_text: bool) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(targets(text, yaml_text=yaml_text), tuple)


def test_files_are_read_again_when_they_change(tmp_path: Path) -> None:
    files = Files((str(tmp_path / "*.json"), str(tmp_path / "more.yml")))
    assert files.look() == ()
    assert set(files.problems.values()) == {"no such file"}
    one = tmp_path / "one.json"
    one.write_text('[{"targets": ["a:1"]}]')
    (tmp_path / "more.yml").write_text("- targets: [b:1, a:1]\n  labels: {node: n}\n")
    assert files.look() == (Target("http://a:1/metrics"), Target("http://b:1/metrics", "n"))
    assert files.problems == {}
    one.write_text("[")
    assert files.look() == (Target("http://a:1/metrics"), Target("http://b:1/metrics", "n"))
    assert "is no JSON" in files.problems[str(one)]
    assert "is no JSON" in (files.look(), files.problems[str(one)])[1], "as long as it is broken"
    one.unlink()
    assert [target.url for target in files.look()] == ["http://b:1/metrics", "http://a:1/metrics"]


def test_an_unchanged_file_is_not_read_again(tmp_path: Path) -> None:
    one = tmp_path / "one.json"
    one.write_text('[{"targets": ["a:1"]}]')
    os.utime(one, ns=(1, 1))
    files = Files((str(one),))
    before = files.look()
    one.write_text('[{"targets": ["b:1"]}]')
    os.utime(one, ns=(1, 1))
    assert files.look() == before
    os.utime(one, ns=(2, 2))
    assert files.look() != before
