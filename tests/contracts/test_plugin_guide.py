"""The plugin of docs/guide/add-a-plugin.md works as printed: it is found by its entry point and passes the conformance of all plugins."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from collectors.contract import Plugin, Unavailable
from collectors.registry import Misconfigured, installed, make
from tests.conformance import test_plugins as conformance
from tests.conformance.test_plugins import (
    ENV,
    ready,
    samples,
    test_after_close_it_can_be_probed_again,
    test_counters_do_not_fall,
    test_each_sample_carries_its_identity,
    test_every_field_is_a_value_or_an_absence_and_never_both,
    test_it_speaks_this_contract,
    test_past_the_deadline_it_comes_back_at_once_with_every_device_listed,
    test_probe_names_each_device_once_and_may_be_called_again,
    test_read_gives_the_probed_devices,
    test_readings_are_dated_and_go_forward,
    test_slow_fields_come_only_when_due,
    test_what_it_reads_can_be_published_and_decoded,
)

__all__ = [
    "ready",
    "test_after_close_it_can_be_probed_again",
    "test_counters_do_not_fall",
    "test_each_sample_carries_its_identity",
    "test_every_field_is_a_value_or_an_absence_and_never_both",
    "test_it_speaks_this_contract",
    "test_past_the_deadline_it_comes_back_at_once_with_every_device_listed",
    "test_probe_names_each_device_once_and_may_be_called_again",
    "test_read_gives_the_probed_devices",
    "test_readings_are_dated_and_go_forward",
    "test_slow_fields_come_only_when_due",
    "test_what_it_reads_can_be_published_and_decoded",
]

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "add-a-plugin.md"
_BLOCK = re.compile(r"^```(text|toml|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCKS: dict[str, str] = dict(_BLOCK.findall(GUIDE.read_text(encoding="utf-8")))
NAME = "cardfile"


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """`module:attribute` of the guide's plugin, found among the installed ones as the agent finds it."""
    project = tomllib.loads(BLOCKS["toml"])["project"]
    ((group, points),) = project["entry-points"].items()
    info = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()))
    (tmp_path / "xpulse_cardfile.py").write_text(BLOCKS["python"])
    monkeypatch.syspath_prepend(str(tmp_path))
    found = installed()[NAME]
    assert found.distribution == project["name"]
    yield found.target
    sys.modules.pop("xpulse_cardfile", None)


@pytest.fixture
def plugin(target: str, tmp_path: Path) -> Plugin:
    cards = tmp_path / "cards.txt"
    cards.write_text(BLOCKS["text"])
    return make(target, {"path": str(cards)}, ENV)


def test_units_are_the_catalogues(plugin: Plugin) -> None:
    first, second = samples(conformance.read(plugin))
    assert (first.temperature_celsius, first.power_watts, first.memory_used_bytes) == (61.0, 212.5, 8123 * 1024**2)
    assert "power_watts" in conformance.absent(second)


def test_a_missing_file_is_unavailable_with_its_remedy(target: str, tmp_path: Path) -> None:
    found = make(target, {"path": str(tmp_path / "none")}, ENV).probe()
    assert isinstance(found, Unavailable)
    assert "set path" in found.reason


def test_a_wrong_key_is_named(target: str) -> None:
    with pytest.raises(Misconfigured, match="pth"):
        make(target, {"pth": "x"}, ENV)
