"""The settings file that `config show` prints sets nothing until a line is uncommented, and then exactly that."""

from pathlib import Path

import pytest
import yaml

from xpulse.document import render
from xpulse.settings import Settings, load


@pytest.fixture(autouse=True)
def file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    import os

    for name in [n for n in os.environ if n.startswith("XPULSE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "xpulse.yaml"
    path.write_text(render(Settings), encoding="utf-8")
    return path


def test_as_printed_it_sets_nothing() -> None:
    settings = load()
    assert settings == Settings()
    assert settings.bus.model_fields_set == set()  # else `xpulse up` would look for a Kafka at the default address


def test_an_uncommented_line_is_a_setting(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("  #brokers: 127.0.0.1:9092", "  brokers: k1:9092"), encoding="utf-8")
    assert load().bus.brokers == "k1:9092"
    assert load().bus.model_fields_set == {"brokers"}


def test_with_every_default_uncommented_it_is_the_defaults(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    bare = [line.replace("#", "", 1) if line.lstrip().startswith("#") and not line.lstrip().startswith("# ") else line for line in lines]
    file.write_text("\n".join(bare), encoding="utf-8")
    assert yaml.safe_load("\n".join(bare))["bus"]["brokers"] == "127.0.0.1:9092"
    assert load() == Settings()


def test_effective_values_are_not_comments() -> None:
    assert yaml.safe_load(render(Settings, Settings(cluster="prod-a")))["cluster"] == "prod-a"
