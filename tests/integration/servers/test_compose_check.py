"""The Compose file check says yes to a good file and why not to a bad one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.servers.compose import compose_check
from tests.integration.servers.fixtures import give_up
from tests.integration.servers.toolchain import Missing

pytestmark = pytest.mark.integration


def check(path: Path, text: str) -> tuple[bool, str]:
    path.write_text(text)
    try:
        return compose_check(path)
    except Missing as missing:
        give_up(missing)


def test_a_good_file_is_resolved(tmp_path: Path) -> None:
    ok, output = check(tmp_path / "docker-compose.yml", "services: {kafka: {image: apache/kafka, ports: ['9092:9092']}}")
    assert ok, output
    assert "published" in output


def test_a_bad_file_is_explained(tmp_path: Path) -> None:
    ok, output = check(tmp_path / "docker-compose.yml", "services: {kafka: {image: apache/kafka, prots: ['9092:9092']}}")
    assert not ok
    assert "prots" in output
