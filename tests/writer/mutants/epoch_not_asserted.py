"""A writer that does not look whether the database is still its own."""

from __future__ import annotations

from workers.writer import engine


class Whatever(int):
    """An epoch that is equal to any other."""

    __hash__ = int.__hash__

    def __ne__(self, _other: object) -> bool:
        return False


def load(patch=setattr) -> None:
    patch(engine, "epoch_of", lambda _reading: Whatever(0))
