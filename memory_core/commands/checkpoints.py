"""Checkpoints: named states of the wiki's history, before and after what cannot be undone by writing again.

A checkpoint has its id in the transaction that asks for it; its commit follows within seconds, from the versions
that the database keeps. So a state is safe before anything is committed, and no command waits for git.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory_core import limits
from memory_core.commands import Answer, command
from memory_core.domain.command import Refusal
from memory_core.ids import id_text
from memory_core.store import git_batches
from memory_core.store.audit import record
from memory_core.store.transaction import Transaction


def checkpoint(tx: Transaction, message: str = "") -> str | None:
    """The id of a checkpoint of the pages as they are now; where nothing changed, that of the one before. None while
    there was never anything to keep."""
    batch = git_batches.close_open(tx, git_batches.CHECKPOINT, message) or git_batches.newest(tx)
    return None if batch is None else id_text(batch.id)


@dataclass(frozen=True, kw_only=True)
class MakeCheckpoint:
    """Commit the pages as they are now. `message` becomes the message of the commit."""

    message: str = ""


@command(MakeCheckpoint, name="make_checkpoint")
def make_checkpoint(body: MakeCheckpoint, tx: Transaction) -> Answer | Refusal:
    """Answer: checkpoint (its id, None while there is nothing to keep), commit (None until it is made), changed (whether
    there was anything new to commit)."""
    if len(body.message) > limits.CHECKPOINT_MESSAGE_MAX_CHARS:
        return Refusal(
            code="invalid",
            message=f"the message of a checkpoint has at most {limits.CHECKPOINT_MESSAGE_MAX_CHARS} characters",
        )
    made = git_batches.close_open(tx, git_batches.CHECKPOINT, body.message)
    batch = made or git_batches.newest(tx)
    if made is not None:
        record(tx, "make_checkpoint", detail={"checkpoint": id_text(made.id)})
    return {
        "checkpoint": None if batch is None else id_text(batch.id),
        "commit": None if batch is None else batch.commit_id,
        "changed": made is not None,
    }
