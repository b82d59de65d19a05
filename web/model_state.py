"""How models stand, for status answers and metrics: off, on, paused, or at the end of the budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.core import Metric

from memory_core import job_kind, limits
from memory_core.clock import Clock, rfc3339
from memory_core.config import Settings
from memory_core.domain import budget as rules
from memory_core.domain.budget import MICROS, Budget, Cap, Spent, Stop
from memory_core.errors import Invalid
from memory_core.models.budget_settings import read_budget
from memory_core.models.settings import ModelSettings, open_key_files, read_settings
from memory_core.store import model_budget, model_calls, model_usage, projects
from memory_core.store.database import Database, Snapshot
from memory_core.store.model_budget import EVERYWHERE, Pause
from web.meters import counter, gauge
from web.shapes import time_text


class Configured:
    """What this process was told of models, and what its configuration says of the budget now."""

    def __init__(self, settings: Settings) -> None:
        """Raises `Invalid`."""
        self.models: ModelSettings = read_settings(settings)
        self._settings = settings

    @property
    def has_provider(self) -> bool:
        return bool(self.models.provider or self.models.embed_provider)

    def warnings(self, reading: Snapshot) -> list[str]:
        """Sentences for a person: keys' files that are open to others, caps that are not those in force."""
        return [*open_key_files(self.models), *self._of_budget(reading)]

    def _of_budget(self, reading: Snapshot) -> list[str]:
        try:
            told = model_budget.text_of(read_budget(self._settings, kinds=job_kind.kinds.names()))
        except Invalid as error:
            return [f"the budget in force is that of before, for {error}"]
        if model_budget.in_force(reading).text in ("", told):
            return []
        return [
            "[budget] is configured otherwise than the budget in force: a changed file counts within seconds, "
            "a changed variable of the environment from the writer's next start"
        ]


def short(reading: Snapshot, configured: Configured, now: int) -> dict[str, Any]:
    """`{state, provider, model, embed_provider, embed_model, reranker}`, and where they do not go on `reason`, `until`, `message`.

    `warnings`, where there are any: sentences for a person (`Configured.warnings`).

    `state` is `off` (no provider is configured here), `on`, `paused` (by a person) or `budget_reached`, which means all; what
    stops one project or kind is in `whole`.
    """
    named: dict[str, Any] = {
        name: getattr(configured.models, name) or None
        for name in ("provider", "model", "embed_provider", "embed_model", "reranker")
    }
    if not configured.has_provider:
        return {"state": "off", **named}
    if warnings := configured.warnings(reading):
        named["warnings"] = warnings
    general = [
        found for found in model_budget.stops(reading, now) if found.scope == EVERYWHERE and not found.kind
    ]
    by_hand = next((found for found in general if found.reason is Stop.PAUSED), None)
    found = by_hand or max(general, key=lambda stop: stop.since, default=None)
    if found is None:
        return {"state": "on", **named}
    return {
        "state": "paused" if by_hand else "budget_reached",
        **named,
        "reason": found.reason.value,
        "since": rfc3339(found.since),
        "until": time_text(found.until),
        "message": found.note,
    }


def whole(reading: Snapshot, configured: Configured, now: int) -> dict[str, Any]:
    """`short`, all that stops calls, the budget, what today used of it, and what waits."""
    budget, today = model_budget.in_force(reading).budget, rules.day_of(now)
    used = model_usage.spent(reading, today, today)
    reserved = model_calls.open_sums(reading, today, today)
    return {
        **short(reading, configured, now),
        "stops": [_stop(reading, found) for found in model_budget.stops(reading, now)],
        "currency": budget.currency,
        "budget": {**_cap(budget.day), "project": _cap(budget.project), "backlog_max": budget.backlog_max},
        "priced": _is_priced(budget, configured.models),
        "today": {"day": today, **_spent(used), "reserved": _spent(reserved)},
        "refused_today": [dict(row) for row in model_usage.refusals(reading, today)],
        "jobs_waiting": model_budget.waiting(reading, limits.WAITING_COUNTED_MAX),
    }


def usage_shape(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "day": row["day"] or None,
        "workspace": row["workspace"],
        "project": row["project"],
        "kind": row["kind"],
        "provider": row["provider"],
        "model": row["model"],
        **{name: row[name] for name in ("calls", "failed", "lost", "unpriced")},
        **{name: row[name] for name in ("input_tokens", "output_tokens", "cached_tokens")},
        "money": row["money"] / MICROS,
    }


def metrics(database: Database, configured: Configured, clock: Clock) -> Iterator[Metric]:
    with database.snapshot() as reading:
        totals, refusals = model_usage.totals(reading), model_usage.refusals(reading)
        state = short(reading, configured, clock.now_us())["state"]
        waiting = model_budget.waiting(reading, limits.WAITING_COUNTED_MAX)
        currency = model_budget.in_force(reading).budget.currency
    names = ("kind", "provider", "model")
    of = [((t.kind, t.provider, t.model), t) for t in totals]
    yield counter("model_calls", "Requests to providers.", names, [(labels, t.calls) for labels, t in of])
    yield counter(
        "model_tokens",
        "Tokens as providers count them; cached ones are input too.",
        (*names, "direction"),
        [
            ((*labels, direction), figure)
            for labels, t in of
            for direction, figure in (
                ("input", t.input_tokens),
                ("output", t.output_tokens),
                ("cached", t.cached_tokens),
            )
        ],
    )
    yield counter(
        "model_money",
        "What calls cost, by the configured prices.",
        (*names, "currency"),
        [((*labels, currency), t.money / MICROS) for labels, t in of],
    )
    yield counter(
        "model_refused",
        "Calls that were not granted, and jobs that were left out.",
        ("kind", "reason"),
        [((row["kind"], row["reason"]), row["count"]) for row in refusals],
    )
    yield gauge("models_paused", "1 while a person paused them.", (), [((), state == "paused")])
    yield gauge(
        "models_budget_reached", "1 while the budget stops all.", (), [((), state == "budget_reached")]
    )
    yield gauge("models_jobs_waiting", "Jobs that wait for the budget or a resume.", (), [((), waiting)])


def _stop(reading: Snapshot, found: Pause) -> dict[str, Any]:
    row = projects.by_id(reading, found.scope) if found.scope else None
    return {
        "reason": found.reason.value,
        "workspace": row["workspace"] if row else None,
        "project": row["name"] if row else None,
        "kind": found.kind or None,
        "since": rfc3339(found.since),
        "until": time_text(found.until),
        "message": found.note,
        "set_by": found.set_by,
    }


def _cap(cap: Cap) -> dict[str, Any]:
    return {
        "tokens_per_day": cap.tokens,
        "money_per_day": None if cap.money is None else cap.money / MICROS,
    }


def _spent(spent: Spent) -> dict[str, Any]:
    return {"calls": spent.calls, "tokens": spent.tokens, "money": spent.money / MICROS}


def _is_priced(budget: Budget, models: ModelSettings) -> bool:
    """Whether the configured language model has a price; true where there is none to be priced."""
    return not (models.provider and models.model) or budget.price(models.provider, models.model) is not None
