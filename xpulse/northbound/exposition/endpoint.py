"""Opens the agent's endpoint: health pages and /metrics, with the token and TLS that the settings ask for."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from schemas.section import resolve_secret
from xpulse.errors import UsageError
from xpulse.health import HealthServer, Report
from xpulse.listener import Tls
from xpulse.northbound.exposition.settings import check_port

if TYPE_CHECKING:
    from xpulse.listener import Handle
    from xpulse.northbound.exposition.settings import Exposition

log = logging.getLogger("xpulse.http")


def token_of(settings: Exposition) -> str:
    """The bearer token, "" for none. Raises UsageError naming the setting."""
    try:
        return resolve_secret("northbound.exposition.token", settings.token, settings.token_file)
    except ValueError as error:
        raise UsageError(str(error)) from None


def exposed(settings: Exposition, host: str) -> str:
    """What anybody on the network may do with the endpoint on `host`; "" where it is loopback or has both a token and TLS."""
    if is_loopback(host):
        return ""
    lacks = []
    if settings.token is None and settings.token_file is None:
        lacks.append("no token: anybody who reaches it reads what this node's devices do")
    if settings.cert_file is None:
        lacks.append("no TLS: what it sends, a token included, can be read on the way")
    return "; ".join(lacks)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address to listen on."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def open_endpoint(
    settings: Exposition, host: str, port: int, report: Callable[[], Report], page: Handle, *, local_stack: bool = False
) -> HealthServer:
    """Listen; raises UsageError naming the setting. Inside the local stack a busy port is replaced by a free one and loopback has no TLS
    (its supervisor asks for the role's status)."""
    try:
        check_port(port)
    except ValueError as error:
        raise UsageError(f"health.port: {error}") from None
    tls = None
    if settings.cert_file is not None and settings.key_file is not None and not (local_stack and is_loopback(host)):
        tls = Tls(settings.cert_file, settings.key_file)
        try:
            tls.context()
        except OSError as error:
            raise UsageError(
                f"northbound.exposition: cert_file {settings.cert_file} with key_file {settings.key_file}: {error}; "
                "give a PEM certificate and the private key that belongs to it"
            ) from None
    if why := exposed(settings, host):
        log.warning("the endpoint listens beyond loopback", extra={"host": host, "why": why, "remedy": "northbound.exposition.*"})
    return HealthServer(host, port, report, fall_back=local_stack, pages={"/metrics": page}, tls=tls)
