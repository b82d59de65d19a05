"""Rebuilding the tables from the wiki's files, and files from the tables: asking for it. The writer does it in slices."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core.commands import Answer, command
from memory_core.domain.command import Refusal
from memory_core.store import wiki_files, wiki_tasks
from memory_core.store.audit import record
from memory_core.store.transaction import Transaction

#: What no file of the wiki holds.
CANNOT_COME_BACK = ("observations", "sessions", "handoffs", "tokens", "feedback and counts of reads")
#: What its git does not hold either: several versions of one page between two commits are one there.
NOT_IN_GIT = ("deleted pages (restore-page brings one back from a commit)", "versions between two commits")
#: What stays in git where nobody asked for it.
NOT_ASKED_FOR = ("earlier versions (--history takes them from git)",)


@dataclass(frozen=True, kw_only=True)
class StartReindex:
    """Take the wiki's files into a database that has no pages; `force`: into one that has some.

    `history`: each page that is new to the database gets its earlier versions from git.
    """

    force: bool = False
    history: bool = False


@dataclass(frozen=True, kw_only=True)
class StartHeal:
    """Write lost files again from the versions in the database.

    `broken`: also files that hold no text any more. `accept_deletions`: the other way round, files
    that vanished were deleted on purpose, and their pages go too.
    """

    broken: bool = False
    accept_deletions: bool = False


@command(StartReindex, name="start_reindex")
def start_reindex(body: StartReindex, tx: Transaction) -> Answer | Refusal:
    """Answer: started, kind, cannot_come_back."""
    refusal = _refusal(tx)
    if refusal is not None:
        return refusal
    pages = wiki_files.live_pages(tx)
    if pages and not body.force:
        return Refusal(
            code="conflict",
            message=f"the database holds {pages} pages; its wiki is kept in step without a reindex. Edited files are taken "
            "in by themselves; to take in whole directories that it does not know, use --force",
        )
    lost = (*CANNOT_COME_BACK, *(NOT_IN_GIT if body.history else NOT_ASKED_FOR))
    return _begin(tx, wiki_tasks.REINDEX, {"history": body.history}) | {"cannot_come_back": list(lost)}


@command(StartHeal, name="start_heal")
def start_heal(body: StartHeal, tx: Transaction) -> Answer | Refusal:
    """Answer: started, kind."""
    return _refusal(tx) or _begin(
        tx, wiki_tasks.HEAL, {"broken": body.broken, "accept_deletions": body.accept_deletions}
    )


def _refusal(tx: Transaction) -> Refusal | None:
    task = wiki_tasks.open_task(tx)
    if task is None:
        return None
    return Refusal(code="conflict", message=f"a {task.kind} is under way already; wait for it to finish")


def _begin(tx: Transaction, kind: str, options: dict[str, bool]) -> dict[str, object]:
    wiki_tasks.begin(tx, kind, options)
    record(tx, f"start_{kind}", detail=dict(options))
    return {"started": True, "kind": kind}
