"""Fixtures of the whole suite: the real servers and the fake NVML; and which tests share a worker when several run side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["tests.integration.servers.fixtures", "tests.fakes.nvml.fixtures"]

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the whole line share one worker (one of them runs beside the others), those that need a server another, so that each
    server is started once or twice and not by every worker. The rest goes wherever there is room."""
    for item in items:
        folder = item.path.relative_to(_HERE).parts[:2]
        if folder[:2] == ("integration", "line"):
            item.add_marker(pytest.mark.xdist_group("line"))
        elif folder[0] == "integration" or {"kafka_server", "influx_server"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group("servers"))
