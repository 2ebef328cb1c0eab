"""Makes the push from its settings: the door for the agent, which imports this module only where the push is on."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from xpulse.northbound.otlp import headers

if TYPE_CHECKING:
    from collections.abc import Callable

    from schemas.device_state import FleetState
    from schemas.identity import NodeRef
    from xpulse.northbound.otlp.push import Push, Transport
    from xpulse.northbound.otlp.settings import Otlp


def open_push(settings: Otlp, node: NodeRef, state: Callable[[int], FleetState], *, started_at_ns: int) -> Push:
    """A push that is not yet started. Raises ValueError saying what to do where a package is missing or a file cannot be read."""
    try:
        from schemas.otlp import Origin
        from xpulse.northbound.otlp.push import Push
    except ImportError as error:
        raise _missing(error) from None
    headers.of(settings)
    release = _version()
    origin = Origin(
        node,
        release,
        f"{node.cluster}/{node.node}",
        started_at_ns,
        kubernetes="KUBERNETES_SERVICE_HOST" in os.environ,
        attributes=settings.resource_attributes,
    )
    return Push(settings, origin, state, _transport(settings, f"xpulse-agent/{release or 'unknown'}"))


def _transport(settings: Otlp, agent: str) -> Transport:
    if settings.protocol == "http":
        from xpulse.northbound.otlp.over_http import Http

        for key in ("ca_file", "cert_file", "key_file"):
            if (path := getattr(settings, key)) is not None and not path.is_file():
                raise ValueError(f"northbound.otlp.{key}: {path} does not exist or is no file; give the path of a PEM file")
        return Http(settings, agent)
    try:
        from xpulse.northbound.otlp.over_grpc import Grpc
    except ImportError as error:
        raise _missing(error) from None
    return Grpc(settings, agent)


def _missing(error: ImportError) -> ValueError:
    return ValueError(f"northbound.otlp.enabled needs {error.name}, which is not installed: pip install 'xpulse[otlp]'")


def _version() -> str:
    try:
        return version("xpulse")
    except PackageNotFoundError:  # run from a bare checkout
        return ""
