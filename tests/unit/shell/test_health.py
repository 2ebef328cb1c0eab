"""The endpoint says what the role says, escapes what users named, and a busy port is an error or a free one."""

import urllib.error
import urllib.request

import pytest

from xpulse.errors import UsageError
from xpulse.health import HealthServer, Report, SelfMetric, render


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_pages() -> None:
    reports = [Report(False, "restoring", detail={"lag": 3})]
    server = HealthServer("127.0.0.1", 0, lambda: reports[0])
    try:
        assert get(server.port, "/healthz") == (200, "ok\n")
        assert get(server.port, "/readyz") == (503, "not ready: restoring\n")
        reports[0] = Report(True, metrics=[SelfMetric("xpulse_ready", "gauge", "1 when ready.", [({}, 1)])])
        assert get(server.port, "/readyz")[0] == 200
        assert "xpulse_ready 1\n" in get(server.port, "/metrics")[1]
        assert get(server.port, "/etc/passwd")[0] == 404
        with pytest.raises(UsageError, match=r"health\.port"):
            HealthServer("127.0.0.1", server.port, lambda: reports[0])
        other = HealthServer("127.0.0.1", server.port, lambda: reports[0], fall_back=True)
        assert other.port != server.port
        other.close()
    finally:
        server.close()


def test_labels_are_escaped() -> None:
    text = render([SelfMetric("m_total", "counter", "x", [({"pod": 'a"b\\c\nd'}, 2.5)])])
    assert text == '# HELP m_total x\n# TYPE m_total counter\nm_total{pod="a\\"b\\\\c\\nd"} 2.5\n'
