"""A writer that kills itself with SIGKILL at a named step of its work on the history, the first time it gets there.

`tests.writer.process_main` arms it where `MEMORYD_TEST_DIES_AT` names a step. A step is a call of the product: the process dies
before it, or when it is done.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from memory_core.store import git_batches
from memory_core.wiki import git_repository
from memory_core.wiki.git_repository import Repository
from workers.writer.history import History


@dataclass(frozen=True, kw_only=True)
class Step:
    owner: Any
    name: str
    after: bool = False
    #: Looks at the arguments; a call for which it is false is none of this step's.
    counts: Callable[..., bool] = lambda *_arguments, **_more: True


def _closes_a(kind: str) -> Callable[..., bool]:
    return lambda tx, of, *_: of == kind and git_batches.open_changes(tx) is not None


def _has_done(history: History, *_: Any) -> bool:
    return bool(history._done)


def _has_entered(history: History, _waiting: set[bytes], known: set[bytes]) -> bool:
    return bool(known & history._done.keys())


STEPS = {
    "a batch is about to be closed": Step(
        owner=git_batches, name="close_open", counts=_closes_a(git_batches.BATCH)
    ),
    "a batch is closed in a transaction that is not committed": Step(
        owner=git_batches, name="close_open", after=True, counts=_closes_a(git_batches.BATCH)
    ),
    "a checkpoint is closed in a transaction that is not committed": Step(
        owner=git_batches, name="close_open", after=True, counts=_closes_a(git_batches.CHECKPOINT)
    ),
    "a closed batch is about to be committed": Step(owner=History, name="_commit"),
    "git is reading the commit": Step(owner=git_repository, name="_data", after=True),
    "the commit has no name that a person knows": Step(owner=Repository, name="_update_index"),
    "the index is ahead of HEAD": Step(owner=Repository, name="_point"),
    "HEAD is moved and nothing is synced": Step(owner=Repository, name="_sync"),
    "the commit is made and nobody remembers it": Step(owner=History, name="_remember"),
    "the commit is about to be entered": Step(owner=History, name="_enter", counts=_has_done),
    "the rows are cleared in a transaction that is not committed": Step(
        owner=git_batches, name="mark_committed", after=True
    ),
    "the rows are cleared": Step(owner=History, name="_forget", counts=_has_entered),
}

#: Of a repository that is made just now.
MAKING = {
    "git is not told yet what nobody commits": Step(owner=Repository, name="leave_out"),
}


def arm(step: str) -> None:
    chosen = (STEPS | MAKING)[step]
    call = getattr(chosen.owner, chosen.name)

    def dying(*arguments: Any, **more: Any) -> Any:
        is_it = chosen.counts(*arguments, **more)
        if is_it and not chosen.after:
            _die()
        value = call(*arguments, **more)
        if is_it:
            _die()
        return value

    setattr(chosen.owner, chosen.name, dying)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
