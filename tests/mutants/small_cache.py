"""A condition, not a mutant: so little cache that a large transaction reaches the disk before its commit."""

from __future__ import annotations

from typing import Any

TARGET = "memory_core.store.writing"


def patch(module: Any) -> None:
    first = module.WriterConnection.__init__

    def small(self: Any, path: Any) -> None:
        first(self, path)
        self.raw.execute("PRAGMA cache_size=40")
        self.raw.execute("PRAGMA cache_spill=40")

    module.WriterConnection.__init__ = small
