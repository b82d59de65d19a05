"""What a worker and its compute child say to each other over two pipes: four bytes of length, then one message.

The lease never crosses: the child asks its parent for what needs it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import IO, Any

import msgspec

from memory_core import limits

_LENGTH = struct.Struct(">I")


class Work(msgspec.Struct, tag="work", frozen=True):
    """Compute this. `number` names it in every message about it."""

    number: int
    kind: str
    #: The kind's input, as JSON.
    input: bytes


class Cancel(msgspec.Struct, tag="cancel", frozen=True):
    """Nobody wants the result of that work any more."""

    number: int


class Reply(msgspec.Struct, tag="reply", frozen=True):
    """The answer to an `Ask`; `error` is the code of what went wrong, empty when nothing did."""

    number: int
    value: Mapping[str, Any]
    error: str = ""


class Ask(msgspec.Struct, tag="ask", frozen=True):
    """What the child cannot do itself: `/pool/<path>` with the lease of its job added."""

    number: int
    path: str
    body: Mapping[str, Any]
    key: str


class Begun(msgspec.Struct, tag="begun", frozen=True):
    """The work was read and is being computed: whatever ends the child before this is nothing that the work did."""

    number: int


class Progress(msgspec.Struct, tag="progress", frozen=True):
    number: int
    text: str


class Done(msgspec.Struct, tag="done", frozen=True):
    """The kind's output, as JSON."""

    number: int
    output: bytes


class Failed(msgspec.Struct, tag="failed", frozen=True):
    """It raised. `ending` is how the job ends by that: fail, release or cancel; `code` is a fixed phrase's."""

    number: int
    ending: str
    code: str
    is_permanent: bool = False
    #: The error's type and stack, where nobody expected it.
    exception: Mapping[str, Any] | None = None


ToChild = Work | Cancel | Reply
FromChild = Begun | Ask | Progress | Done | Failed

_to_child = msgspec.msgpack.Decoder(ToChild)
_from_child = msgspec.msgpack.Decoder(FromChild)
_encoder = msgspec.msgpack.Encoder()


def send(stream: IO[bytes], message: ToChild | FromChild) -> None:
    """Write one message whole. Raises `OSError` when the other side is gone."""
    data = _encoder.encode(message)
    if len(data) > limits.POOL_FRAME_MAX_BYTES:
        raise ValueError("a message between worker and child is too long")
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def receive_in_child(stream: IO[bytes]) -> ToChild | None:
    """The next message, None at the end."""
    data = _receive(stream)
    return None if data is None else _to_child.decode(data)


def receive_from_child(stream: IO[bytes]) -> FromChild | None:
    data = _receive(stream)
    return None if data is None else _from_child.decode(data)


def _receive(stream: IO[bytes]) -> bytes | None:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack(head)
    if size > limits.POOL_FRAME_MAX_BYTES:
        raise ValueError("a message between worker and child is too long")
    data = stream.read(size)
    return data if len(data) == size else None
