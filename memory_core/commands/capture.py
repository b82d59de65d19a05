"""The command behind every hook: one event becomes one observation of its session.

The hot path. An event of a known session that stays in its directory costs two statements (twins, insert); the session's
row is read once and written once for all events of a batch, and their full text is indexed at its commit.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory_core import limits
from memory_core.clock import MICROSECONDS
from memory_core.commands import Answer, command
from memory_core.commands.handoffs import accept_offer
from memory_core.commands.observing import observation_row
from memory_core.commands.scopes import Scope, ScopeRequest, ensure, resolve
from memory_core.commands.sessions import finalise, write_page_so_far
from memory_core.domain import capture, place
from memory_core.domain.command import Refusal
from memory_core.domain.event import EventKind, HookEvent
from memory_core.ids import session_id_from
from memory_core.store import handoffs, observations, sessions
from memory_core.store.statement import Row
from memory_core.store.transaction import Transaction

_STORED: Answer = {"duplicate": False}
_DUPLICATE: Answer = {"duplicate": True}
#: The agent shrinks its context: what it knew by then is written down first.
_COMPACTIONS = (EventKind.PRE_COMPACT, EventKind.POST_COMPACTION)
_DEBOUNCE_US = limits.LATE_EVENT_DEBOUNCE_SECONDS * MICROSECONDS


@dataclass(frozen=True, kw_only=True)
class RecordObservation:
    """One event, redacted and then `capped` by who sends it, and where its client says it is."""

    event: HookEvent
    #: Who sent it: client family and hook configuration. Two sources may send one event.
    source: str
    workspace: str | None = None
    project: str | None = None
    project_strategy: str = "basename"
    repo_path: str | None = None
    home: str | None = None


@dataclass(frozen=True, kw_only=True)
class _Arrival:
    """One event on its way into its session."""

    event: HookEvent
    session_id: bytes
    session: Row | None
    cwd: str | None
    #: When we heard of it and when it happened, UTC microseconds.
    recorded_at: int
    moment: int


@command(RecordObservation, name="record_observation")
def record(body: RecordObservation, tx: Transaction) -> Answer | Refusal:
    """Store the event; the answer says whether it was a duplicate. Makes session, project and workspace where missing."""
    event = body.event
    session_id = session_id_from(event.session_key)
    session = sessions.current(tx, session_id)
    if session is not None and session["owner"] not in (None, tx.principal):
        return Refusal(code="forbidden", message="this session belongs to another principal")
    recorded_at = tx.envelope.recorded_at if tx.envelope else tx.now
    twin_hash = capture.twin_hash(event)
    if session is not None and _is_duplicate(tx, session_id, event, twin_hash, body.source, recorded_at):
        return _DUPLICATE
    cwd = place.plain_path(event.cwd)
    arrival = _Arrival(
        event=event,
        session_id=session_id,
        session=session,
        cwd=cwd,
        recorded_at=recorded_at,
        moment=capture.moment_of(event.occurred_at, recorded_at),
    )
    project_id = _project_of(tx, body, arrival)
    if session is None:
        _begin(tx, arrival, project_id)
    _store(tx, arrival, project_id, twin_hash, body.source)
    if session is not None:
        _continue(tx, arrival, session)
    if not event.is_boundary and (session is None or session["has_offer"]):
        accept_offer(tx, session_id, agent=event.client, cwd=arrival.cwd)
    if _ends(event):
        _finish(tx, session_id, session)
    elif event.kind in _COMPACTIONS and event.agent_id is None:
        write_page_so_far(tx, session_id)
    return _STORED


def _finish(tx: Transaction, session_id: bytes, before: Row | None) -> None:
    """The session ended; one that had ended already and only says so again stays as it was made then."""
    # What it was offered and did not take up with a first real event goes to the next one.
    handoffs.release(tx, session_id)
    if before is not None and before["finalised_count"] == before["observation_count"]:
        sessions.finalised(tx, session_id, count=before["observation_count"] + 1, page_id=None)
    else:
        finalise(tx, session_id)


def _is_duplicate(
    tx: Transaction, session_id: bytes, event: HookEvent, twin_hash: bytes, source: str, recorded_at: int
) -> bool:
    """Whether the session has this event already: by the vendor's id, or from another source a moment ago."""
    twins = observations.twins(tx, session_id, twin_hash)
    if event.unique_id is not None and twins:
        return True
    return any(
        capture.is_twin(
            source=source,
            occurred_at=event.occurred_at,
            recorded_at=recorded_at,
            earlier_source=twin["source"],
            earlier_occurred_at=twin["occurred_at"],
            earlier_recorded_at=twin["recorded_at"],
        )
        for twin in twins
    )


def _project_of(tx: Transaction, body: RecordObservation, arrival: _Arrival) -> bytes:
    session = arrival.session
    if session is not None and _stays(body, session, arrival.cwd):
        return session["project_id"]
    request = ScopeRequest(
        workspace=body.workspace,
        project=body.project,
        cwd=arrival.event.cwd,
        strategy=body.project_strategy,
        repo_path=body.repo_path,
        home=body.home,
    )
    found: Scope = resolve(tx, request)
    return ensure(tx, found)


def _stays(body: RecordObservation, session: Row, cwd: str | None) -> bool:
    """Whether the event belongs where its session belongs: it names the same scope, or none and is in its tree."""
    if body.project is not None or body.workspace is not None:
        workspace = body.workspace or place.DEFAULT_WORKSPACE
        return body.project == session["project"] and workspace == session["workspace"]
    if cwd is None:
        return True
    tree = session["cwd"]
    return tree is not None and not place.is_too_wide(tree, body.home) and place.is_inside(cwd, tree)


def _tree(cwd: str | None) -> str | None:
    """A directory that a session can be said to live in."""
    return None if cwd is None or place.has_dots(cwd) else cwd


def _title_for_session(event: HookEvent) -> str | None:
    """A session is called by its first prompt; a subagent's prompt is not the person's."""
    return event.title if event.kind is EventKind.USER_PROMPT and event.agent_id is None else None


def _ends(event: HookEvent) -> bool:
    return event.kind is EventKind.SESSION_END and event.agent_id is None


def _begin(tx: Transaction, arrival: _Arrival, project_id: bytes) -> None:
    event = arrival.event
    ends = _ends(event)
    sessions.add(
        tx,
        id=arrival.session_id,
        project_id=project_id,
        owner=tx.principal,
        token_scope=tx.token_scope,
        agent=event.client,
        vendor_key=event.session_key,
        cwd=_tree(arrival.cwd),
        model=event.model,
        title=_title_for_session(event),
        started_at=arrival.moment,
        last_event_at=arrival.moment,
        ended_at=arrival.moment if ends else None,
        end_reason=(event.reason or "ended") if ends else None,
        observation_count=1,
        substance_count=int(not event.is_boundary),
        finalised_count=None,
        refinalise_at=None,
        page_id=None,
    )


def _continue(tx: Transaction, arrival: _Arrival, session: Row) -> None:
    event = arrival.event
    ended_at, end_reason, refinalise_at = session["ended_at"], session["end_reason"], session["refinalise_at"]
    if _ends(event):
        ended_at, end_reason, refinalise_at = arrival.moment, event.reason or "ended", None
    elif ended_at is not None and _resumes(event, session, arrival.moment):
        ended_at, end_reason, refinalise_at = None, None, None
    elif ended_at is not None:
        refinalise_at = tx.now + _DEBOUNCE_US
    sessions.count_event(
        tx,
        arrival.session_id,
        substance=int(not event.is_boundary),
        moment=arrival.moment,
        title=_title_for_session(event),
        cwd=_tree(arrival.cwd),
        model=event.model,
        ended_at=ended_at,
        end_reason=end_reason,
        refinalise_at=refinalise_at,
    )


def _resumes(event: HookEvent, session: Row, moment: int) -> bool:
    """Whether an ended session goes on (rather than an event of it coming late)."""
    is_start = event.kind is EventKind.SESSION_START and event.agent_id is None
    return (is_start or session["end_reason"] == "idle") and moment > session["ended_at"]


def _store(tx: Transaction, arrival: _Arrival, project_id: bytes, twin_hash: bytes, source: str) -> None:
    row = observation_row(
        arrival.event,
        id=tx.new_id(),
        project_id=project_id,
        owner=tx.principal,
        token_scope=tx.token_scope,
        session_id=arrival.session_id,
        twin_hash=twin_hash,
        source=source,
        recorded_at=arrival.recorded_at,
    )
    observations.add(tx, row)
