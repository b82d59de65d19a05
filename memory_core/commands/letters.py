"""Dead letters, looked after by a person: try one again, or drop it."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core.commands import Answer, command
from memory_core.domain.command import Refusal
from memory_core.errors import Invalid
from memory_core.ids import id_bytes, id_text
from memory_core.store import audit, letters
from memory_core.store.letters import Letter
from memory_core.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class RetryDeadLetter:
    """Take up a dead command again. The writer applies it as new right after this one: a page that moved on
    meanwhile refuses it as it would refuse any late write."""

    #: The command's id as text.
    letter: str
    #: Whose command it is; needed only when two principals used the same id.
    principal: str | None = None


@dataclass(frozen=True, kw_only=True)
class DiscardDeadLetter:
    """Drop a dead command. Its id stays known, so that a re-send changes nothing."""

    letter: str
    principal: str | None = None


@command(RetryDeadLetter, name="retry_dead_letter")
def retry(body: RetryDeadLetter, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"id", "name", "status": "retrying"}`; what becomes of it is asked for by its id."""
    found = _letter(tx, body.letter, body.principal)
    if isinstance(found, Refusal):
        return found
    letters.retry(tx, found)
    audit.record(tx, "dead_letter_retried", detail=_named(found))
    return {**_named(found), "status": "retrying"}


@command(DiscardDeadLetter, name="discard_dead_letter")
def discard(body: DiscardDeadLetter, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"id", "name", "status": "discarded"}`."""
    found = _letter(tx, body.letter, body.principal)
    if isinstance(found, Refusal):
        return found
    letters.discard(tx, found)
    audit.record(tx, "dead_letter_discarded", detail=_named(found))
    return {**_named(found), "status": "discarded"}


def _letter(tx: Transaction, text: str, principal: str | None) -> Letter | Refusal:
    if tx.token_scope != "admin":  # noqa: S105 - the name of a scope
        return Refusal(code="forbidden", message="dead letters need a token of scope admin")
    try:
        command_id = id_bytes(text)
    except Invalid as error:
        return Refusal(code="invalid", message=str(error))
    found = [
        letter
        for letter in letters.dead_by_id(tx, command_id)
        if principal is None or letter.envelope.principal == principal
    ]
    if not found:
        return Refusal(code="not_found", message=f"there is no dead letter {text}")
    if len(found) > 1:
        owners = ", ".join(sorted(letter.envelope.principal for letter in found))
        return Refusal(
            code="conflict", message=f"several principals have a dead letter {text}: {owners}; name one"
        )
    return found[0]


def _named(letter: Letter) -> dict[str, str]:
    return {"id": id_text(letter.envelope.id), "name": letter.envelope.name}
