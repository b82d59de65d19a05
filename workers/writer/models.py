"""The writer's duties about models: the budget in force, calls that nobody settles, jobs that wait, old books."""

from __future__ import annotations

from memory_core import limits
from memory_core.commands.model_control import keep_budget, tidy_calls
from memory_core.domain.budget import Budget
from workers.writer.duties import Duty


def duties(budget: Budget) -> tuple[Duty, ...]:
    return (
        Duty(name="keep_budget", work=lambda tx: keep_budget(tx, budget), every_seconds=limits.DUTY_SECONDS),
        Duty(name="tidy_model_calls", work=tidy_calls, every_seconds=limits.PURGE_SECONDS),
    )
