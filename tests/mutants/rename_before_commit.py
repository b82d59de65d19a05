"""A page's file is put in place inside the transaction, before its commit; a commit that fails leaves it ahead of the books."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

TARGET = "workers.writer.engine"

_PROMISED = """
    select o.file, v.content from file_outbox o join page_versions v on v.id = o.version_id where o.file = ?
"""


def patch(module: Any) -> None:
    apply_one = module.apply_one

    def early(tx: Any, envelope: Any, **more: Any) -> Any:
        before = set(tx.files)
        outcome = apply_one(tx, envelope, **more)
        for file in tx.files - before:
            row = tx._connection.execute(_PROMISED, (file,)).fetchone()
            if row is not None:
                _rename(tx._connection, row["file"], row["content"])
        return outcome

    module.apply_one = early


def _rename(connection: Any, file: str, content: str) -> None:
    database = Path(connection.execute("pragma database_list").fetchone()["file"])
    target = database.parent.parent / "wiki" / file
    with contextlib.suppress(OSError):
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(".early")
        draft.write_text(content)
        draft.rename(target)
