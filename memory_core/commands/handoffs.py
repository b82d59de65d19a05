"""Handoffs: begin one by hand, offer it to a session that starts, accept, cancel, release.

An offer is no acceptance: a session that is opened and closed again must not eat what was left for the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memory_core import limits
from memory_core.clock import MICROSECONDS, rfc3339
from memory_core.commands import Answer, command
from memory_core.commands.scopes import Scope, ScopeRequest, ensure, resolve
from memory_core.domain import handoff as rules
from memory_core.domain import place
from memory_core.domain.capture import session_key
from memory_core.domain.command import Refusal
from memory_core.domain.handoff import Draft, Handoff, HandoffState, Move
from memory_core.errors import Invalid
from memory_core.ids import id_bytes, id_text, session_id_from
from memory_core.store import handoffs, sessions
from memory_core.store.audit import record
from memory_core.store.transaction import Transaction

_OFFER_US = limits.HANDOFF_OFFER_SECONDS * MICROSECONDS


@dataclass(frozen=True, kw_only=True)
class OfferHandoff:
    """What is there for the session that starts? `session_id` is the vendor's, or ours as text."""

    session_id: str
    agent: str
    cwd: str | None = None
    workspace: str | None = None
    project: str | None = None
    project_strategy: str = "basename"
    repo_path: str | None = None
    home: str | None = None


@dataclass(frozen=True, kw_only=True)
class BeginHandoff:
    """Leave a handoff by hand; texts beyond their limits are cut and say so."""

    summary: str
    open_questions: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    files_touched: tuple[str, ...] = ()
    cwd: str | None = None
    workspace: str | None = None
    project: str | None = None
    session_id: str | None = None
    from_agent: str | None = None
    to_agent: str | None = None
    model: str | None = None
    #: For everybody who sees the project, not only for its principal.
    shared: bool = False


@dataclass(frozen=True, kw_only=True)
class AcceptHandoff:
    """Take the best one that is there (or the named one) at once."""

    session_id: str | None = None
    agent: str | None = None
    cwd: str | None = None
    workspace: str | None = None
    project: str | None = None
    handoff_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class CancelHandoff:
    """Close an open or offered handoff, so that nobody gets it."""

    handoff_id: str
    #: Also another principal's; only for tokens of scope `admin`.
    any_owner: bool = False


@command(OfferHandoff, name="offer_handoff")
def offer(body: OfferHandoff, tx: Transaction) -> Answer | Refusal:
    """The handoff for a session, the same one each time it asks until it accepts; `handoff_id` None if there is none.

    Asked again, the offer's time begins anew. Answer: see `_answer`.
    """
    session_id = _session_id(body.session_id)
    again = handoffs.offered_to(tx, session_id)
    if again is not None:
        found: Handoff | None = handoffs.handoff_from(again)
    else:
        release_expired_offers(tx)
        found = _best(tx, body, session_id)
    if found is None or rules.after(found.state, Move.OFFER) is None:
        return _nothing()
    if not handoffs.offer(tx, found, session_id=session_id, until=tx.now + _OFFER_US):
        return _nothing()
    return _answer(found, HandoffState.OFFERED)


@command(BeginHandoff, name="begin_handoff")
def begin(body: BeginHandoff, tx: Transaction) -> Answer | Refusal:
    """Store an open handoff; nothing else is closed by it. Makes the project where it is missing."""
    draft = rules.capped(
        Draft(
            summary=body.summary,
            open_questions=body.open_questions,
            next_steps=body.next_steps,
            files_touched=body.files_touched,
            from_agent=body.from_agent,
            to_agent=body.to_agent,
            model=body.model,
        )
    )
    if not draft.summary:
        return Refusal(code="invalid", message="a handoff needs a summary")
    session_id = None if body.session_id is None else _session_id(body.session_id)
    found = _scope(tx, body, session_id)
    is_known = session_id is not None and sessions.one(tx, session_id) is not None
    project_id = ensure(tx, found)
    made = Handoff(
        id=tx.new_id(),
        draft=draft,
        is_manual=True,
        created_at=created_at(tx, project_id),
        cwd=place.plain_path(body.cwd),
        owner=None if body.shared else tx.principal,
        from_session_id=session_id if is_known else None,
    )
    handoffs.add(tx, made, project_id=project_id, token_scope=tx.token_scope)
    record(
        tx, "insert_handoff", project_id=project_id, detail={"handoff": id_text(made.id), "is_manual": True}
    )
    return {
        "handoff_id": id_text(made.id),
        "state": made.state.value,
        "workspace": found.workspace,
        "project": found.project,
        "created_at": rfc3339(made.created_at),
    }


@command(AcceptHandoff, name="accept_handoff")
def accept(body: AcceptHandoff, tx: Transaction) -> Answer | Refusal:
    """Accept what is offered to the session, else the named one, else the best open one; `handoff_id` None if there is none."""
    session_id = None if body.session_id is None else _session_id(body.session_id)
    if body.handoff_id is not None:
        named = _visible(tx, body.handoff_id, any_owner=False)
        if isinstance(named, Refusal):
            return named
        if named.state is HandoffState.OFFERED and named.offered_to != session_id:
            return Refusal(
                code="conflict", message="this handoff is offered to another session at the moment"
            )
        if rules.after(named.state, Move.ACCEPT) is None:
            return Refusal(code="conflict", message=f"this handoff is {named.state.value} already")
        found: Handoff | None = named
    else:
        release_expired_offers(tx)
        offered = None if session_id is None else handoffs.offered_to(tx, session_id)
        found = _best(tx, body, session_id) if offered is None else handoffs.handoff_from(offered)
    if found is None or not _accept(tx, found, session_id, body.agent, place.plain_path(body.cwd)):
        return _nothing()
    return _answer(found, HandoffState.ACCEPTED)


@command(CancelHandoff, name="cancel_handoff")
def cancel(body: CancelHandoff, tx: Transaction) -> Answer | Refusal:
    """Expire one handoff; the answer tells whether it was still to be had, and its state now."""
    if body.any_owner and tx.token_scope != "admin":  # noqa: S105
        return Refusal(
            code="forbidden", message="only a token of scope admin may cancel another principal's handoff"
        )
    found = _visible(tx, body.handoff_id, any_owner=body.any_owner)
    if isinstance(found, Refusal):
        return found
    is_cancelled = rules.after(found.state, Move.EXPIRE) is not None and handoffs.expire(tx, found)
    state = HandoffState.EXPIRED if is_cancelled else found.state
    if is_cancelled:
        record(tx, "cancel_handoff", detail={"handoff": id_text(found.id)})
    return {"handoff_id": body.handoff_id, "cancelled": is_cancelled, "state": state.value}


def accept_offer(tx: Transaction, session_id: bytes, *, agent: str, cwd: str | None) -> None:
    """The session went to work: what is offered to it is its own."""
    offered = handoffs.offered_to(tx, session_id)
    if offered is not None:
        _accept(tx, handoffs.handoff_from(offered), session_id, agent, cwd)


def release_expired_offers(tx: Transaction) -> int:
    """Open again what was offered and not taken in its time; how many. Due every minute or so."""
    return handoffs.release_late(tx)


def created_at(tx: Transaction, project_id: bytes) -> int:
    """Now, but later than every open handoff of the project: a clock that stepped back must not make the
    newest one look old."""
    return max(tx.now, handoffs.newest_at(tx, project_id) + 1)


def _accept(
    tx: Transaction, found: Handoff, session_id: bytes | None, agent: str | None, cwd: str | None
) -> bool:
    row = handoffs.one(tx, found.id)
    if row is None or not handoffs.accept(tx, found, session_id=session_id, agent=agent):
        return False
    for older in rules.superseded(found, handoffs.open_ones(tx, row["project_id"], found.owner), cwd=cwd):
        handoffs.expire(tx, older)
    detail = {"handoff": id_text(found.id), "session": id_text(session_id) if session_id else None}
    record(tx, "accept_handoff", project_id=row["project_id"], detail=detail)
    return True


def _best(tx: Transaction, body: OfferHandoff | AcceptHandoff, session_id: bytes | None) -> Handoff | None:
    project_id = _scope(tx, body, session_id).project_id
    if project_id is None:
        return None
    candidates = handoffs.open_ones(tx, project_id, tx.principal)
    return rules.best(candidates, cwd=place.plain_path(body.cwd), session_id=session_id)


def _scope(
    tx: Transaction, body: OfferHandoff | AcceptHandoff | BeginHandoff, session_id: bytes | None
) -> Scope:
    """The named project, else the session's, else the directory's."""
    known = None if session_id is None else sessions.one(tx, session_id)
    if known is not None and body.project is None and body.workspace is None:
        return Scope(workspace=known["workspace"], project=known["project"], project_id=known["project_id"])
    is_offer = isinstance(body, OfferHandoff)
    return resolve(
        tx,
        ScopeRequest(
            workspace=body.workspace,
            project=body.project,
            cwd=body.cwd,
            strategy=body.project_strategy if is_offer else "basename",
            repo_path=body.repo_path if is_offer else None,
            home=body.home if is_offer else None,
        ),
    )


def _visible(tx: Transaction, handoff_id: str, *, any_owner: bool) -> Handoff | Refusal:
    try:
        row = handoffs.one(tx, id_bytes(handoff_id))
    except Invalid as error:
        return Refusal(code="invalid", message=str(error))
    if row is None or not (any_owner or row["owner"] in (None, tx.principal)):
        return Refusal(code="not_found", message="there is no such handoff")
    return handoffs.handoff_from(row)


def _session_id(text: str) -> bytes:
    return session_id_from(session_key(text))


def _answer(found: Handoff, state: HandoffState) -> Mapping[str, Any]:
    """What a receiver gets: the rendered `markdown`, and the same as fields."""
    draft = found.draft
    return {
        "handoff_id": id_text(found.id),
        "state": state.value,
        "markdown": rules.render(found, is_accepted=state is HandoffState.ACCEPTED),
        "from_agent": draft.from_agent,
        "to_agent": draft.to_agent,
        "model": draft.model,
        "cwd": found.cwd,
        "created_at": rfc3339(found.created_at),
        "summary": draft.summary,
        "open_questions": list(draft.open_questions),
        "next_steps": list(draft.next_steps),
        "files_touched": list(draft.files_touched),
    }


def _nothing() -> Mapping[str, Any]:
    return {"handoff_id": None, "state": None, "markdown": ""}
