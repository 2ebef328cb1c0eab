"""Tests of the parts of tests/integration/servers that need no server."""
