"""Plugins are found by entry point, and every mistake is named with its remedy."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from collectors.contract import GROUP, Env
from collectors.registry import Misconfigured, Registered, chosen, installed, load, make
from collectors.settings import Collectors, PluginSettings
from schemas.identity import NodeRef

ENV = Env(NodeRef("c", "n"), "boot", "0", 10**9)
FAKES = "tests.fakes.plugins"


class Dist:
    def __init__(self, name: str) -> None:
        self.name = name


def point(name: str, value: str, dist: str) -> EntryPoint:
    made = EntryPoint(name, value, GROUP)
    vars(made)["dist"] = Dist(dist)
    return made


def test_the_built_in_plugins_use_the_same_door() -> None:
    assert installed()["nvidia"].target == "collectors.nvidia.plugin:create"


def test_one_name_from_two_distributions_is_refused_naming_both() -> None:
    points = [point("x", "a:create", "dist-a"), point("x", "b:create", "dist-b")]
    with pytest.raises(Misconfigured, match=r"dist-a.*dist-b.*uninstall"):
        installed(points)


def test_the_same_entry_point_seen_twice_is_one() -> None:
    points = [point("x", "a:create", "dist-a"), point("x", "a:create", "dist-a")]
    assert installed(points) == {"x": Registered("x", "a:create", "dist-a")}


def test_an_unknown_plugin_is_refused_with_the_known_names() -> None:
    settings = Collectors(plugins={"nvida": PluginSettings(enabled=False)})
    with pytest.raises(Misconfigured, match=r"collectors\.plugins\.nvida: no such plugin; installed are: amd, nvidia"):
        chosen(settings.plugins, {"nvidia": Registered("nvidia", "a:b"), "amd": Registered("amd", "c:d")})


def test_only_enabled_plugins_are_chosen() -> None:
    known = {"a": Registered("a", "a:a"), "b": Registered("b", "b:b")}
    assert list(chosen({"a": PluginSettings(enabled=False), "b": PluginSettings()}, known)) == ["b"]


def test_no_enabled_plugin_is_refused() -> None:
    with pytest.raises(Misconfigured, match="none is enabled"):
        chosen({}, {"a": Registered("a", "a:a")})


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("tests.fakes.nowhere:create", "cannot be loaded"),
        (f"{FAKES}:nothing", "cannot be loaded"),
        (f"{FAKES}:not_callable", "not callable"),
    ],
    ids=["no module", "no attribute", "not callable"],
)
def test_a_target_that_cannot_be_used_is_named(target: str, says: str) -> None:
    with pytest.raises(Misconfigured, match=says):
        load(target)


def test_another_contract_version_is_refused_with_both_numbers() -> None:
    with pytest.raises(Misconfigured, match=r"version 99.*speaks 1"):
        make(f"{FAKES}:Newer", {}, ENV)


def test_wrong_settings_of_a_plugin_name_the_key() -> None:
    with pytest.raises(Misconfigured, match=r"settings of tests\.fakes\.plugins:Fake: unknown key 'devises'"):
        make(f"{FAKES}:Fake", {"devises": 3}, ENV)


def test_wrong_settings_of_nvidia_name_the_key() -> None:
    with pytest.raises(Misconfigured) as caught:
        make("collectors.nvidia.plugin:create", {"profilling": False, "retry_seconds": "soon"}, ENV)
    said = str(caught.value).partition(": ")[2]
    assert said == "retry_seconds: Input should be a valid number, unable to parse string as a number; profilling: no such setting"


def test_a_deadline_beyond_the_hang_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="must be below hang_seconds"):
        Collectors(read_deadline_seconds=20, hang_seconds=10)


def test_restart_waits_must_be_in_order() -> None:
    with pytest.raises(ValueError, match="must not exceed restart_max_seconds"):
        Collectors(restart_min_seconds=20, restart_max_seconds=10)
