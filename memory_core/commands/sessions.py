"""Ending a session: its page, its handoff and the watermark, in the transaction of the event that ended it."""

from __future__ import annotations

import json
import logging
from collections import Counter
from dataclasses import dataclass, replace
from typing import cast

from memory_core import limits
from memory_core.clock import MICROSECONDS
from memory_core.commands.handoffs import created_at
from memory_core.commands.hook_journal import queue_hook_journal
from memory_core.commands.pages import put_page
from memory_core.commands.versions import PageDraft
from memory_core.domain import durable_page, session_page
from memory_core.domain.capture import moment_of
from memory_core.domain.durable_session import DurableSession, Origin
from memory_core.domain.event import EventKind, Outcome
from memory_core.domain.handoff import Handoff, HandoffState
from memory_core.domain.page import Tier, page_path
from memory_core.domain.session_page import Observed, SessionFacts
from memory_core.errors import Conflict, Invalid, NotFound
from memory_core.ids import id_text
from memory_core.store import durable_sessions, handoffs, observations, session_events, sessions
from memory_core.store.statement import Row
from memory_core.store.transaction import Transaction

logger = logging.getLogger(__name__)

#: Versions of a page that came of the session itself; over anything else a person's word stands.
_OWN_CAUSE = "session"
_BOUNDARIES = {kind.value for kind in EventKind} - {
    EventKind.USER_PROMPT.value,
    EventKind.PRE_TOOL_USE.value,
    EventKind.POST_TOOL_USE.value,
    EventKind.STOP.value,
}


def finalise(
    tx: Transaction, session_id: bytes, *, is_late: bool = False, leaves_handoff: bool = True
) -> bool:
    """Make the session's page and automatic handoff of what there is by now; whether there was something to make.

    A session of boundaries only leaves nothing. Without new events
    since the last time nothing happens. `is_late`: the session ended before, and events of it came
    later: the page is made anew and the handoff too, while it is still open. What another program did long ago
    (`leaves_handoff` false) waits for nobody.
    """
    session = sessions.one(tx, session_id)
    if session is None:
        return False
    count = _count(tx, session)
    if session["substance_count"] == 0:
        sessions.finalised(tx, session_id, count=count, page_id=None)
        return False
    if session["finalised_count"] == count:
        sessions.finalised(tx, session_id, count=count, page_id=None)
        return False
    material = _material(tx, session)
    with tx.on_behalf(session["owner"], session["token_scope"]):
        page_id = _put_page(tx, material)
        if leaves_handoff:
            _leave_handoff(tx, material, is_late=is_late)
        queue_hook_journal(tx, session)
    sessions.finalised(tx, session_id, count=count, page_id=page_id)
    return True


def write_page_so_far(tx: Transaction, session_id: bytes) -> None:
    """Make the page of what there is by now: the agent is about to shrink its context. The session goes on, so
    no handoff is left and the watermark stays."""
    session = sessions.one(tx, session_id)
    if session is None or session["ended_at"] is not None or session["substance_count"] == 0:
        return
    with tx.on_behalf(session["owner"], session["token_scope"]):
        page_id = _put_page(tx, _material(tx, session))
    sessions.finalised(tx, session_id, count=session["finalised_count"], page_id=page_id)


def refinalise_due(tx: Transaction, limit: int = 1) -> int:
    """Work late events in whose pause is over; how many sessions. Ask again while it is `limit`."""
    due = sessions.due(tx, tx.now, limit)
    for session_id in due:
        finalise(tx, session_id, is_late=True)
    return len(due)


def end_if_idle(tx: Transaction, session_id: bytes) -> bool:
    """End a session if it was silent for two hours (its client died, or has no end event); whether it was."""
    session = sessions.one(tx, session_id)
    if session is None or session["ended_at"] is not None:
        return False
    if session["last_event_at"] > tx.now - limits.SESSION_IDLE_SECONDS * MICROSECONDS:
        return False
    sessions.end(tx, session_id, ended_at=session["last_event_at"], reason="idle")
    handoffs.release(tx, session_id)
    finalise(tx, session_id)
    return True


def _exact(tx: Transaction, session: Row) -> DurableSession | None:
    """The session's state where its exact events are written by who works; what hooks told is not asked then."""
    found = durable_sessions.one(tx, session["id"])
    return found if found is not None and found.origin is Origin.CLIENT else None


def _count(tx: Transaction, session: Row) -> int:
    """What the watermark compares: how much of the session there is."""
    exact = _exact(tx, session)
    return session["observation_count"] if exact is None else exact.last_sequence


@dataclass(frozen=True, kw_only=True)
class _Material:
    """What page and handoff of a session are made of."""

    session: Row
    project_id: bytes
    facts: SessionFacts
    observed: list[Observed]


def _material(tx: Transaction, session: Row) -> _Material:
    exact = _exact(tx, session)
    if exact is not None:
        events = session_events.newest(
            tx,
            exact.id,
            through=exact.last_sequence,
            limit=limits.SESSION_PAGE_OBSERVATIONS_MAX,
            max_bytes=limits.SESSION_PAGE_EVENT_BYTES,
        )
        return _Material(
            session=session,
            project_id=session["project_id"],
            facts=replace(_facts(session), observation_count=exact.last_sequence),
            observed=durable_page.observed(events),
        )
    rows = observations.projection(
        tx,
        session["id"],
        limit=limits.SESSION_PAGE_OBSERVATIONS_MAX,
        look_back=limits.SESSION_PAGE_LOOK_BACK_ROWS,
        body_max_chars=limits.SESSION_PAGE_TEXT_MAX_CHARS + 1,
    )
    return _Material(
        session=session,
        project_id=_home(session, rows),
        facts=_facts(session),
        observed=[_observed(row) for row in rows],
    )


def _home(session: Row, rows: list[Row]) -> bytes:
    """The project in which most of the session took place: one that began in a home moved on to a repository."""
    landed = Counter(row["project_id"] for row in rows if row["kind"] not in _BOUNDARIES)
    if not landed:
        return session["project_id"]
    best, most = landed.most_common(1)[0]
    return session["project_id"] if landed[session["project_id"]] == most else best


def _put_page(tx: Transaction, material: _Material) -> bytes | None:
    """The page's id; None where a person took the page over or away, and it is left alone."""
    session, project_id = material.session, material.project_id
    page = session_page.build(material.facts, material.observed)
    path = session_page.path_of(material.facts, page.title)
    if session["page_id"] is not None:
        before = sessions.page_of(tx, session["page_id"])
        if before is None or before["tombstoned_at"] is not None or before["cause"] != _OWN_CAUSE:
            return None
        path, project_id = before["path"], before["project_id"]
    try:
        done = put_page(
            tx,
            project_id,
            PageDraft(
                path=page_path(path),
                body=_with_front_matter(page),
                title=page.title,
                kind="session",
                tier=Tier.EPISODIC,
                cause=_OWN_CAUSE,
                session_id=session["id"],
            ),
        )
    except (Invalid, Conflict, NotFound) as error:
        # Said before anything was written. A page that cannot be must not keep the session from ending.
        logger.warning(
            "a session page was refused",
            extra={"action": "session_page_refused", "session": id_text(session["id"]), "code": error.code},
        )
        return None
    return done.page_id


def _with_front_matter(page: session_page.SessionPage) -> str:
    # A JSON string is a YAML string.
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in page.front_matter.items()]
    return "\n".join(["---", *lines, "---", page.body])


def _leave_handoff(tx: Transaction, material: _Material, *, is_late: bool) -> None:
    session, project_id = material.session, material.project_id
    draft = session_page.automatic_draft(material.facts, material.observed)
    earlier = handoffs.automatic_of(tx, session["id"])
    if earlier is not None and earlier.state is HandoffState.OPEN:
        at = earlier.created_at if is_late else created_at(tx, project_id)
        handoffs.rewrite(tx, earlier.id, draft, at)
        return
    if is_late and earlier is not None:
        return  # it was given away or made void: what came late stands on the page
    cwd = session["cwd"] if project_id == session["project_id"] else None
    at = created_at(tx, project_id)
    handoffs.expire_automatic(tx, project_id, cwd=cwd, owner=session["owner"])
    made = Handoff(
        id=tx.new_id(),
        draft=draft,
        is_manual=False,
        created_at=at,
        cwd=cwd,
        owner=session["owner"],
        from_session_id=session["id"],
    )
    handoffs.add(tx, made, project_id=project_id, token_scope=tx.token_scope)


def _facts(session: Row) -> SessionFacts:
    names = (
        "id",
        "agent",
        "started_at",
        "observation_count",
        "model",
        "cwd",
        "title",
        "ended_at",
        "end_reason",
    )
    return SessionFacts(**{name: session[name] for name in names})


def _observed(row: Row) -> Observed:
    return Observed(
        kind=EventKind(row["kind"]),
        title=row["title"],
        at=moment_of(row["occurred_at"], row["recorded_at"]),
        body=row["body"],
        tool=row["tool"],
        tool_family=row["tool_family"],
        command=row["command"],
        paths=tuple(cast("list[str]", json.loads(row["paths"]))) if row["paths"] else (),
        outcome=Outcome(row["outcome"] or Outcome.UNKNOWN.value),
        agent_id=row["agent_id"],
    )
