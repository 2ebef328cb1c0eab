"""Fixtures of the whole suite: the real servers, and the fake NVML."""

pytest_plugins = ["tests.integration.servers.fixtures", "tests.fakes.nvml.fixtures"]
