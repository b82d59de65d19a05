"""Calls of models under the budget: each is reserved before it goes out and settled after it.

The writer decides, so that no two workers can be granted the same rest. Only the holder of the job's lease may ask.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, Final

from memory_core import limits
from memory_core.clock import MICROSECONDS, rfc3339
from memory_core.commands import Answer, command
from memory_core.domain import budget as rules
from memory_core.domain.budget import Granted, Refused, Situation, Tokens, Wanted
from memory_core.domain.command import Refusal
from memory_core.domain.job import Job, State, check_lease
from memory_core.errors import StaleLease
from memory_core.ids import id_text
from memory_core.store import jobs, model_budget, model_calls, model_usage
from memory_core.store.jobs import scope_of
from memory_core.store.model_calls import Call
from memory_core.store.transaction import Transaction

logger = logging.getLogger(__name__)

_STALE: Final = Refusal(code=StaleLease.code, message=str(StaleLease()))


@dataclass(frozen=True, kw_only=True)
class ReserveModelCall:
    """May this call go out? `call` is the caller's own id of it: asked again, the answer is the same."""

    job: bytes
    claim: bytes = field(repr=False)
    call: bytes
    provider: str
    model: str
    #: The most that it can take.
    input_tokens: int
    output_tokens_max: int
    #: The prompt's id, where it was made from one.
    prompt: str = ""


@dataclass(frozen=True, kw_only=True)
class SettleModelCall:
    """What a call came to; `outcome` is `ok` or the code of an error."""

    job: bytes
    claim: bytes = field(repr=False)
    call: bytes
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    outcome: str


@command(ReserveModelCall, name="reserve_model_call")
def reserve(body: ReserveModelCall, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"granted", "cancel"}`, and where it is not granted `"reason"`, `"until"` (None: until a person acts) and
    `"message"`. A job that is to be cancelled is granted nothing."""
    try:
        job = check_lease(jobs.one(tx, body.job), body.claim)
    except StaleLease:
        return _STALE
    if job.cancel_asked_at is not None:
        return {"granted": False, "cancel": True}
    known = model_calls.one(tx, body.call)
    if known is not None:
        if known.used is not None or not _is_same(known, body):
            return Refusal(code="conflict", message="this call's id was used before; take a new one")
        return {"granted": True, "cancel": False}
    listed = jobs.with_names(tx, job)
    wanted = Wanted(
        kind=job.kind,
        project=None if listed.project is None else f"{listed.workspace}/{listed.project}",
        provider=body.provider,
        model=body.model,
        tokens=Tokens(input=body.input_tokens, output=body.output_tokens_max),
    )
    decided = decide(tx, wanted, job.project_id)
    if isinstance(decided, Refused):
        return refused(tx, job.kind, job.project_id, decided)
    model_calls.reserve(tx, _call(body, job, wanted, decided, tx.now))
    return {"granted": True, "cancel": False}


@command(SettleModelCall, name="settle_model_call")
def settle(body: SettleModelCall, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"cancel": whether to stop}`. It counts also when the lease was lost meanwhile: the tokens are spent."""
    call = model_calls.one(tx, body.call)
    if call is None or call.claim_hash != body.claim:
        return _STALE
    told = Tokens(
        input=body.input_tokens,
        output=body.output_tokens,
        cached=min(body.cached_tokens, body.input_tokens),
    )
    charge(tx, call, told, body.outcome)
    job = jobs.one(tx, body.job)
    is_held = job is not None and job.state is State.RUNNING and job.claim_hash == body.claim
    return {"cancel": not is_held or (job is not None and job.cancel_asked_at is not None)}


def charge(tx: Transaction, call: Call, told: Tokens, outcome: str) -> None:
    """Settle a call, once, or put right one that was taken for lost."""
    if call.used is not None and not call.is_lost:
        return
    after = model_calls.settled(call, rules.charged(call.reserved, told, outcome), outcome, now=tx.now)
    model_calls.settle(tx, call, after)
    if call.is_lost and after.used != call.used:
        # Less is spent than was assumed: what was stopped by it is looked at again.
        model_budget.reopen(tx)


def settle_lost(tx: Transaction, limit: int = limits.JOB_EXPIRED_ROWS) -> int:
    """Settle open calls whose claim is over, at what was reserved: what they used nobody will say. How many."""
    before = tx.now - limits.QUESTION_CALL_LOST_SECONDS * MICROSECONDS
    found = model_calls.orphans(tx, limit, jobless_before=before)
    for call in found:
        model_calls.settle(tx, call, model_calls.lost(call, now=tx.now))
        logger.warning(
            "a call of a model was never settled; all that was reserved counts",
            extra={"action": "model_call_lost", "call": id_text(call.id), "kind": call.kind},
        )
    return len(found)


def _is_same(known: Call, body: ReserveModelCall) -> bool:
    """Whether the call that was reserved under this id is the one that is asked for again."""
    reserved = Tokens(input=body.input_tokens, output=body.output_tokens_max)
    return (known.job_id, known.claim_hash, known.provider, known.model, known.prompt, known.reserved) == (
        (body.job, body.claim, body.provider, body.model, body.prompt, reserved)
    )


def decide(tx: Transaction, wanted: Wanted, project_id: bytes | None) -> Granted | Refused:
    """Whether the budget in force grants the call. `project_id` is that of `wanted.project`."""
    today, scope = rules.day_of(tx.now), scope_of(project_id)
    first = rules.days_before(tx.now, limits.BUDGET_ACTIVITY_DAYS - 1)
    today_open = model_calls.open_sums(tx, today, today)
    project_open = model_calls.open_sums(tx, today, today, scope=scope)
    kind_open = model_calls.open_sums(tx, first, today, scope=scope, kind=wanted.kind)
    situation = Situation(
        now=tx.now,
        is_paused=model_budget.is_paused(tx, tx.now),
        today=model_usage.spent(tx, today, today) + today_open,
        project_today=model_usage.spent(tx, today, today, scope=scope) + project_open,
        kind=model_usage.spent(tx, first, today, scope=scope, kind=wanted.kind) + kind_open,
        today_open=today_open,
        project_today_open=project_open,
        kind_open=kind_open,
        activity=model_usage.activity(tx, rules.day_begin(first), scope=project_id),
    )
    return rules.decide(wanted, model_budget.in_force(tx).budget, situation)


def refused(tx: Transaction, kind: str, project_id: bytes | None, why: Refused) -> dict[str, Any]:
    """Count and remember a refusal; the answer to who asked."""
    model_usage.refused(tx, day=rules.day_of(tx.now), kind=kind, reason=why.reason.value)
    if not why.reason.is_of_call:
        model_budget.stop(
            tx,
            why.reason,
            scope=scope_of(project_id),
            kind=kind,
            until=why.until,
            note=why.sentence[: limits.STOP_NOTE_MAX_CHARS],
        )
    logger.info(
        "a call of a model was not granted",
        extra={"action": "model_call_refused", "kind": kind, "reason": why.reason.value},
    )
    return {
        "granted": False,
        "cancel": False,
        "reason": why.reason.value,
        "until": None if why.until is None else rfc3339(why.until),
        "message": why.sentence,
    }


def _call(body: ReserveModelCall, job: Job, wanted: Wanted, granted: Granted, now: int) -> Call:
    return Call(
        id=body.call,
        job_id=job.id,
        claim_hash=body.claim,
        kind=job.kind,
        scope=scope_of(job.project_id),
        provider=body.provider,
        model=body.model,
        prompt=body.prompt,
        day=rules.day_of(now),
        price=granted.price,
        reserved=wanted.tokens,
        reserved_money=granted.money or 0,
        started_at=now,
    )
