"""The settings: safe defaults, secrets that are never shown, and sinks built from nothing but settings."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from schemas.section import resolve_secret
from sinks.influxdb.store import InfluxStore
from sinks.open import influx_target, open_sink, open_store, sqlite_path
from sinks.settings import Influx, Notify, Sinks, Sqlite, Webhook
from sinks.sqlite.store import SqliteStore


@pytest.mark.parametrize("url", ["127.0.0.1:8086", "ftp://x", "http://", "http://user:pw@host"])
def test_an_address_must_be_http_without_credentials(url: str) -> None:
    with pytest.raises(ValidationError):
        Influx(url=url)


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(ValidationError, match="retention"):
        Sqlite.model_validate({"retention": 7})


def test_a_secret_comes_from_its_setting_or_its_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("from-file\n")
    assert resolve_secret("token", SecretStr("set"), None) == "set"
    assert resolve_secret("token", None, file) == "from-file"
    assert resolve_secret("token", None, None) == ""
    assert influx_target(Influx(token_file=file)).token == "from-file"


@pytest.mark.parametrize(("text", "message"), [(None, "No such file"), ("", "is empty")], ids=["missing", "empty"])
def test_a_secret_file_that_does_not_serve_is_named(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "token").write_text(text)
    with pytest.raises(ValueError, match=f"sinks.influxdb.token_file.*token.*{message}"):
        influx_target(Influx(token_file=tmp_path / "token"))


def test_both_forms_of_a_secret_are_refused_without_showing_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="both set") as error:
        resolve_secret("token", SecretStr("hush"), tmp_path / "token")
    assert "hush" not in str(error.value)
    assert "hush" not in repr(Influx(token=SecretStr("hush")))


def test_a_relative_database_is_in_the_state_folder(tmp_path: Path) -> None:
    assert sqlite_path(Sqlite(), tmp_path) == tmp_path / "xpulse.sqlite"
    assert sqlite_path(Sqlite(path=Path("/data/x")), tmp_path) == Path("/data/x")


def test_sinks_are_built_from_settings(tmp_path: Path) -> None:
    sinks = Sinks(notify=Notify(webhooks=(Webhook(url="http://127.0.0.1:1/hook"),)))
    assert open_sink("notify", sinks, tmp_path, console=io.StringIO()).role == "notify"
    assert open_sink("mirror", sinks, tmp_path).role == "mirror"
    assert open_sink("influxdb", sinks, tmp_path).role == "influxdb"
    assert isinstance(open_store(sinks, tmp_path), SqliteStore)
    assert isinstance(open_store(Sinks(store="influxdb"), tmp_path), InfluxStore)


def test_importing_the_sinks_imports_no_heavy_library() -> None:
    code = (
        "import sys, sinks.open, sinks.store, sinks.sqlite.writer, sinks.influxdb.writer, sinks.influxdb.store, sinks.sqlite.store\n"
        "print([m for m in ('influxdb_client', 'reactivex', 'pandas', 'numpy', 'confluent_kafka', 'faust') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
