"""OTLP settings: addresses, secrets that never show, and what is refused with a remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from xpulse.northbound.otlp import headers
from xpulse.northbound.otlp.settings import Otlp


@pytest.mark.parametrize(
    ("endpoint", "target"),
    [
        ("http://127.0.0.1:4317", ("127.0.0.1:4317", False)),
        ("https://otel.example:4317/", ("otel.example:4317", True)),
        ("https://otel.example", ("otel.example:443", True)),
        ("http://[::1]:4317", ("[::1]:4317", False)),
    ],
)
def test_grpc_target(endpoint: str, target: tuple[str, bool]) -> None:
    assert Otlp(endpoint=endpoint, protocol="grpc").target() == target


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/metrics"),
        ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/metrics"),
        ("https://x.example/api/otlp", "https://x.example/api/otlp"),
    ],
)
def test_http_url(endpoint: str, url: str) -> None:
    assert Otlp(endpoint=endpoint, protocol="http").url() == url


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"endpoint": "otel:4317"}, "http://host:port"),
        ({"endpoint": "http://x:99999"}, "http://host:port"),
        ({"endpoint": "ftp://x:1"}, "http://host:port"),
        ({"endpoint": "http://u:geheim@x:1"}, "no user or password"),
        ({"endpoint": "http://x:1/v1/metrics", "protocol": "grpc"}, "set protocol: http"),
        ({"cert_file": "c.pem"}, "belong together"),
        ({"ca_file": "c.pem"}, "https://"),
        ({"endpoint": "http://far:4317", "headers": {"authorization": "geheim"}}, "without TLS"),
        ({"endpoint": "http://far:4317", "headers_file": "f"}, "without TLS"),
        ({"headers": {"a b": "geheim"}}, "no name of a header"),
        ({"headers": {"a": "geheim\r\nx: y"}}, "not printable"),
        ({"retry_min_seconds": 60, "retry_max_seconds": 2}, "more than retry_max"),
    ],
    ids=str,
)
def test_what_is_refused_says_why_and_shows_no_secret(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Otlp(**given)
    (problem,) = caught.value.errors()
    assert said in problem["msg"]
    assert "geheim" not in problem["msg"]


@pytest.mark.parametrize(
    "given",
    [
        {"endpoint": "https://far:4317", "headers": {"a": "b"}},
        {"endpoint": "http://localhost:4317", "headers": {"a": "b"}},
        {"endpoint": "http://far:4317", "headers": {"a": "b"}, "insecure": True},
        {"endpoint": "http://far:4317"},
    ],
    ids=str,
)
def test_headers_may_go_by_tls_to_this_machine_or_where_the_user_says_so(given: dict[str, Any]) -> None:
    assert Otlp(**given).endpoint == given["endpoint"]


def test_headers_are_never_shown() -> None:
    settings = Otlp.model_validate({"headers": {"authorization": "geheim"}})
    assert "geheim" not in repr(settings)
    assert "geheim" not in settings.model_dump_json()


def test_headers_of_the_file_win_and_are_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "headers"
    file.write_text("# of the collector\n\nAuthorization: Bearer a:b\n")
    settings = Otlp.model_validate({"headers": {"Authorization": "old", "X-Scope": "1"}, "headers_file": file})
    assert headers.of(settings) == {"authorization": "Bearer a:b", "x-scope": "1"}
    file.write_text("authorization: Bearer new\n")
    assert headers.of(settings)["authorization"] == "Bearer new"


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"geheim", "line 1: no colon"), (b"\na: \n", "line 2"), (b"a: \xc3\xa4geheim", "line 1"), (b"\xff", "not UTF-8")],
    ids=str,
)
def test_a_bad_file_names_the_line_and_no_value(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "headers").write_bytes(content)
    with pytest.raises(ValueError, match=said) as caught:
        headers.of(Otlp(headers_file=tmp_path / "headers"))
    assert "geheim" not in str(caught.value)


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        headers.of(Otlp(headers_file=tmp_path / "none"))
