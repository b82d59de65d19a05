"""Entries leave the stream before their effect is committed."""

from __future__ import annotations

from workers.writer.loop import WriterLoop

_apply = WriterLoop._apply


def _delete_then_apply(self, entries):
    self._queue.delete(entries)
    _apply(self, entries)


def load(patch=setattr) -> None:
    patch(WriterLoop, "_apply", _delete_then_apply)
