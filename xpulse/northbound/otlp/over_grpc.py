"""OTLP over gRPC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import grpc  # type: ignore[import-untyped]  # grpcio ships no types

from xpulse.northbound.otlp import headers, outcome

if TYPE_CHECKING:
    from pathlib import Path

    from xpulse.northbound.otlp.settings import Otlp
    from xpulse.northbound.otlp.waiting import Packed

_METHOD: Final = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
_DETAILS: Final = "grpc-status-details-bin"


class Grpc:
    """One channel. Raises ValueError naming the key of a file that cannot be read."""

    def __init__(self, settings: Otlp, agent: str) -> None:
        self._settings = settings
        target, secure = settings.target()
        options = [
            ("grpc.primary_user_agent", agent),
            ("grpc.enable_http_proxy", 0),  # as over HTTP: a proxy is never taken from the environment
            # Its own pause between connections grows to two minutes: an endpoint that is back must be found.
            ("grpc.initial_reconnect_backoff_ms", 500),
            ("grpc.max_reconnect_backoff_ms", 2000),
        ]
        compression = grpc.Compression.Gzip if settings.compression == "gzip" else grpc.Compression.NoCompression
        if secure:
            credentials = grpc.ssl_channel_credentials(
                _read("ca_file", settings.ca_file), _read("key_file", settings.key_file), _read("cert_file", settings.cert_file)
            )
            self._channel = grpc.secure_channel(target, credentials, options, compression)
        else:
            self._channel = grpc.insecure_channel(target, options, compression)
        self._export = self._channel.unary_unary(_METHOD, request_serializer=None, response_deserializer=None)

    def send(self, packed: Packed, timeout_seconds: float) -> outcome.Outcome:
        try:
            metadata = tuple(headers.of(self._settings).items())
        except ValueError as error:
            return outcome.Later("headers_file", str(error))
        try:
            return outcome.taken(self._export(packed.message(), timeout=timeout_seconds, metadata=metadata))
        except grpc.RpcError as error:
            status = next((value for key, value in error.trailing_metadata() or () if key == _DETAILS), None)
            return outcome.of_grpc(error.code().name, str(error.details() or ""), status)
        except ValueError as error:  # the channel was closed under a call
            return outcome.Later("cancelled", str(error))

    def close(self) -> None:
        self._channel.close()


def _read(key: str, path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"northbound.otlp.{key}: {path} cannot be read: {error.strerror}; give the path of a PEM file") from None
