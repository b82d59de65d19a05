"""Whether the ports that children will listen on are to be had."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

from memory_core.clock import Clock
from memory_core.errors import Unavailable

#: A connection of another program that is over gives its port back by itself.
_PATIENCE_SECONDS: Final = 3.0
_PAUSE_SECONDS: Final = 0.25
#: Linux: the ports that outgoing connections are given.
_EPHEMERAL: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


def require_free(host: str, port: int, clock: Clock, say: Callable[[str], None]) -> None:
    """Return when the address can be listened on; one in use is waited for a little, and `say` told so.

    Raises `Unavailable` that says what may hold it and what to do.
    """
    until = clock.monotonic() + _PATIENCE_SECONDS
    has_said = False
    while (error := _refusal(host, port)) is not None:
        if error.errno != errno.EADDRINUSE or clock.monotonic() >= until:
            raise Unavailable(sentence(host, port, error)) from error
        if not has_said:
            say(f"port {port} on {host} is in use; waiting up to {_PATIENCE_SECONDS:g} s for it")
            has_said = True
        clock.sleep(_PAUSE_SECONDS)


def sentence(host: str, port: int, error: OSError, ephemeral: Path = _EPHEMERAL) -> str:
    """What is wrong with an address that cannot be listened on, and what helps."""
    name = errno.errorcode.get(error.errno or 0, "?")
    why = f"port {port} on {host} cannot be had ({error.strerror or error}, {name})"
    choose = "choose another one with --port, --probe-port or --flower-port"
    if error.errno != errno.EADDRINUSE:
        return f"{why}; {choose}"
    why += ": another program listens on it, or has it for an outgoing connection"
    first, last = _range(ephemeral)
    if not first <= port <= last:
        return f"{why}; {choose}"
    return (
        f"{why} (the system gives those {first} to {last}); {choose}, or keep it free for the next start: "
        f"sysctl -w net.ipv4.ip_local_reserved_ports={port}"
    )


def _range(file: Path) -> tuple[int, int]:
    """Empty (0, -1) where it is not known."""
    try:
        first, last = file.read_text(encoding="ascii").split()
        return int(first), int(last)
    except (OSError, ValueError):
        return 0, -1


def _refusal(host: str, port: int) -> OSError | None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            return error
    return None
