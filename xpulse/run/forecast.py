"""The forecaster's process: history from the configured store, then the samples topic."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from forecasting.worker import ForecastProcessor
from sinks.open import open_store
from xpulse.errors import UsageError
from xpulse.run.direct import run as run_direct

if TYPE_CHECKING:
    from schemas.store import Store
    from xpulse.settings import Settings

log = logging.getLogger(__name__)


def run(settings: Settings) -> int:
    """Until a signal. Without a store the history begins with the samples; that is said in the log."""
    store: Store | None = None
    try:
        store = open_store(settings.sinks, settings.state())
    except (FileNotFoundError, ConnectionError) as error:
        log.warning("no history from the store: it begins with the samples", extra={"reason": str(error)})
    try:
        processor = ForecastProcessor(settings.forecasting, store)
    except ModuleNotFoundError as error:
        raise UsageError(str(error)) from None
    try:
        return run_direct(settings, processor)
    finally:
        processor.close()
        if store is not None:
            store.close()
