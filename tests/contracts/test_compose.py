"""docker-compose.yml and the command line agree: every command, option, role and variable in it exists; no password has a default."""

from __future__ import annotations

import re
from typing import Any

import click
import pytest

from tests.contracts.compose_file import COMPOSE, Unset, example, fill, filled, model
from xpulse.cli.main import command as cli
from xpulse.roles import BY_NAME
from xpulse.settings import check_environment

DEFAULT = frozenset({"nvidia"})
DEMO = frozenset({"demo"})
SECRET = re.compile(r"PASSWORD|TOKEN|SECRET", re.IGNORECASE)

SERVICES: dict[str, Any] = model(filled(), DEFAULT | DEMO)["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"].startswith("xpulse:")}


def resolve(arguments: list[str]) -> tuple[click.Command, list[str]]:
    """The click command of a command line, and what is left over for it; LookupError where a word of it does not exist."""
    found: click.Command = cli
    while isinstance(found, click.Group):
        if not arguments:
            return found, []
        word, arguments = arguments[0], arguments[1:]
        try:
            step = found.get_command(click.Context(found), word)
        except ImportError as error:
            raise LookupError(f"{word}: {error}") from None
        if step is None:
            raise LookupError(f"no command {word!r}")
        found = step
    return found, arguments


def parse(arguments: list[str]) -> None:
    """Let click parse a command line without running it: unknown options, missing and impossible values raise."""
    found, rest = resolve(arguments)
    if isinstance(found, click.Group) and not found.invoke_without_command:
        raise LookupError(f"{' '.join(arguments)} needs a subcommand")
    found.make_context(found.name or "?", list(rest)).close()


@pytest.mark.parametrize("name", sorted(OURS))
def test_each_command_is_one_of_ours(name: str) -> None:
    parse(OURS[name]["command"])


@pytest.mark.parametrize("arguments", [["topics", "make"], ["sink", "influx"], ["stream", "detect", "--runer", "direct"]], ids=" ".join)
def test_the_check_sees_a_wrong_command(arguments: list[str]) -> None:
    with pytest.raises((LookupError, click.ClickException)):
        parse(arguments)


@pytest.mark.parametrize("name", sorted(n for n, s in OURS.items() if "healthcheck" in s))
def test_each_health_check_asks_the_role_that_runs(name: str) -> None:
    service = OURS[name]
    head, program, verb, role = service["healthcheck"]["test"]
    assert (head, program, verb) == ("CMD", "xpulse", "health")
    assert BY_NAME[role].command == tuple(service["command"])
    parse([verb, role])


def test_each_role_of_production_is_there() -> None:
    run = {tuple(service["command"]) for service in OURS.values()}
    assert {role.command for role in BY_NAME.values() if role.name != "sqlite"} <= run


@pytest.mark.parametrize("name", sorted(OURS))
def test_each_variable_is_a_setting(name: str) -> None:
    environment = OURS[name]["environment"]
    check_environment({k: v for k, v in environment.items() if k.startswith("XPULSE_")})
    assert {k for k in environment if not k.startswith("XPULSE_")} <= {"NODE_NAME", "INFLUX_TOKEN"}


@pytest.mark.parametrize("name", sorted(OURS))
def test_the_values_are_good_settings(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    from xpulse.settings import load

    monkeypatch.chdir(tmp_path)
    for key, value in OURS[name]["environment"].items():
        monkeypatch.setenv(key, value)
    settings = load()
    assert settings.require_cluster() == "lab"
    assert settings.bus.brokers == "kafka:9092"
    assert settings.sinks.store == "influxdb"


@pytest.mark.parametrize("name", [n for n in example() if SECRET.search(n)])
def test_a_secret_has_no_default(name: str) -> None:
    assert example()[name] == ""
    without = filled() | {name: ""}
    with pytest.raises(Unset, match=name):
        fill(COMPOSE.read_text(encoding="utf-8"), without)


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_no_secret_is_written_in_the_file(name: str) -> None:
    plain = model(dict.fromkeys(filled(), "FROM-THE-ENVIRONMENT"), DEFAULT | DEMO)["services"][name].get("environment", {})
    secrets = {k: v for k, v in plain.items() if SECRET.search(k) and not k.endswith("_FILE")}
    assert {k: v for k, v in secrets.items() if v != "FROM-THE-ENVIRONMENT"} == {}


@pytest.mark.parametrize("name", sorted(OURS))
def test_our_containers_may_do_little(name: str) -> None:
    service = OURS[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "user" not in service, "the image's own user, which is not root"


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_ports_are_bound_to_loopback(name: str) -> None:
    assert [port for port in SERVICES[name].get("ports", []) if not port.startswith("127.0.0.1:")] == []


@pytest.mark.parametrize("profiles", [DEFAULT, DEMO, frozenset[str]()], ids=["nvidia", "demo", "none"])
def test_what_is_waited_for_runs_in_the_same_profile(profiles: frozenset[str]) -> None:
    services = model(filled(), profiles)["services"]
    for name, service in services.items():
        assert set(service.get("depends_on", {})) <= set(services), name
        for other, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in services[other], f"{name} waits for the health of {other}"


def test_the_demo_shows_simulated_devices_only() -> None:
    services = model(filled(), DEMO)["services"]
    agents = {name for name, service in services.items() if service.get("command") == ["agent"]}
    assert agents == {"agent-demo"}
    assert '"simulated"' in services["agent-demo"]["environment"]["XPULSE_COLLECTORS__PLUGINS"]
