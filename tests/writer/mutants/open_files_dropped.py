"""A file that was taken out is deleted although a program has it open and is about to save into it."""

from __future__ import annotations

from memory_core.wiki import outbox


def load(patch=setattr) -> None:
    patch(outbox, "is_open_for_writing", lambda *_: False)
