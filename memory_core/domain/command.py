"""A command on its way: the envelope that the gate appends to the stream and the writer opens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memory_core.errors import CoreError


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """One change of state, asked for by `principal`, with the id that makes it take effect once.

    The body is JSON, already redacted. `body_hash` is a keyed hash of the body as received, so that
    the same id with another body is seen; `not_after` is not part of it.
    """

    #: 16 bytes; scoped by principal.
    id: bytes
    name: str
    version: int
    body: bytes
    body_hash: bytes
    principal: str
    token_scope: str
    #: When the gate took it, UTC microseconds.
    recorded_at: int
    #: Whether the id was made by a client (kept longer) and not by memoryd.
    is_foreign: bool = False
    wants_reply: bool = False
    #: UTC microseconds after which it must not take effect any more; None for no end.
    not_after: int | None = None


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A command's domain says no. Decided before its first write; it takes no effect.

    `code` is one of the error tree's (`invalid`, `not_found`, `conflict`, `forbidden`, …).
    """

    code: str
    message: str
    #: JSON that a program needs to go on; `CoreError.detail`.
    detail: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def of(cls, error: CoreError) -> Refusal:
        """The refusal that `error` stands for."""
        return cls(code=error.code, message=str(error), detail=error.detail)
