"""Calls of models as rows, and what they come to: reserved, settled, summed up by day."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from sqlalchemy import bindparam, delete, func, or_, select
from sqlalchemy.dialects.sqlite import insert

from memory_core.domain.budget import LOST, Price, Spent, Tokens
from memory_core.store.statement import Row, Statement, text_statement
from memory_core.store.tables_jobs import jobs
from memory_core.store.tables_models import model_calls
from memory_core.store.transaction import Reading, Transaction

_c = model_calls.c
#: Instead of a job and a claim, of a call that a question made: nobody holds a lease for it.
NO_JOB, NO_CLAIM = bytes(16), bytes(32)


@dataclass(frozen=True, kw_only=True)
class Call:
    """A row of `model_calls`. Times are UTC microseconds, money micro-units."""

    id: bytes
    job_id: bytes
    claim_hash: bytes
    kind: str
    scope: bytes
    provider: str
    model: str
    prompt: str
    day: str
    price: Price | None
    reserved: Tokens
    reserved_money: int
    started_at: int
    #: None while it is open.
    used: Tokens | None = None
    money: int | None = None
    outcome: str | None = None
    settled_at: int | None = None

    @property
    def is_lost(self) -> bool:
        return self.outcome == LOST


def settled(call: Call, used: Tokens, outcome: str, *, now: int) -> Call:
    """The call with what it used, at the price that it was reserved at."""
    money = call.price.of(used) if call.price is not None else 0
    return replace(call, used=used, money=money, outcome=outcome, settled_at=now)


def lost(call: Call, *, now: int) -> Call:
    """A call that nobody will settle: taken to have used all that was reserved."""
    return replace(call, used=call.reserved, money=call.reserved_money, outcome=LOST, settled_at=now)


_ONE = Statement(select(model_calls).where(_c.id == bindparam("id")))
_ADD = Statement(insert(model_calls).values({column.name: bindparam(column.name) for column in _c}))
_CHANGING = ("input_tokens", "output_tokens", "cached_tokens", "money", "outcome", "settled_at")
_SETTLE = Statement(
    model_calls.update()
    .where(_c.id == bindparam("call_id"))
    .values({name: bindparam(f"new_{name}") for name in _CHANGING})
)
#: Its job is gone, has ended, or is in other hands; or it has none, and whoever asked must have given up long ago.
_ORPHANS = Statement(
    select(model_calls)
    .outerjoin_from(model_calls, jobs, jobs.c.id == _c.job_id)
    .where(
        _c.settled_at.is_(None),
        or_(jobs.c.claim_hash.is_(None), jobs.c.claim_hash != _c.claim_hash),
        or_(_c.job_id != NO_JOB, _c.started_at < bindparam("jobless_before")),
    )
    .limit(bindparam("slice"))
)
_OPEN = Statement(
    select(
        func.count().label("calls"),
        func.coalesce(func.sum(_c.reserved_input + _c.reserved_output), 0).label("tokens"),
        func.coalesce(func.sum(_c.reserved_money), 0).label("money"),
    ).where(
        _c.settled_at.is_(None),
        _c.day >= bindparam("first"),
        _c.day <= bindparam("last"),
        or_(bindparam("scope").is_(None), _c.scope == bindparam("scope")),
        or_(bindparam("kind").is_(None), _c.kind == bindparam("kind")),
    )
)
# Adds to the row of that day, or makes it; the amounts may be negative.
_COUNT = text_statement(
    """INSERT INTO model_usage (day, scope, kind, provider, model, calls, failed, lost, unpriced,
    input_tokens, output_tokens, cached_tokens, money)
VALUES (:day, :scope, :kind, :provider, :model, :calls, :failed, :lost, :unpriced,
    :input_tokens, :output_tokens, :cached_tokens, :money)
ON CONFLICT (day, scope, kind, provider, model) DO UPDATE SET calls = calls + excluded.calls,
    failed = failed + excluded.failed, lost = lost + excluded.lost, unpriced = unpriced + excluded.unpriced,
    input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens,
    cached_tokens = cached_tokens + excluded.cached_tokens, money = money + excluded.money"""
)
_OLD = select(_c.id).where(_c.started_at < bindparam("before"), _c.settled_at.is_not(None))
_PURGE = Statement(delete(model_calls).where(_c.id.in_(_OLD.limit(bindparam("slice")))))


def one(read: Reading, call_id: bytes) -> Call | None:
    row = read.row(_ONE, id=call_id)
    return None if row is None else _call(row)


def reserve(tx: Transaction, call: Call) -> None:
    """Store an open call."""
    tx.run(_ADD, **_columns(call))


def settle(tx: Transaction, before: Call, after: Call) -> None:
    """Write what a call came to, into its row and its day. One that was taken for lost is put right."""
    columns = _columns(after)
    tx.run(_SETTLE, call_id=after.id, **{f"new_{name}": columns[name] for name in _CHANGING})
    if before.used is not None:
        _count(tx, before, -1)
    _count(tx, after, 1)


def orphans(read: Reading, slice_rows: int, *, jobless_before: int) -> list[Call]:
    """Open calls whose claim is over; those without a job, where they began before a time."""
    return [_call(row) for row in read.rows(_ORPHANS, slice=slice_rows, jobless_before=jobless_before)]


def open_sums(
    read: Reading, first: str, last: str, *, scope: bytes | None = None, kind: str | None = None
) -> Spent:
    """What open calls of those days have reserved."""
    row = read.row(_OPEN, first=first, last=last, scope=scope, kind=kind)
    return Spent(calls=row["calls"], tokens=row["tokens"], money=row["money"]) if row else Spent()


def purge(tx: Transaction, *, before: int, slice_rows: int) -> int:
    """Forget settled calls that began before a time; their sums stay."""
    return tx.run(_PURGE, before=before, slice=slice_rows)


def _count(tx: Transaction, call: Call, sign: int) -> None:
    used = call.used or Tokens(input=0, output=0)
    tx.run(
        _COUNT,
        day=call.day,
        scope=call.scope,
        kind=call.kind,
        provider=call.provider,
        model=call.model,
        calls=sign,
        failed=sign * (call.outcome not in ("ok", LOST)),
        lost=sign * call.is_lost,
        unpriced=sign * (call.price is None),
        input_tokens=sign * used.input,
        output_tokens=sign * used.output,
        cached_tokens=sign * used.cached,
        money=sign * (call.money or 0),
    )


def _columns(call: Call) -> dict[str, Any]:
    plain = {name: getattr(call, name) for name in _PLAIN}
    return {
        **plain,
        "price_input": call.price.input if call.price else None,
        "price_output": call.price.output if call.price else None,
        "price_cached": call.price.cached if call.price else None,
        "reserved_input": call.reserved.input,
        "reserved_output": call.reserved.output,
        "input_tokens": call.used.input if call.used else None,
        "output_tokens": call.used.output if call.used else None,
        "cached_tokens": call.used.cached if call.used else None,
    }


def _call(row: Row) -> Call:
    plain = {name: row[name] for name in _PLAIN}
    price, used = None, None
    if row["price_input"] is not None:
        price = Price(input=row["price_input"], output=row["price_output"], cached=row["price_cached"])
    if row["input_tokens"] is not None:
        used = Tokens(input=row["input_tokens"], output=row["output_tokens"], cached=row["cached_tokens"])
    reserved = Tokens(input=row["reserved_input"], output=row["reserved_output"])
    return Call(**plain, price=price, reserved=reserved, used=used)


_PLAIN = tuple(f.name for f in fields(Call) if f.name not in ("price", "reserved", "used"))
