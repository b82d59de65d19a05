"""Each command in a savepoint, so that one that fails does not take the batch with it: what it loses is the point."""

from __future__ import annotations

from memory_core.errors import CoreError
from memory_core.store import driver
from memory_core.store.writing import WriterConnection
from workers.writer.applying import apply_one
from workers.writer.engine import Engine
from workers.writer.report import Fate, Outcome


def _apply_all(self, tx, envelopes):
    outcomes = []
    raw = self.connection.raw
    for envelope in envelopes:
        tx.now = self._clock.now_us()
        raw.execute("SAVEPOINT one")
        try:
            outcomes.append(apply_one(tx, envelope))
            tx.write_held()
        except CoreError:
            tx._inserts, tx._changes, tx._known, tx.failure = {}, {}, {}, None
            outcomes.append(Outcome(envelope, Fate.DEAD))
            _quietly(raw, "ROLLBACK TO one")
        _quietly(raw, "RELEASE one")
    return outcomes


def _quietly(raw, sql):
    try:
        raw.execute(sql)
    except driver.Error:
        pass


def load(patch=setattr) -> None:
    patch(Engine, "_apply_all", _apply_all)
    patch(Engine, "_check_in_transaction", lambda *_: None)
    patch(WriterConnection, "commit", lambda self: _quietly(self.raw, "COMMIT"))
