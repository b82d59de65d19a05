"""Calls of models that a question makes, not a job: under the same budget, without a lease.

They are kept beside those of jobs, so that caps, sums and days count both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from memory_core.commands import Answer, command
from memory_core.commands.model_calls import charge, decide, refused
from memory_core.domain import budget as rules
from memory_core.domain.budget import Refused, Tokens, Wanted
from memory_core.domain.command import Refusal
from memory_core.store import model_calls, projects
from memory_core.store.jobs import scope_of
from memory_core.store.model_calls import NO_CLAIM, NO_JOB, Call
from memory_core.store.transaction import Transaction

#: What stands for a job's kind in sums and stops.
RERANK: Final = "rerank"


@dataclass(frozen=True, kw_only=True)
class ReserveQuestionCall:
    """May this call go out? `call` is new for each."""

    call: bytes
    #: None: it is about several projects.
    project: bytes | None
    provider: str
    model: str
    input_tokens: int
    output_tokens_max: int
    prompt: str = ""


@dataclass(frozen=True, kw_only=True)
class SettleQuestionCall:
    """What a call came to; `outcome` is `ok` or the code of an error."""

    call: bytes
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    outcome: str


@command(ReserveQuestionCall, name="reserve_question_call")
def reserve(body: ReserveQuestionCall, tx: Transaction) -> Answer | Refusal:
    """Answer: as that of `reserve_model_call`."""
    if model_calls.one(tx, body.call) is not None:
        return Refusal(code="conflict", message="this call's id was used before; take a new one")
    row = None if body.project is None else projects.by_id(tx, body.project)
    project = None if row is None else body.project
    wanted = Wanted(
        kind=RERANK,
        project=None if row is None else f"{row['workspace']}/{row['name']}",
        provider=body.provider,
        model=body.model,
        tokens=Tokens(input=body.input_tokens, output=body.output_tokens_max),
    )
    decided = decide(tx, wanted, project)
    if isinstance(decided, Refused):
        return refused(tx, RERANK, project, decided)
    call = Call(
        id=body.call,
        job_id=NO_JOB,
        claim_hash=NO_CLAIM,
        kind=RERANK,
        scope=scope_of(project),
        provider=body.provider,
        model=body.model,
        prompt=body.prompt,
        day=rules.day_of(tx.now),
        price=decided.price,
        reserved=wanted.tokens,
        reserved_money=decided.money or 0,
        started_at=tx.now,
    )
    model_calls.reserve(tx, call)
    return {"granted": True, "cancel": False}


@command(SettleQuestionCall, name="settle_question_call")
def settle(body: SettleQuestionCall, tx: Transaction) -> Answer | Refusal:
    """Answer: `{}`. A second one counts nothing."""
    call = model_calls.one(tx, body.call)
    if call is None or call.job_id != NO_JOB:
        return Refusal(code="not_found", message="no such call was reserved for a question")
    told = Tokens(
        input=body.input_tokens,
        output=body.output_tokens,
        cached=min(body.cached_tokens, body.input_tokens),
    )
    charge(tx, call, told, body.outcome)
    return {}
