"""Judging a page."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core.commands import Answer, command
from memory_core.domain import place
from memory_core.domain.command import Refusal
from memory_core.domain.feedback import FLAGS, Signal, clean_reason, salience_after
from memory_core.domain.page import page_path
from memory_core.errors import Invalid
from memory_core.ids import id_text
from memory_core.store import feedback, pages, projects
from memory_core.store.audit import record
from memory_core.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class GiveFeedback:
    """Say how good the newest version of a page is. `signal` is a `Signal`; the reason is redacted already."""

    workspace: str
    project: str
    path: str
    signal: str
    reason: str | None = None


@command(GiveFeedback, name="give_feedback")
def give_feedback(body: GiveFeedback, tx: Transaction) -> Answer | Refusal:
    """Answer: recorded (true), path, page_id, version_id, signal, salience (0.25 to 2.0), routed_to_lint: whether the
    page now counts as a finding until it is written anew."""
    try:
        signal = Signal(body.signal)
        path = page_path(body.path)
    except Invalid as error:
        return Refusal(code=error.code, message=str(error))
    except ValueError:
        return Refusal(code=Invalid.code, message=f"signal is one of: {', '.join(Signal)}")
    try:
        row = projects.named(tx, *place.project_named(body.workspace, body.project))
    except Invalid as error:
        return Refusal(code=error.code, message=str(error))
    page = None if row is None else pages.page_at(tx, row["id"], path.key)
    if page is None:
        return Refusal(code="not_found", message=f"there is no page {path.path!r}; search for it")
    salience = salience_after(feedback.salience(tx, page.id), signal)
    feedback.add(tx, page, signal, reason=clean_reason(body.reason), salience=salience)
    record(
        tx,
        "page_feedback",
        project_id=page.project_id,
        page_id=page.id,
        detail={"signal": str(signal), "version": id_text(page.version_id), "salience": salience},
    )
    return {
        "recorded": True,
        "path": page.path,
        "page_id": id_text(page.id),
        "version_id": id_text(page.version_id),
        "signal": str(signal),
        "salience": salience,
        "routed_to_lint": signal in FLAGS,
    }
