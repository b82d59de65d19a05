"""Runs a command where it reaches nothing of this machine but the ports that are named: a network of its own, a user of its own.

    python tests/pool/apart.py PORT=SOCKET[,PORT=SOCKET…] UID COMMAND…

Must be started by root inside `unshare --net --mount`. Loopback comes up, each PORT on it is passed on through a unix
socket (which knows no network), a Python that lies in a closed home is made reachable, and the command runs as UID.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path


def pump(one: socket.socket, other: socket.socket) -> None:
    try:
        while data := one.recv(65_536):
            other.sendall(data)
    except OSError:
        pass
    for end in (one, other):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def join(one: socket.socket, other: socket.socket) -> None:
    for pair in ((one, other), (other, one)):
        threading.Thread(target=pump, args=pair, daemon=True).start()


def from_port(port: int, path: str) -> None:
    """Whoever connects to the port speaks to who listens at the socket."""
    listener = socket.create_server(("127.0.0.1", port))

    def accept() -> None:
        while True:
            near, _ = listener.accept()
            far = socket.socket(socket.AF_UNIX)
            far.connect(path)
            join(near, far)

    threading.Thread(target=accept, daemon=True).start()


def to_port(path: str, port: int) -> None:
    """The other end, outside: whoever connects to the socket speaks to the port."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()

    def accept() -> None:
        while True:
            near, _ = listener.accept()
            join(near, socket.create_connection(("127.0.0.1", port)))

    threading.Thread(target=accept, daemon=True).start()


def open_the_way(python: Path) -> None:
    """Where this Python lies below a directory that others may not enter, put an open one over that, with nothing else in it.
    Only in this mount namespace."""
    closed = next((above for above in reversed(python.parents) if not above.stat().st_mode & 0o001), None)
    if closed is None:
        return
    held = tempfile.mkdtemp()
    _run("mount", "--bind", str(python), held)
    _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(closed))
    python.mkdir(parents=True)
    _run("mount", "--bind", held, str(python))
    _run("umount", held)
    Path(held).rmdir()


def _run(*words: str) -> None:
    subprocess.run(words, check=True)


def main(passages: str, user: str, *command: str) -> int:
    _run("ip", "link", "set", "lo", "up")
    open_the_way(Path(sys.base_prefix))
    for passage in passages.split(","):
        port, _, path = passage.partition("=")
        from_port(int(port), path)

    def become() -> None:
        os.setgroups([])
        os.setresgid(int(user), int(user), int(user))
        os.setresuid(int(user), int(user), int(user))

    return subprocess.Popen(command, preexec_fn=become).wait()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
