"""What is said between this process and the one that runs local models: messages with their length before them."""

from __future__ import annotations

import socket
import struct
from typing import Final

import msgspec

from memory_core import limits
from memory_core.errors import Invalid

_LENGTH: Final = struct.Struct("!I")


class Question(msgspec.Struct, kw_only=True, frozen=True):
    """Embed these texts by the model `name` of `models_dir`, whose files are to be those of `revision`. Urgent: somebody waits."""

    models_dir: str
    name: str
    revision: str
    texts: tuple[str, ...]
    is_urgent: bool


class Answer(msgspec.Struct, kw_only=True, frozen=True):
    """float32, little endian, a row for each text; or code and sentence of what is wrong with the model."""

    dimensions: int = 0
    rows: bytes = b""
    tokens: int = 0
    error: str = ""
    message: str = ""


def send(connection: socket.socket, message: Question | Answer) -> None:
    data = msgspec.msgpack.encode(message)
    connection.sendall(_LENGTH.pack(len(data)) + data)


def receive(connection: socket.socket) -> bytes | None:
    """The next message; None where the other end is gone. Raises `Invalid` for one that is too long, `OSError`."""
    head = _exactly(connection, _LENGTH.size)
    if head is None:
        return None
    (size,) = _LENGTH.unpack(head)
    if size > limits.LOCAL_MESSAGE_MAX_BYTES:
        raise Invalid("a message to the local embedder is too long")
    return _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(min(size - len(parts), 1 << 20))
        if not part:
            return None
        parts += part
    return bytes(parts)
