"""A worker process that dies of one value and sleeps over another: what a crash and a hang in native code look like from outside."""

import os
import sys
import time
from multiprocessing.connection import Connection

from forecasting.pool import Chunk, predict_chunk

POISON = -13.0
SLOW = -14.0


def main(descriptor: int) -> None:
    with Connection(descriptor) as pipe:
        pipe.send("ready")
        while True:
            chunk: Chunk = pipe.recv()
            values = {float(job.y[0]) for _, job in chunk.items}
            if POISON in values:
                os._exit(11)
            if SLOW in values:
                time.sleep(60)
            pipe.send(predict_chunk(chunk))


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        sys.exit(0)
