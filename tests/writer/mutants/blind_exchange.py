"""A page's file is exchanged for the newer one, and what was taken out is deleted unlooked at."""

from __future__ import annotations

from memory_core.wiki import outbox


def _drop_blindly(self, taken, promised):
    self._drop(taken, is_open=False)
    return self._done(promised)


def load(patch=setattr) -> None:
    patch(outbox._Step, "_look_at_taken", _drop_blindly)
    # Nor does it look before: an edit that it sees in time is no merit of the exchange.
    patch(outbox._Step, "_is_ours", lambda *_: True)
