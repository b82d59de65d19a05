"""Workers that call models, by the commands, without any process; and a budget put in force for a test."""

from __future__ import annotations

import os
from typing import Any

from memory_core.commands.model_calls import ReserveModelCall, SettleModelCall, settle_lost
from memory_core.commands.model_control import keep_budget
from memory_core.domain.budget import Budget, Spent, day_of
from memory_core.store import model_budget, model_calls, model_usage
from tests.factories import Store
from tests.jobs.working import Worker, add_job, look


class Caller(Worker):
    """A worker whose job asks a model."""

    def reserve(self, tokens: int = 100, *, call: bytes | None = None, **more: Any) -> Any:
        """Ask for a call; the answer, with the call's id under `call`."""
        call = call or os.urandom(16)
        body: dict[str, Any] = {
            "job": self.job,
            "claim": self.claim,
            "call": call,
            "provider": "openai",
            "model": "gpt-x",
            "input_tokens": tokens - tokens // 4,
            "output_tokens_max": tokens // 4,
        }
        answer = self.store.apply(ReserveModelCall(**body | more))
        return answer | {"call": call} if isinstance(answer, dict) else answer

    def settle(self, call: bytes, used: tuple[int, int] = (50, 10), outcome: str = "ok", **more: Any) -> Any:
        body: dict[str, Any] = {
            "job": self.job,
            "claim": self.claim,
            "call": call,
            "input_tokens": used[0],
            "output_tokens": used[1],
            "cached_tokens": 0,
            "outcome": outcome,
        }
        return self.store.apply(SettleModelCall(**body | more))


def working(store: Store, source: str = "a", **more: Any) -> Caller:
    """A worker with a claimed job."""
    add_job(store, source, **more)
    worker = Caller(store, name=f"worker-{source}")
    assert worker.take() is not None
    return worker


def usage(store: Store) -> list[dict[str, Any]]:
    return store.all("SELECT * FROM model_usage ORDER BY day, model")


def allow(store: Store, budget: Budget) -> None:
    """Put a budget in force, as the writer does at its start, and free who waits."""
    with store.transaction() as tx:
        keep_budget(tx, budget)
    with store.transaction() as tx:
        keep_budget(tx, budget)


def sweep_lost(store: Store) -> int:
    with store.transaction() as tx:
        return settle_lost(tx)


def spent_today(store: Store) -> Spent:
    """Settled and reserved, of the day that it is."""
    read, today = look(store), day_of(store.clock.now_us())
    return model_usage.spent(read, today, today) + model_calls.open_sums(read, today, today)


def stopped(store: Store) -> list[str]:
    return [found.reason.value for found in model_budget.stops(look(store), store.clock.now_us())]
