"""Settings of the dcgm plugin: what would leak a secret or cannot work is refused, with the key."""

from __future__ import annotations

from typing import Any

import pytest

from collectors.dcgm.plugin import create
from collectors.dcgm.settings import Dcgm, loopback
from tests.unit.collectors.dcgm.pages import ENV


def test_the_usual_exporter_is_the_default() -> None:
    assert [one.url for one in Dcgm().chosen()] == ["http://127.0.0.1:9400/metrics"]
    assert Dcgm(file_sd=("x.json",)).chosen() == ()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"endpoint": "http://x/metrics"}, "collectors.plugins.dcgm.settings.endpoint"),
        ({"endpoints": ["x:9400"]}, "is not an address of a metrics page"),
        ({"endpoints": ["http:///metrics"]}, "is not an address of a metrics page"),
        ({"endpoints": ["http://x:99999/metrics"]}, "is not an address of a metrics page"),
        ({"endpoints": ["http://x/a\nb"]}, "is not an address of a metrics page"),
        ({"endpoints": ["http://u:p@x/metrics"]}, "no password"),
        ({"endpoints": ["http://x/metrics"], "bearer_token": "t"}, "in the clear"),
        ({"endpoints": ["http://x/metrics"], "username": "u", "password": "p"}, "in the clear"),
        ({"bearer_token": "t", "bearer_token_file": "f"}, "both set"),
        ({"password": "t", "password_file": "f", "username": "u"}, "both set"),
        ({"bearer_token": "t", "username": "u", "password": "p"}, "keep one of the two ways"),
        ({"username": "u"}, "belong together"),
        ({"password": "p"}, "belong together"),
        ({"endpoints": [{"url": "http://x/", "own": True, "node": "n"}]}, "keep one"),
        ({"endpoints": [{"url": "http://x/", "cluster": "a/b"}]}, "is no name"),
        ({"key_file": "k"}, "key_file without certificate_file"),
        ({"interval_seconds": 60}, "interval_seconds"),
        ({"ca_file": "no/such/file.pem"}, "ca_file"),
    ],
)
def test_what_cannot_work_is_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        create(settings, ENV)


def test_whose_node_an_exporter_tells_of() -> None:
    given = [
        "http://127.0.0.1:1/",
        "http://10.0.0.1:1/",
        {"url": "http://10.0.0.1:2/", "own": True},
        {"url": "http://127.0.0.1:2/", "node": "x"},
    ]
    assert [one.is_own() for one in Dcgm.model_validate({"endpoints": given}).endpoints] == [True, False, True, False]


def test_a_secret_is_not_in_the_message() -> None:
    with pytest.raises(ValueError, match="in the clear") as caught:
        create({"endpoints": ["http://x/metrics"], "bearer_token": "hush-hush"}, ENV)
    assert "hush-hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "is_loopback"),
    [
        ("http://127.1.2.3/", True),
        ("http://[::1]:9400/", True),
        ("http://localhost/", True),
        ("http://10.0.0.1/", False),
        ("http://gpu/", False),
    ],
)
def test_loopback(url: str, is_loopback: bool) -> None:
    assert loopback(url) is is_loopback
