"""Each command of a batch in a savepoint of its own, so that one that fails does not take the others with it.

It looks kinder and loses events: on a full disk SQLite rolls the whole transaction back, `ROLLBACK TO` then finds
no savepoint, and what follows runs outside of any transaction.
"""

from __future__ import annotations

import contextlib
from typing import Any

TARGET = "workers.writer.engine"


def patch(module: Any) -> None:
    from memory_core.store.writing import WriterConnection

    commit = WriterConnection.commit

    def apply_all(self: Any, tx: Any, envelopes: Any) -> Any:
        outcomes = []
        for envelope in envelopes:
            tx.now = self._clock.now_us()
            with contextlib.suppress(Exception):
                self.connection.raw.execute("SAVEPOINT one")
            try:
                outcomes.append(module.apply_one(tx, envelope))
                tx.write_held()
                self.connection.raw.execute("RELEASE one")
            except Exception:
                tx._inserts, tx._changes, tx._known, tx.failure = {}, {}, {}, None
                with contextlib.suppress(Exception):
                    self.connection.raw.execute("ROLLBACK TO one")
                    self.connection.raw.execute("RELEASE one")
                outcomes.append(module.Outcome(envelope, module.Fate.DEAD))
        return outcomes

    def commit_what_is_there(self: Any) -> None:
        if self.in_transaction:
            commit(self)

    WriterConnection.commit = commit_what_is_there
    module.Engine._apply_all = apply_all
    module.Engine._check_in_transaction = lambda self, envelope: None
