"""A worker process: predicts chunks that arrive over one inherited socket until that socket closes. Started by forecasting.pool."""

from __future__ import annotations

import os
import signal
import sys
from multiprocessing.connection import Connection

from forecasting.pool import predict_chunk


def main(descriptor: int) -> None:
    """Runs until the parent closes its end, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the parent decides when this one ends
    os.nice(5)  # forecasts may be late, the pipeline may not
    with Connection(descriptor) as pipe:
        try:
            pipe.send("ready")
            while True:
                pipe.send(predict_chunk(pipe.recv()))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


if __name__ == "__main__":
    main(int(sys.argv[1]))
