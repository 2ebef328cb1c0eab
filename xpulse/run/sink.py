"""A sink's process, and the one-time preparation of InfluxDB."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sinks.open import SinkName, influx_target, open_sink
from xpulse.errors import ProblemFound, UsageError
from xpulse.run.direct import run as run_direct

if TYPE_CHECKING:
    from sinks.influxdb.http import Target
    from xpulse.settings import Settings


def run(settings: Settings, name: str) -> int:
    """Until a signal; the exit code."""
    try:
        processor = open_sink(cast("SinkName", name), settings.sinks, settings.state())
    except ValueError as error:
        raise UsageError(str(error)) from None
    closer: Any = processor
    if hasattr(processor, "close"):
        with closing(closer):
            return run_direct(settings, processor)
    return run_direct(settings, processor)


def prepare(settings: Settings, admin_token_file: Path | None, write_token: Path | None) -> str:
    """Make bucket, retention and a least-privilege token; what was done, in one text. The token is shown only where no file takes it."""
    from sinks.influxdb.setup import SetupRefused, setup

    token = _admin_token(admin_token_file)
    influx = settings.sinks.influxdb
    write_token = write_token or influx.token_file
    without_token = influx.model_copy(update={"token": None, "token_file": None})  # the one this makes
    if write_token is not None and _still_good(influx_target(without_token), write_token):
        return f"the token in {write_token} still reads bucket {influx.bucket!r}: nothing to do (remove the file for a new one)"
    try:
        made = setup(influx_target(without_token), token, retention_seconds=int(influx.retention_days * 86_400))
    except SetupRefused as error:
        raise UsageError(str(error)) from None
    except ConnectionError as error:
        raise ProblemFound(f"InfluxDB at {influx.url} cannot be reached: {error}; check sinks.influxdb.url") from None
    kept = f"bucket {influx.bucket!r} of {influx.org!r} {'made' if made.bucket_made else 'was there'}, keeps {made.retention_seconds} s"
    if write_token is None:
        return f"{kept}\ntoken (shown once; put it into XPULSE_SINKS__INFLUXDB__TOKEN or a file for token_file): {made.token}"
    write_token.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(write_token, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(made.token + "\n")
    return f"{kept}\ntoken written to {write_token} (sinks.influxdb.token_file reads it)"


def _still_good(target: Target, file: Path) -> bool:
    """Whether a file of an earlier set-up holds a token that the bucket accepts: a one-shot that is run again must not pile up tokens."""
    from influxdb_client.rest import ApiException
    from urllib3.exceptions import HTTPError

    from sinks.influxdb.client import connect

    try:
        token = file.read_text(encoding="utf-8").strip()
        return bool(token) and connect(replace(target, token=token)).buckets_api().find_bucket_by_name(target.bucket) is not None
    except (OSError, ApiException, HTTPError):
        return False


def _admin_token(file: Path | None) -> str:
    if file is not None:
        try:
            return file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise UsageError(f"--admin-token-file {file}: {error.strerror}") from None
    if token := os.environ.get("INFLUX_TOKEN", ""):
        return token
    raise UsageError("influxdb --setup needs a token that may create buckets: --admin-token-file FILE, or the variable INFLUX_TOKEN")
