"""The killable child: computes one job after another for its parent, and can be killed in the middle without harm.

It has no lease, no broker and no connection to the gate. It dies with its parent: the kernel sees to that
(`workers.tether`), and so does the end of its standard input.
"""

from __future__ import annotations

import logging
import os
import queue
import sys
import threading
from functools import partial
from typing import IO

from memory_core import config
from memory_core.clock import SystemClock
from memory_core.config import Settings
from memory_core.models.metered import Models
from workers import logs
from workers.pool import frames
from workers.pool.computing import ending_of, run_kind
from workers.pool.tools import ChildTools, Conversation

logger = logging.getLogger(__name__)


def main() -> int:
    stdin, stdout = _private_pipes()
    settings = config.load()
    logs.configure_terminal(settings, "compute")
    talk, models = Conversation(stdout), Models(settings, SystemClock())
    inbox: queue.SimpleQueue[frames.Work] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(stdin, inbox, talk), name="parent", daemon=True).start()
    while True:
        work = inbox.get()
        talk.say(frames.Begun(number=work.number))
        try:
            output = run_kind(work.kind, work.input, partial(_tools, talk, work.number, settings, models))
        except BaseException as error:  # whatever a kind raises ends its job, not this process
            talk.say(ending_of(error, work.number))
            if not isinstance(error, Exception):
                raise
        else:
            talk.say(frames.Done(number=work.number, output=output))
        finally:
            talk.forget(work.number)


def _tools(
    talk: Conversation, number: int, settings: Settings, models: Models, reads_data: bool
) -> ChildTools:
    data = settings if reads_data and not settings.off_data_host else None
    return ChildTools(talk, number, data, SystemClock(), models)


def _listen(stdin: IO[bytes], inbox: queue.SimpleQueue[frames.Work], talk: Conversation) -> None:
    """Take what the parent says also while a kind computes; without a parent there is nothing left to do."""
    try:
        while (message := frames.receive_in_child(stdin)) is not None:
            if isinstance(message, frames.Work):
                inbox.put(message)
            elif isinstance(message, frames.Cancel):
                talk.cancel(message.number)
            else:
                talk.answered(message)
    finally:
        os._exit(1)


def _private_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """The pipes to the parent, out of the way of kinds and libraries that print or read."""
    stdin, stdout = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return stdin, stdout


if __name__ == "__main__":
    sys.exit(main())
