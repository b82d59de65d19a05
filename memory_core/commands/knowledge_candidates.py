"""What a distillation says of a session becomes knowledge: each candidate once, each with the events that it was drawn from."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from memory_core.commands import knowledge_entries
from memory_core.domain.directory import DirectoryId
from memory_core.domain.distillation import Candidate, Tombstone, Upsert
from memory_core.domain.knowledge import (
    Origin,
    Provenance,
    Verdict,
    checked_confidence,
    checked_content,
    checked_key,
    directory_of_project,
    takes_away,
    verdict_on_upsert,
)
from memory_core.errors import Conflict
from memory_core.ids import id_text
from memory_core.store import knowledge, knowledge_sources, sessions
from memory_core.store.knowledge_changes import Said
from memory_core.store.transaction import Transaction

logger = logging.getLogger(__name__)
Action = Literal["upserted", "tombstoned", "skipped"]
_UPSERTED: Final = "upserted"
_TOMBSTONED: Final = "tombstoned"
_SKIPPED: Final = "skipped"


@dataclass(frozen=True, kw_only=True)
class Distilled:
    """The job that made candidates, and the session that it made them of."""

    job_id: bytes
    provenance: Provenance
    #: In which project a new entry's page goes.
    project_id: bytes
    #: None: the session's client named none; the project's own then.
    directory: DirectoryId | None


@dataclass(frozen=True, kw_only=True)
class Applied:
    """What became of a candidate. `version` of an upsert need not be the one that holds (`is_active`)."""

    index: int
    key: str
    action: Action
    entry_id: bytes | None = None
    version: int | None = None
    is_active: bool = False


def apply_candidates(
    tx: Transaction, source: Distilled, candidates: Sequence[Candidate], *, first_index: int = 0
) -> list[Applied]:
    """Enter candidates, the first of which is number `first_index` of its job. One that was entered before is passed over with the same
    result, so a slice may come twice. The job's row in `distillations` must be there.

    A candidate's wish for a pin is not heard: only somebody pins. Raises `Invalid` for a key, text or confidence that cannot be;
    nothing is written then. The verdicts are in `memory_core.domain.knowledge`.
    """
    for candidate in candidates:
        checked_key(candidate.key)
        checked_confidence(candidate.confidence)
        if isinstance(candidate, Upsert):
            checked_content(candidate.content)
    return [_apply(tx, source, first_index + place, each) for place, each in enumerate(candidates)]


def _apply(tx: Transaction, source: Distilled, index: int, candidate: Candidate) -> Applied:
    before = knowledge_sources.result(tx, source.job_id, index)
    if before is not None:
        return Applied(
            index=index,
            key=candidate.key,
            action=before["action"],
            entry_id=before["knowledge_id"],
            version=before["version"],
        )
    try:
        enter = _upsert if isinstance(candidate, Upsert) else _tombstone
        done = enter(tx, source, index, candidate)  # pyright: ignore[reportArgumentType]
    except Conflict:
        # Said before anything was written: one full entry must not keep the others from being known.
        logger.warning(
            "an entry takes no further version; what was distilled for it is passed over",
            extra={"action": "knowledge_full", "job": id_text(source.job_id)},
        )
        done = Applied(index=index, key=candidate.key, action=_SKIPPED)
    knowledge_sources.add_result(
        tx, source.job_id, index, action=done.action, entry_id=done.entry_id, version=done.version
    )
    return done


def _upsert(tx: Transaction, source: Distilled, index: int, candidate: Upsert) -> Applied:
    directory = source.directory or directory_of_project(source.project_id)
    entry = knowledge.by_identity(tx, directory, candidate.key)
    said = Said(
        content=candidate.content,
        confidence=float(candidate.confidence),
        origin=Origin.DISTILLATION,
        provenance=source.provenance,
        source_session_id=_session(tx, source),
        job_id=source.job_id,
        candidate_index=index,
    )
    verdict = Verdict.TAKE
    if entry is not None:
        verdict = verdict_on_upsert(
            knowledge.standing(tx, entry),
            said.content,
            said.confidence,
            was_said_before=knowledge.was_said(tx, entry.id, said.content),
        )
    if entry is not None and verdict is Verdict.SKIP:
        return _skipped(index, candidate, entry)
    if entry is not None and verdict is Verdict.KEEP_ASIDE:
        number = knowledge_entries.keep_aside(tx, entry, said)
        return Applied(index=index, key=candidate.key, action=_UPSERTED, entry_id=entry.id, version=number)
    made = knowledge_entries.learn(
        tx, said, entry=entry, project_id=source.project_id, directory=directory, key=candidate.key
    )
    return Applied(
        index=index,
        key=candidate.key,
        action=_UPSERTED,
        entry_id=made.id,
        version=made.version,
        is_active=True,
    )


def _tombstone(tx: Transaction, source: Distilled, index: int, candidate: Tombstone) -> Applied:
    directory = source.directory or directory_of_project(source.project_id)
    entry = knowledge.by_identity(tx, directory, candidate.key)
    if entry is None:
        return Applied(index=index, key=candidate.key, action=_SKIPPED)
    if not takes_away(knowledge.standing(tx, entry), candidate.confidence):
        return _skipped(index, candidate, entry)
    knowledge_entries.forget(
        tx,
        entry,
        Origin.DISTILLATION,
        float(candidate.confidence),
        provenance=source.provenance,
        job_id=source.job_id,
        candidate_index=index,
    )
    return Applied(
        index=index, key=candidate.key, action=_TOMBSTONED, entry_id=entry.id, version=entry.version
    )


def _skipped(index: int, candidate: Candidate, entry: knowledge.Entry) -> Applied:
    return Applied(index=index, key=candidate.key, action=_SKIPPED, entry_id=entry.id, version=entry.version)


def _session(tx: Transaction, source: Distilled) -> bytes | None:
    """The session, unless it was deleted while its job ran."""
    session_id = source.provenance.session_id
    return session_id if sessions.one(tx, session_id) is not None else None
