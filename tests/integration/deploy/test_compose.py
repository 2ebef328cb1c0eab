"""compose-go, the parser inside Docker Compose, accepts docker-compose.yml as each profile sees it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.contracts.compose_file import filled, model
from tests.integration.servers.compose import compose_check
from tests.integration.servers.fixtures import give_up
from tests.integration.servers.toolchain import Missing

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("profiles", "present", "absent"),
    [({"nvidia"}, "agent", "agent-demo"), ({"demo"}, "agent-demo", "agent"), (set(), "detect", "agent")],
    ids=["default", "demo", "no agent"],
)
def test_compose_go_accepts_the_file(profiles: set[str], present: str, absent: str, tmp_path: Path) -> None:
    # compose-go's checker reads no .env and knows no profiles: both are applied first (tests/contracts/compose_file.py).
    file = tmp_path / "docker-compose.yml"
    file.write_text(yaml.safe_dump(model(filled(), frozenset(profiles)), sort_keys=False, width=1000))
    try:
        ok, output = compose_check(file)
    except Missing as missing:
        give_up(missing)
    assert ok, output
    services = yaml.safe_load(output)["services"]
    assert present in services
    assert absent not in services
