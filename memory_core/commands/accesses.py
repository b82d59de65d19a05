"""Counting that pages were come upon."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core import limits
from memory_core.clock import MICROSECONDS
from memory_core.commands import Answer, command
from memory_core.domain.command import Refusal
from memory_core.errors import Invalid
from memory_core.ids import id_bytes
from memory_core.store import accesses
from memory_core.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class CountAccesses:
    """The principal was shown these pages (ids as text) as hits; at most `ACCESS_PAGES_MAX` of them."""

    page_ids: tuple[str, ...]


@command(CountAccesses, name="count_accesses")
def count_accesses(body: CountAccesses, tx: Transaction) -> Answer | Refusal:
    """Once per page and principal in `ACCESS_THROTTLE_SECONDS`. Answer: counted. Pages that are gone are passed over."""
    if len(body.page_ids) > limits.ACCESS_PAGES_MAX:
        return Refusal(
            code=Invalid.code, message=f"at most {limits.ACCESS_PAGES_MAX} pages are counted at once"
        )
    try:
        ids = [id_bytes(text) for text in dict.fromkeys(body.page_ids)]
    except Invalid as error:
        return Refusal(code=error.code, message=str(error))
    throttle_us = limits.ACCESS_THROTTLE_SECONDS * MICROSECONDS
    return {"counted": accesses.count(tx, ids, throttle_us=throttle_us)}
