"""Runs one server as a child and kills it when the process that asked for it is gone.

`python launcher.py PARENT_PID COMMAND…` prints the server's process id, waits and leaves with its exit code.
Linux's death signal alone does not do: it is sent when the *thread* that started the child ends. So this process,
which has one thread, asks for it on the server, and itself watches the parent by its process id. It imports nothing
of ours: it runs as a file.
"""

import ctypes
import os
import signal
import sys
import time

WATCH_SECONDS = 0.1
PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> int:
    """Start the command and stay until it, or the parent, is gone."""
    launcher = os.getpid()
    server = os.fork()
    if server == 0:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != launcher:
            os._exit(1)
        os.dup2(2, 1)  # the first standard output only carries the process id
        try:
            os.execvp(command[0], command)
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\n".encode())
            os._exit(127)
    os.write(1, f"{server}\n".encode())
    while True:
        done, status = os.waitpid(server, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if os.getppid() != parent:
            os.kill(server, signal.SIGKILL)
            os.waitpid(server, 0)  # not left to whoever adopts it
            return 128 + signal.SIGKILL
        time.sleep(WATCH_SECONDS)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
