"""Entries leave the stream before the transaction that holds their effect is committed."""

from __future__ import annotations

from typing import Any

TARGET = "workers.writer.loop"


def patch(module: Any) -> None:
    apply = module.WriterLoop._apply

    def early(self: Any, entries: Any) -> None:
        self._queue.delete(entries)
        apply(self, entries)

    module.WriterLoop._apply = early
