"""A relay between a broker and those who use it, in which a network can fail without a word."""

from __future__ import annotations

import os
import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path

_PEER = struct.Struct("3i")


class Relay:
    """Passes on what comes over a socket. Of deafened processes it takes the requests that wait for doorbells, and never
    answers, refuses or closes: as a path through a network does that has forgotten a connection."""

    def __init__(self, path: Path, target: Path) -> None:
        self._target = target
        self._deaf: set[int] = set()
        #: Processes whose waiting for a doorbell was swallowed.
        self.swallowed: set[int] = set()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(os.fspath(path))
        self._listener.listen(64)
        self._open: set[socket.socket] = {self._listener}
        threading.Thread(target=self._accept, daemon=True).start()

    def deafen(self, *pids: int) -> None:
        self._deaf.update(pids)

    def close(self) -> None:
        for one in list(self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                self._open |= {client, server}
                try:
                    server.connect(os.fspath(self._target))
                except OSError:
                    self._end(client, server)
                    continue
                _Passage(self, client, server)

    def _end(self, *sockets: socket.socket) -> None:
        for one in sockets:
            self._open.discard(one)
            # The other thread may sit in it.
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def is_deaf(self, pid: int, data: bytes) -> bool:
        if pid not in self._deaf or b"BRPOP" not in data:
            return False
        self.swallowed.add(pid)
        return True

    def ended(self, passage: _Passage) -> None:
        self._end(passage.client, passage.server)


class _Passage:
    """One connection, with a thread for each way."""

    def __init__(self, relay: Relay, client: socket.socket, server: socket.socket) -> None:
        self.client, self.server = client, server
        self._relay = relay
        self._pid = _PEER.unpack(client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))[0]
        self._last = b""
        self._is_lost = False
        for way in (self._up, self._down):
            threading.Thread(target=way, daemon=True).start()

    def _up(self) -> None:
        with suppress(OSError):
            while data := self.client.recv(65_536):
                self._last = data
                if not self._is_lost:
                    self._is_lost = self._relay.is_deaf(self._pid, data)
                if not self._is_lost:
                    self.server.sendall(data)
        self._relay.ended(self)

    def _down(self) -> None:
        with suppress(OSError):
            while data := self.server.recv(65_536):
                if not self._is_lost:
                    self.client.sendall(data)
        # The broker is gone. Who waited for a doorbell, deaf, is not told.
        if self._is_lost or self._relay.is_deaf(self._pid, self._last):
            self._is_lost = True
            return
        self._relay.ended(self)
