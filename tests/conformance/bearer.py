"""Stands before a server and adds the token that a foreign test suite has no option for; all other bytes pass as they are."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class BearerProxy:
    """Listens on a loopback port. One request per connection, so that only heads need to be looked at."""

    def __init__(self, port: int, token: str) -> None:
        self._target = ("127.0.0.1", port)
        self._line = f"Authorization: Bearer {token}\r\nConnection: close\r\n".encode()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        # Closing alone does not wake the thread that accepts.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                part = client.recv(65_536)
                if not part:
                    return
                head += part
            first, _, rest = head.partition(b"\r\n")
            lines, end, body = rest.partition(b"\r\n\r\n")
            kept = [line for line in lines.split(b"\r\n") if not line.lower().startswith(b"connection:")]
            with socket.create_connection(self._target) as server:
                server.sendall(first + b"\r\n" + self._line + b"\r\n".join(kept) + end + body)
                threading.Thread(target=_pass, args=(client, server), daemon=True).start()
                _pass(server, client)


def _pass(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while part := source.recv(65_536):
            target.sendall(part)
