"""What hooks told of a session, written as its transcript: turn by turn, in slices, at its end and now and then before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from memory_core import job_kind, limits
from memory_core.commands.compaction import queue_compaction
from memory_core.commands.distillation import queue_distillation
from memory_core.commands.durable_turns import append_turn
from memory_core.domain import hook_journal, transcript_digest
from memory_core.domain.durable_session import DurableSession, Origin
from memory_core.domain.event import EventKind, Outcome
from memory_core.domain.hook_journal import Observed
from memory_core.domain.session_event import NewEvent, TranscriptKind
from memory_core.ids import id_text
from memory_core.store import compactions, durable_sessions, observations, session_events, session_jobs
from memory_core.store.hook_journals import KIND
from memory_core.store.statement import Row
from memory_core.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class Written:
    """What one slice came to."""

    turns: int
    unobserved: int
    #: The observation up to which nothing is left, and whether there are more.
    through: int
    has_more: bool


def queue_hook_journal(tx: Transaction, session: Row) -> bool:
    """Have what hooks told of a session written; whether a job was made for that now. One for each number of observations, and one
    more at the session's end, which may come without another observation."""
    if not session["observation_count"] or KIND not in job_kind.kinds:
        return False
    durable = durable_sessions.one(tx, session["id"])
    if durable is not None and durable.origin is not Origin.HOOKS:
        return False
    parts = [id_text(session["id"]), str(session["observation_count"])]
    _, is_new = job_kind.enqueue(
        tx,
        KIND,
        source_digest=job_kind.digest_of(*parts, *([] if session["ended_at"] is not None else ["open"])),
        project_id=session["project_id"],
        subject=session_jobs.subject_of(session["id"]),
    )
    return is_new


def write_slice(tx: Transaction, session: Row, *, after: int) -> Written | None:
    """Write the turns of the next observations behind `after` and behind what was written before; None where the session's
    transcript is another's, or is being deleted."""
    durable = _durable(tx, session)
    if durable is None:
        return None
    begun = max(after, _written_through(tx, durable))
    rows = observations.journal(tx, durable.id, after=begun, limit=limits.HOOK_JOURNAL_OBSERVATIONS)
    has_more = len(rows) == limits.HOOK_JOURNAL_OBSERVATIONS
    folded = hook_journal.fold(
        [_observed(row) for row in rows],
        after=begun,
        is_ended=not has_more and session["ended_at"] is not None,
        must_advance=has_more,
    )
    turns = [turn for turn in folded.turns if turn.events]
    for turn in turns:
        events = [NewEvent(kind=kind, payload_json=_json(payload)) for kind, payload in turn.events]
        durable = _append(tx, durable, events)
    return Written(
        turns=len(turns),
        unobserved=sum(len(turn.unobserved) for turn in turns),
        through=folded.through,
        has_more=has_more,
    )


def follow_up(tx: Transaction, session: Row, *, compact_through: int | None) -> dict[str, str | None]:
    """Queue what is made of a session that was written: knowledge, where it has ended, and a summary of its beginning up to
    `compact_through`, also while it goes on. The ids of the jobs."""
    durable = durable_sessions.one(tx, session["id"])
    made: dict[str, str | None] = {"distillation": None, "compaction": None}
    if durable is None:
        return made
    if session["ended_at"] is not None:
        distillation = queue_distillation(tx, durable)
        made["distillation"] = None if distillation is None else id_text(distillation)
    if compact_through is not None and compactions.unfinished(tx, durable.id) is None:
        made["compaction"] = id_text(queue_compaction(tx, durable, compact_through)[0])
    return made


def _durable(tx: Transaction, session: Row) -> DurableSession | None:
    """The session's transcript, begun where there is none yet; with the client and model that are told now as its snapshot."""
    session_id = session["id"]
    durable = durable_sessions.one(tx, session_id)
    if durable is None:
        if durable_sessions.is_hidden(tx, session_id):
            return None
        durable_sessions.add(
            tx,
            session_id=session_id,
            origin=Origin.HOOKS.value,
            host=None,
            device=None,
            inode=None,
            path=None,
            model_reference=None,
            lease_hash=None,
            lease_until=None,
            has_replayed=0,
            last_sequence=0,
            digest=transcript_digest.start(session_id),
            closed_at=None,
            deleted_at=None,
            updated_at=tx.now,
        )
        durable = durable_sessions.one(tx, session_id)
    if durable is None or durable.origin is not Origin.HOOKS:
        return None
    return _with_snapshot(tx, durable, session)


def _with_snapshot(tx: Transaction, durable: DurableSession, session: Row) -> DurableSession:
    """What a session works with may change under its hooks: a change is a revision of its snapshot and an event."""
    config = {"agent": session["agent"], "model": session["model"]}
    before = durable_sessions.snapshot(tx, durable.id)
    if before is not None and msgspec.json.decode(before["config_json"]) == config:
        return durable
    revision = 1 if before is None else before["revision"] + 1
    durable_sessions.add_snapshot(
        tx, durable.id, revision=revision, schema_version=1, config_json=_json(config), authority_json="{}"
    )
    if before is None:
        return durable
    drift = {"record": "snapshot_drift", "version": 1, "revision": revision, "config": config}
    return _append(tx, durable, [NewEvent(kind=TranscriptKind.AUDIT, payload_json=_json(drift))])


def _append(tx: Transaction, durable: DurableSession, events: list[NewEvent]) -> DurableSession:
    written = append_turn(tx, durable, events, by_holder=False)
    return durable.at(last_sequence=written.last_sequence, digest=written.digest)


def _written_through(tx: Transaction, durable: DurableSession) -> int:
    """The last observation that is in the transcript: the last event of each turn says so."""
    event = session_events.last_with_record(tx, durable.id, hook_journal.TURN)
    return 0 if event is None else int(msgspec.json.decode(event.payload_json)["last_observation"])


def _observed(row: Row) -> Observed:
    return Observed(
        seq=row["seq"],
        kind=EventKind(row["kind"]),
        body=row["body"],
        tool=row["tool"],
        call_id=row["tool_call"],
        command=row["command"],
        paths=tuple(json.loads(row["paths"])) if row["paths"] else (),
        outcome=Outcome(row["outcome"]) if row["outcome"] else Outcome.UNKNOWN,
        result=row["result"],
        agent_id=row["agent_id"],
    )


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
