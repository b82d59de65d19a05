"""Handoffs: rows, the questions who may get which, and the steps between states."""

from __future__ import annotations

import json
from typing import Any, cast

from sqlalchemy import bindparam, func, or_, select
from sqlalchemy.dialects.sqlite import insert

from memory_core.domain.handoff import Draft, Handoff, HandoffState
from memory_core.store.statement import Row, Statement
from memory_core.store.tables import handoffs, projects, workspaces
from memory_core.store.transaction import Reading, Transaction

_h = handoffs.c
#: More open ones than this in one project are not weighed; the newest are.
_CANDIDATES_MAX = 256
_ROWS = (
    select(handoffs, projects.c.name.label("project"), workspaces.c.name.label("workspace"))
    .join_from(handoffs, projects, projects.c.id == _h.project_id)
    .join(workspaces, workspaces.c.id == projects.c.workspace_id)
)
_VISIBLE = or_(bindparam("all_owners"), _h.owner.is_(None), _h.owner == bindparam("owner"))

_OPEN = Statement(
    select(handoffs)
    .where(
        _h.project_id == bindparam("project_id"),
        _h.state == "open",
        or_(_h.owner.is_(None), _h.owner == bindparam("owner")),
    )
    .order_by(_h.is_manual.desc(), _h.created_at.desc())
    .limit(_CANDIDATES_MAX)
)
_OFFERED = Statement(
    select(handoffs)
    .where(_h.offered_to == bindparam("session_id"), _h.state == "offered")
    .order_by(_h.created_at.desc(), _h.id.desc())
    .limit(1)
)
_ONE = Statement(_ROWS.where(_h.id == bindparam("id")))
_AUTO_OF = Statement(
    select(handoffs)
    .where(_h.from_session_id == bindparam("session_id"), _h.is_manual == 0)
    .order_by(_h.created_at.desc(), _h.id.desc())
    .limit(1)
)
_NEWEST = Statement(
    select(func.max(_h.created_at).label("at")).where(
        _h.project_id == bindparam("project_id"), _h.state == "open"
    )
)
_LIST = Statement(
    _ROWS.where(
        or_(bindparam("project_id").is_(None), _h.project_id == bindparam("project_id")),
        or_(bindparam("state").is_(None), _h.state == bindparam("state")),
        _VISIBLE,
        _h.created_at < bindparam("before"),
    )
    .order_by(_h.created_at.desc(), _h.id.desc())
    .limit(bindparam("limit"))
)
_COUNTS = Statement(
    select(_h.state, func.count().label("count"))
    .where(
        or_(bindparam("project_id").is_(None), _h.project_id == bindparam("project_id")),
        _VISIBLE,
    )
    .group_by(_h.state)
)
_ADD = Statement(insert(handoffs).values({column.name: bindparam(column.name) for column in handoffs.c}))
_STEP = Statement(
    handoffs.update()
    .where(_h.id == bindparam("handoff_id"), _h.state == bindparam("state_before"))
    .values(
        state=bindparam("new_state"),
        offered_to=bindparam("new_offered_to"),
        offered_until=bindparam("new_offered_until"),
        accepted_by_session=bindparam("new_session"),
        accepted_by_agent=bindparam("new_agent"),
        accepted_at=bindparam("new_accepted_at"),
    )
)
_RELEASE = Statement(
    handoffs.update()
    .where(_h.offered_to == bindparam("session_id"), _h.state == "offered")
    .values(state="open", offered_to=None, offered_until=None)
)
_RELEASE_LATE = Statement(
    handoffs.update()
    .where(_h.offered_to.is_not(None), _h.state == "offered", _h.offered_until <= bindparam("now"))
    .values(state="open", offered_to=None, offered_until=None)
)
_EXPIRE_AUTOS = Statement(
    handoffs.update()
    .where(
        _h.project_id == bindparam("of_project"),
        _h.state == "open",
        _h.is_manual == 0,
        _h.cwd.is_not_distinct_from(bindparam("of_cwd")),
        _h.owner.is_not_distinct_from(bindparam("of_owner")),
    )
    .values(state="expired")
)
_REWRITE = Statement(
    handoffs.update()
    .where(_h.id == bindparam("handoff_id"), _h.state == "open")
    .values(
        {
            name: bindparam(f"new_{name}")
            for name in ("summary", "open_questions", "next_steps", "files_touched", "model", "created_at")
        }
    )
)
_LISTS = ("open_questions", "next_steps", "files_touched")
_END_OF_TIME = 2**62


def handoff_from(row: Row) -> Handoff:
    """The value that a row of the table holds."""
    lists = {name: tuple(cast("list[str]", json.loads(row[name]))) for name in _LISTS}
    return Handoff(
        id=row["id"],
        draft=Draft(
            summary=row["summary"],
            from_agent=row["from_agent"],
            to_agent=row["to_agent"],
            model=row["model"],
            **lists,
        ),
        is_manual=bool(row["is_manual"]),
        created_at=row["created_at"],
        state=HandoffState(row["state"]),
        cwd=row["cwd"],
        owner=row["owner"],
        from_session_id=row["from_session_id"],
        offered_to=row["offered_to"],
    )


def open_ones(read: Reading, project_id: bytes, owner: str | None) -> list[Handoff]:
    """Open handoffs of a project that `owner` may see: shared ones and its own."""
    return [handoff_from(row) for row in read.rows(_OPEN, project_id=project_id, owner=owner)]


def offered_to(read: Reading, session_id: bytes) -> Row | None:
    """The row that is offered to a session at present."""
    return read.row(_OFFERED, session_id=session_id)


def one(read: Reading, handoff_id: bytes) -> Row | None:
    """A handoff's row with `project` and `workspace`."""
    return read.row(_ONE, id=handoff_id)


def automatic_of(read: Reading, session_id: bytes) -> Handoff | None:
    """The newest automatic handoff that a session left, in whatever state."""
    row = read.row(_AUTO_OF, session_id=session_id)
    return None if row is None else handoff_from(row)


def newest_at(read: Reading, project_id: bytes) -> int:
    """`created_at` of the newest open handoff of a project; 0 if there is none."""
    return read.rows(_NEWEST, project_id=project_id)[0]["at"] or 0


def listed(
    read: Reading,
    *,
    project_id: bytes | None = None,
    state: str | None = None,
    owner: str | None = None,
    all_owners: bool = False,
    before: int | None = None,
    limit: int = 50,
) -> list[Row]:
    """Rows with `project` and `workspace`, the newest first; `before` (`created_at`) continues a list."""
    return read.rows(
        _LIST,
        project_id=project_id,
        state=state,
        owner=owner,
        all_owners=int(all_owners),
        before=_END_OF_TIME if before is None else before,
        limit=limit,
    )


def counts(
    read: Reading, project_id: bytes | None = None, *, owner: str | None = None, all_owners: bool = False
) -> dict[str, int]:
    """How many there are in each state; a state without any is 0."""
    rows = read.rows(_COUNTS, project_id=project_id, owner=owner, all_owners=int(all_owners))
    return {state.value: 0 for state in HandoffState} | {row["state"]: row["count"] for row in rows}


def add(tx: Transaction, handoff: Handoff, *, project_id: bytes, token_scope: str) -> None:
    """Insert an open handoff."""
    draft = handoff.draft
    tx.run(
        _ADD,
        id=handoff.id,
        project_id=project_id,
        owner=handoff.owner,
        token_scope=token_scope,
        from_session_id=handoff.from_session_id,
        is_manual=int(handoff.is_manual),
        from_agent=draft.from_agent,
        to_agent=draft.to_agent,
        model=draft.model,
        cwd=handoff.cwd,
        state=HandoffState.OPEN.value,
        offered_to=None,
        offered_until=None,
        accepted_by_session=None,
        accepted_by_agent=None,
        accepted_at=None,
        created_at=handoff.created_at,
        **_texts(draft),
    )


def rewrite(tx: Transaction, handoff_id: bytes, draft: Draft, created_at: int) -> None:
    """Say something newer in a handoff that is still open."""
    texts = {f"new_{name}": text for name, text in _texts(draft).items()}
    tx.run(_REWRITE, handoff_id=handoff_id, new_model=draft.model, new_created_at=created_at, **texts)


def offer(tx: Transaction, handoff: Handoff, *, session_id: bytes, until: int) -> bool:
    """Show it to a session until a time; whether it was still to be had."""
    return _step(tx, handoff, HandoffState.OFFERED, new_offered_to=session_id, new_offered_until=until)


def accept(tx: Transaction, handoff: Handoff, *, session_id: bytes | None, agent: str | None) -> bool:
    """Close it for the one that got it; whether it was still to be had."""
    return _step(
        tx,
        handoff,
        HandoffState.ACCEPTED,
        new_session=session_id,
        new_agent=agent,
        new_accepted_at=tx.now,
    )


def expire(tx: Transaction, handoff: Handoff) -> bool:
    return _step(tx, handoff, HandoffState.EXPIRED)


def release(tx: Transaction, session_id: bytes) -> int:
    """Open again what is offered to a session; how many."""
    return tx.run(_RELEASE, session_id=session_id)


def release_late(tx: Transaction) -> int:
    """Open again what was offered and not taken in time; how many."""
    return tx.run(_RELEASE_LATE, now=tx.now)


def expire_automatic(tx: Transaction, project_id: bytes, *, cwd: str | None, owner: str | None) -> int:
    """Close open automatic ones of the very same directory and owner; how many."""
    return tx.run(_EXPIRE_AUTOS, of_project=project_id, of_cwd=cwd, of_owner=owner)


def _step(tx: Transaction, handoff: Handoff, state: HandoffState, **changes: Any) -> bool:
    columns: dict[str, Any] = dict.fromkeys(
        ("new_offered_to", "new_offered_until", "new_session", "new_agent", "new_accepted_at")
    )
    columns |= changes
    touched = tx.run(
        _STEP,
        handoff_id=handoff.id,
        state_before=handoff.state.value,
        new_state=state.value,
        **columns,
    )
    return touched == 1


def _texts(draft: Draft) -> dict[str, str]:
    return {
        "summary": draft.summary,
        "open_questions": json.dumps(draft.open_questions, ensure_ascii=False),
        "next_steps": json.dumps(draft.next_steps, ensure_ascii=False),
        "files_touched": json.dumps(draft.files_touched, ensure_ascii=False),
    }
