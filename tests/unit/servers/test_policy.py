"""A missing server skips its tests on a laptop and fails them where it is required."""

from __future__ import annotations

import pytest

from tests.integration.servers import prepare
from tests.integration.servers.fixtures import give_up, is_required
from tests.integration.servers.progress import Progress
from tests.integration.servers.toolchain import Missing

MISSING = Missing("influxdb", "clang not on PATH", "install clang")


@pytest.mark.parametrize(
    ("listed", "required"),
    [("", False), ("kafka", False), ("influxdb", True), ("kafka, influxdb", True), ("influx", False)],
)
def test_required_when_listed(listed: str, required: bool) -> None:
    assert is_required("influxdb", {"XPULSE_REQUIRE": listed}) is required


def test_skips_with_reason_and_remedy() -> None:
    with pytest.raises(pytest.skip.Exception, match="influxdb: clang not on PATH; install clang"):
        give_up(MISSING, {})


def test_fails_where_required() -> None:
    with pytest.raises(pytest.fail.Exception, match="influxdb: clang not on PATH; install clang"):
        give_up(MISSING, {"XPULSE_REQUIRE": "kafka,influxdb"})


def test_prepare_tries_all_and_reports_the_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(_: Progress) -> None:
        raise MISSING

    tried: list[str] = []
    monkeypatch.setattr(prepare, "SERVERS", {"influxdb": refuse, "kafka": lambda _: tried.append("kafka")})
    assert prepare.main([]) == 1
    assert tried == ["kafka"]
    assert "influxdb: missing: clang not on PATH; install clang" in capsys.readouterr().err
    assert prepare.main(["kafka"]) == 0


def test_prepare_knows_its_names(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        prepare.main(["influx"])
    assert "unknown: influx; choose from kafka, compose, kcat, prometheus, kubernetes-types, otelcol, influxdb" in capsys.readouterr().err
