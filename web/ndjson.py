"""Answers as lines of JSON that are sent while they are read: nothing holds the whole of one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from flask import Response

from memory_core import limits
from memory_core.errors import CoreError

logger = logging.getLogger(__name__)

TYPE = "application/x-ndjson"


def line(value: Any) -> bytes:
    return msgspec.json.encode(value) + b"\n"


def streamed(first: bytes, rest: Callable[[], Iterator[bytes]]) -> Response:
    """`first` and then what `rest` gives. An error on the way is the last line, `{"error": {"code", "error"}}`: the status is sent
    by then, so a reader trusts only an answer that has the last line it waits for."""

    def lines() -> Iterator[bytes]:
        yield first
        try:
            yield from rest()
        except CoreError as error:
            logger.warning(
                "a streamed answer was cut: %s", error, extra={"action": "stream_cut", "code": error.code}
            )
            yield line({"error": {**error.detail, "code": error.code, "error": str(error)}})

    response = Response(_pieces(lines()), content_type=TYPE)
    response.headers["Cache-Control"] = "no-store"
    return response


def _pieces(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Several lines at once: each piece costs a write to the connection."""
    waiting = bytearray()
    for one in lines:
        waiting += one
        if len(waiting) >= limits.STREAM_PIECE_BYTES:
            yield bytes(waiting)
            waiting.clear()
    if waiting:
        yield bytes(waiting)
