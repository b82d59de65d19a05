"""What people do about models: pause them, let them go on, check that they answer; and the writer's part in the budget."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core import job_kind, limits
from memory_core.clock import MICROSECONDS
from memory_core.commands import Answer, command
from memory_core.commands.model_calls import settle_lost
from memory_core.domain import budget as rules
from memory_core.domain.budget import Budget, Stop
from memory_core.domain.command import Refusal
from memory_core.ids import id_text
from memory_core.store import audit, model_budget, model_calls, model_usage
from memory_core.store.transaction import Transaction

#: The job kind of a check.
CHECK = "model_check"


@dataclass(frozen=True, kw_only=True)
class PauseModels:
    """No call of a model is granted until somebody resumes them; what has gone out goes on."""

    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class ResumeModels:
    """Calls are granted again, as far as the budget goes; jobs that wait for it look again at once."""


@dataclass(frozen=True, kw_only=True)
class CheckModels:
    """A job that asks the configured models for something small."""


@command(PauseModels, name="pause_models")
def pause(body: PauseModels, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"paused", "changed"}`."""
    reason = " ".join(body.reason.split())
    if len(reason) > limits.PAUSE_REASON_MAX_CHARS:
        return Refusal(
            code="invalid", message=f"a reason has at most {limits.PAUSE_REASON_MAX_CHARS} characters"
        )
    changed = not model_budget.is_paused(tx, tx.now)
    model_budget.stop(tx, Stop.PAUSED, scope=model_budget.EVERYWHERE, kind="", until=None, note=reason)
    if changed:
        audit.record(tx, "models_paused")
    return {"paused": True, "changed": changed}


@command(ResumeModels, name="resume_models")
def resume(_body: ResumeModels, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"paused", "changed", "freed": jobs that are due at once}`; more follow by and by where many waited."""
    changed = model_budget.lift(tx, Stop.PAUSED)
    model_budget.free(tx)
    freed = model_budget.free_some(tx, tx.now, limits.JOB_EXPIRED_ROWS)
    if changed:
        audit.record(tx, "models_resumed")
    return {"paused": False, "changed": changed, "freed": freed}


@command(CheckModels, name="check_models")
def check(_body: CheckModels, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"job": id}`."""
    # The command's own id: applied twice it is still one check.
    source = tx.envelope.id if tx.envelope else tx.new_id()
    job_id, _ = job_kind.enqueue(
        tx, CHECK, source_digest=job_kind.digest_of("check", source), is_asked_for=True
    )
    return None if job_id is None else {"job": id_text(job_id)}


def keep_budget(tx: Transaction, budget: Budget) -> int:
    """The writer's look, each second: put the budget in force, settle what nobody will, free who waits. How many rows."""
    found = model_budget.in_force(tx)
    touched = settle_lost(tx)
    if found.text != model_budget.text_of(budget):
        model_budget.put_in_force(tx, budget)
        return touched + 1
    if found.free_before is not None:
        touched += model_budget.free_some(tx, found.free_before, limits.JOB_EXPIRED_ROWS)
    return touched


def tidy_calls(tx: Transaction) -> int:
    """Forget single calls that are long past, fold their days, drop stops that are over. How many rows."""
    before = tx.now - limits.MODEL_CALL_DAYS * 86_400 * MICROSECONDS
    return (
        model_calls.purge(tx, before=before, slice_rows=limits.DUTY_ROWS)
        + model_usage.fold(tx, before=rules.days_before(tx.now, limits.MODEL_USAGE_DAYS))
        + model_budget.forget_over(tx)
    )
