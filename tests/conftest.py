"""Fixtures of the whole suite: the real servers and the fake NVML; and which tests share a worker when several run side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["tests.integration.servers.fixtures", "tests.fakes.nvml.fixtures"]

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need a real server share one worker, so that each server is started once; the rest goes wherever there is room."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        on_server = any(f"[{name}" in item.name or f"-{name}" in item.name for name in ("kafka", "influx", "Kafka"))
        if item.path.relative_to(_HERE).parts[0] == "integration" or fixtures & {"kafka_server", "influx_server"} or on_server:
            item.add_marker(pytest.mark.xdist_group("servers"))
