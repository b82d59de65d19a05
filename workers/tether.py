"""Ties a process to its parent: when the parent dies, by whatever death, the kernel kills it too.

    python -m workers.tether PARENT_PID -m MODULE [ARGUMENTS]   runs a Python module; what it forks is tied to it in turn
    python workers/tether.py PARENT_PID PROGRAM [ARGUMENTS]     becomes another program

Linux does it (`PR_SET_PDEATHSIG`). Elsewhere a Python module watches its parent, and a program that is left must be
ended by hand. Standard library only, and little of it: it runs before every child.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys
import threading
import time

_PR_SET_PDEATHSIG = 1
_LINUX = sys.platform == "linux"


def tie_to(parent: int) -> None:
    """From now on die with the process `parent`, which must be this process's parent; exits at once if it is no more."""
    if _LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # It may have died before the call above: then nobody sends the signal.
    if os.getppid() != parent:
        os._exit(1)


def tie_forks() -> None:
    """Tie every fork of this process to it as well.

    Only forks of the main thread: the kernel sends the signal when the forking *thread* ends.
    """
    forking: list[int] = []

    def before() -> None:
        forking[:] = [os.getpid()] if threading.current_thread() is threading.main_thread() else []

    def in_child() -> None:
        if forking:
            tie_to(forking[0])

    os.register_at_fork(before=before, after_in_child=in_child)


def main(arguments: list[str]) -> None:
    parent, command = int(arguments[0]), arguments[1:]
    tie_to(parent)
    if command[0] != "-m":
        os.execv(command[0], command)  # noqa: S606 — our own table, no shell wanted
    if _LINUX:
        tie_forks()
    else:
        threading.Thread(target=_watch, args=(parent,), daemon=True, name="tether").start()
    sys.argv = command[1:]
    runpy.run_module(command[1], run_name="__main__", alter_sys=True)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.25)
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
