"""Nothing unknown is accepted, in the file or in the environment, and every error names source, key and remedy."""

from pathlib import Path

import pytest

from xpulse.errors import UsageError
from xpulse.settings import Settings, check_environment, load, paths


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    import os

    for name in [n for n in os.environ if n.startswith("XPULSE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, text: str) -> Path:
    path = folder / "xpulse.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_defaults_need_no_file() -> None:
    assert load().collectors.interval_seconds == 1.0


def test_file_then_environment(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(clean, "cluster: prod-a\nbus:\n  brokers: k1:9092\n  linger_ms: 7\n")
    monkeypatch.setenv("XPULSE_BUS__BROKERS", "k2:9092")
    settings = load()
    assert (settings.cluster, settings.bus.brokers, settings.bus.linger_ms) == ("prod-a", "k2:9092", 7)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("clster: a\n", ["xpulse.yaml", "clster", "did you mean 'cluster'"]),
        ("bus:\n  brokrs: a:1\n", ["bus.brokrs", "did you mean 'brokers'"]),
        ("bus:\n  linger_ms: soon\n", ["bus.linger_ms", "valid integer", "'soon'"]),
        ("- a\n", ["mapping", "list"]),
        ("a: [\n", ["is not YAML"]),
        ("cluster: 'a b'\n", ["cluster", "pattern"]),
        ("cluster: a\ncluster: b\n", ["line 2", "'cluster' is given twice"]),
        ("bus:\n  linger_ms: 1\n  linger_ms: 2\n", ["line 3", "'linger_ms' is given twice"]),
        ("1: 2\n", ["1: unknown key"]),
    ],
)
def test_errors_name_file_key_and_remedy(clean: Path, text: str, says: list[str]) -> None:
    write(clean, text)
    with pytest.raises(UsageError) as error:
        load()
    for part in says:
        assert part in str(error.value)
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    "text",
    [
        "bus: {security_protocol: PLAINTEXT, password: [hunter2]}",
        "bus: {security_protocol: SASL_SSL, password: hunter2}",
        "sinks: {influxdb: [hunter2]}",
        "bus:\n  password: hunter2: oh\n",
        "bus:\n  password: 'hunter2\n",
        "sinks: {notify: {webhooks: [{url: 'http://u:hunter2@h/'}]}}",
        "sinks: {notify: {webhooks: [{url: 'http://h/', headers: {Authorization: [hunter2]}}]}}",
    ],
)
def test_a_secret_is_not_repeated(clean: Path, text: str) -> None:
    write(clean, text)
    with pytest.raises(UsageError) as error:
        load()
    assert "hunter2" not in str(error.value)


def test_a_typing_error_in_the_environment_is_refused() -> None:
    with pytest.raises(UsageError, match=r"XPULSE_BUSS__BROKERS names no setting; did you mean XPULSE_BUS__BROKERS"):
        check_environment({"XPULSE_BUSS__BROKERS": "a:1"})
    with pytest.raises(UsageError, match="names no setting"):
        check_environment({"XPULSE_BUS__BROKERS__": "a:1"})
    check_environment({"XPULSE_REQUIRE": "kafka", "XPULSE_CONFIG": "x", "PATH": "/bin", "XPULSE_BUS__BROKERS": "a:1"})


def test_a_bad_value_from_the_environment_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XPULSE_BUS__LINGER_MS", "soon")
    with pytest.raises(UsageError, match="environment variable XPULSE_BUS__LINGER_MS"):
        load()


def test_json_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XPULSE_COLLECTORS__PLUGINS", '{"simulated": {"enabled": true}}')
    assert load().collectors.plugins["simulated"].enabled
    monkeypatch.setenv("XPULSE_COLLECTORS__PLUGINS", "{simulated")
    with pytest.raises(UsageError, match="JSON"):
        load()


def test_a_missing_named_file_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XPULSE_CONFIG", "nowhere.yaml")
    with pytest.raises(UsageError, match=r"nowhere\.yaml does not exist"):
        load()


def test_a_file_that_is_no_text_or_a_folder_is_said_to_be(clean: Path) -> None:
    (clean / "xpulse.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"xpulse\.yaml is not UTF-8"):
        load()
    with pytest.raises(UsageError, match="is a folder"):
        load(clean)


def test_an_empty_variable_sets_nothing(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(clean / "home"))
    monkeypatch.setenv("XPULSE_STATE_DIR", "")
    monkeypatch.setenv("XPULSE_HEALTH__PORT", "")
    assert load().health.port is None
    assert load().state() == clean / "home" / "xpulse"


def test_a_state_folder_that_cannot_be_made_is_wrong_use(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (clean / "file").touch()
    monkeypatch.setenv("XPULSE_STATE_DIR", str(clean / "file"))
    with pytest.raises(UsageError, match=r"file cannot be made: .*XPULSE_STATE_DIR"):
        load().state()


def test_cluster_is_required_outside_the_local_stack() -> None:
    with pytest.raises(UsageError, match="XPULSE_CLUSTER"):
        load().require_cluster()


def test_every_setting_has_a_description() -> None:
    def described(model: type, prefix: str = "") -> list[str]:
        missing = []
        for name, field in model.model_fields.items():  # type: ignore[attr-defined]  # pydantic's
            annotation = field.annotation
            if isinstance(annotation, type) and hasattr(annotation, "model_fields"):
                missing += described(annotation, f"{prefix}{name}.")
            elif not field.description:
                missing.append(prefix + name)
        return missing

    assert described(Settings) == []
    assert len(paths(Settings)) > 60
