"""Loopback ports for servers that tests start."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

#: Below the range of outgoing connections: one of those may have the port by the time that its server starts, and a poll of a
#: port in that range, while nobody listens, can connect to itself and then holds the port.
_FIRST, _LAST = 20_000, 32_000


def free_ports(count: int) -> list[int]:
    """So many different ports that nobody listens on."""
    with ExitStack() as held:
        found: list[int] = []
        while len(found) < count:
            port = random.SystemRandom().randrange(_FIRST, _LAST)
            if _is_held(port, held):
                found.append(port)
        return found


def free_pair() -> int:
    """A port that is free together with the next one (the probes')."""
    while True:
        port = random.SystemRandom().randrange(_FIRST, _LAST)
        with ExitStack() as held:
            if _is_held(port, held) and _is_held(port + 1, held):
                return port


def _is_held(port: int, held: ExitStack) -> bool:
    probe = held.enter_context(socket.socket())
    try:
        probe.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True
