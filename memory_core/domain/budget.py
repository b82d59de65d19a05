"""What calls of models may cost, and whether one more is granted.

A call is reserved with the most that it can cost before it goes out, and settled with what it did cost after it. What is
reserved counts in full until then, so whoever asks next cannot be granted what an earlier call may yet use. Money is whole micro-units of
one currency, prices are micro-units per million tokens, days are UTC.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from memory_core import limits
from memory_core.clock import MICROSECONDS

MICROS: Final = 1_000_000
#: In place of a model: any of that provider.
ANY: Final = "*"
#: How a call ended where nobody was left to say so.
LOST: Final = "lost"
#: Outcomes after which a provider may have worked on what was sent, although nobody heard how much it counted.
_UNHEARD: Final = frozenset(
    ("model_timed_out", "model_cancelled", "model_answer_too_long", "model_malformed", "model_failed")
)


class Stop(StrEnum):
    """Why a call is not granted; the code in answers and metrics."""

    PAUSED = "paused"
    #: There is a cap of money and no price.
    UNPRICED = "unpriced"
    TOKENS = "tokens_per_day"
    MONEY = "money_per_day"
    PROJECT_TOKENS = "project_tokens_per_day"
    PROJECT_MONEY = "project_money_per_day"
    KIND_CALLS = "kind_calls"
    KIND_TOKENS = "kind_tokens"
    #: What has been used leaves room; what other calls have reserved does not, until they are settled.
    RESERVED = "reserved"
    #: This one call may take more than a whole cap: waiting does not help it, and hinders no other.
    TOO_LARGE = "too_large"

    @property
    def is_of_call(self) -> bool:
        """It says something of the call that was asked for, and stops no other."""
        return self in (Stop.PAUSED, Stop.RESERVED, Stop.TOO_LARGE)

    @property
    def is_of_project(self) -> bool:
        """It holds for one project, or for one kind in it; the others go on."""
        return self in (Stop.PROJECT_TOKENS, Stop.PROJECT_MONEY) or self.is_of_kind

    @property
    def is_of_kind(self) -> bool:
        return self in (Stop.KIND_CALLS, Stop.KIND_TOKENS)


#: Why a job was not made (`Budget.backlog_max`); stands beside the stops where they are counted.
BACKLOG: Final = "backlog"


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """`cached` is a part of `input`."""

    input: int
    output: int
    cached: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output


@dataclass(frozen=True, kw_only=True)
class Price:
    """Micro-units per million tokens."""

    input: int
    output: int
    cached: int

    def of(self, tokens: Tokens) -> int:
        """What that costs, micro-units, rounded up."""
        cached = min(tokens.cached, tokens.input)
        return _per_million(
            (tokens.input - cached) * self.input + cached * self.cached + tokens.output * self.output
        )

    def at_most(self, tokens: Tokens) -> int:
        """The same, whatever of the input is cached."""
        return _per_million(
            tokens.input * max(self.input, self.cached) + tokens.output * self.output,
        )


@dataclass(frozen=True, kw_only=True)
class Cap:
    """Of a day; None: no cap."""

    tokens: int | None = None
    #: Micro-units.
    money: int | None = None


@dataclass(frozen=True, kw_only=True)
class Activity:
    """Of one project (or all), in the days of the allowance."""

    sessions: int = 0
    observations: int = 0


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """What activity earns a kind; None: nothing is said. Without any activity it is nothing."""

    calls_per_session: float | None = None
    calls_per_100_observations: float | None = None
    tokens_per_session: float | None = None
    tokens_per_100_observations: float | None = None

    def calls(self, activity: Activity) -> int | None:
        """None: no cap."""
        return _earned(self.calls_per_session, self.calls_per_100_observations, activity)

    def tokens(self, activity: Activity) -> int | None:
        """None: no cap."""
        return _earned(self.tokens_per_session, self.tokens_per_100_observations, activity)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What the configuration allows."""

    day: Cap = Cap(tokens=limits.BUDGET_TOKENS_PER_DAY)
    #: Of each project, and of those (`workspace/project`) that have their own.
    project: Cap = Cap()
    projects: Mapping[str, Cap] = field(default_factory=dict[str, Cap])
    kinds: Mapping[str, Allowance] = field(default_factory=dict[str, Allowance])
    #: By `provider:model`, or `provider:*`.
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    #: A label, nothing is converted.
    currency: str = "USD"
    #: Jobs of kinds that use a model that may wait before droppable ones are left out; None: any number.
    backlog_max: int | None = limits.BUDGET_BACKLOG

    def price(self, provider: str, model: str) -> Price | None:
        return self.prices.get(f"{provider}:{model}") or self.prices.get(f"{provider}:{ANY}")

    def of_project(self, name: str) -> Cap:
        own = self.projects.get(name)
        if own is None:
            return self.project
        return Cap(
            tokens=self.project.tokens if own.tokens is None else own.tokens,
            money=self.project.money if own.money is None else own.money,
        )


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What is used up: settled calls with what they cost, open ones with what was reserved."""

    calls: int = 0
    tokens: int = 0
    money: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            calls=self.calls + other.calls,
            tokens=self.tokens + other.tokens,
            money=self.money + other.money,
        )


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One call that somebody is about to make."""

    kind: str
    #: `workspace/project`; None: the whole install.
    project: str | None
    provider: str
    model: str
    #: The most that it can take.
    tokens: Tokens


@dataclass(frozen=True, kw_only=True)
class Situation:
    """How things stand when it is asked."""

    #: UTC microseconds.
    now: int
    is_paused: bool = False
    today: Spent = Spent()
    project_today: Spent = Spent()
    #: Of the kind in the project, in the days of the allowance; and what went on there.
    kind: Spent = Spent()
    activity: Activity = Activity()
    #: What of each of the three is only reserved.
    today_open: Spent = Spent()
    project_today_open: Spent = Spent()
    kind_open: Spent = Spent()


@dataclass(frozen=True, kw_only=True)
class Granted:
    """`money` is reserved, micro-units; None where there is no price."""

    price: Price | None
    money: int | None


@dataclass(frozen=True, kw_only=True)
class Refused:
    reason: Stop
    #: UTC microseconds; None: until a person does something.
    until: int | None
    sentence: str


def decide(wanted: Wanted, budget: Budget, situation: Situation) -> Granted | Refused:
    """Whether the call may go out. A grant never leads past a cap, whatever of what is reserved is used."""
    if situation.is_paused:
        return Refused(
            reason=Stop.PAUSED, until=None, sentence="models are paused; resume: memoryd llm resume"
        )
    of_project = Cap() if wanted.project is None else budget.of_project(wanted.project)
    price = budget.price(wanted.provider, wanted.model)
    if price is None and (budget.day.money is not None or of_project.money is not None):
        return Refused(reason=Stop.UNPRICED, until=None, sentence=unpriced(wanted.provider, wanted.model))
    money = None if price is None else price.at_most(wanted.tokens)
    tokens = wanted.tokens.total
    allowance = budget.kinds.get(wanted.kind, Allowance())
    today, today_open = situation.today, situation.today_open
    here, here_open = situation.project_today, situation.project_today_open
    kind, kind_open = situation.kind, situation.kind_open
    checks = (
        _Check(Stop.TOKENS, budget.day.tokens, today.tokens, today_open.tokens, tokens),
        _Check(Stop.MONEY, budget.day.money, today.money, today_open.money, money or 0),
        _Check(Stop.PROJECT_TOKENS, of_project.tokens, here.tokens, here_open.tokens, tokens),
        _Check(Stop.PROJECT_MONEY, of_project.money, here.money, here_open.money, money or 0),
        _Check(Stop.KIND_CALLS, allowance.calls(situation.activity), kind.calls, kind_open.calls, 1),
        _Check(Stop.KIND_TOKENS, allowance.tokens(situation.activity), kind.tokens, kind_open.tokens, tokens),
    )
    full = [check for check in checks if check.is_full]
    if not full:
        return Granted(price=price, money=money)
    # What lasts longest is said first: else a job would come back to hear it then.
    return min((_refused(check, budget, situation.now) for check in full), key=_lasts_longest)


def unpriced(provider: str, model: str) -> str:
    """What to do about a model without a price."""
    return (
        f"there is a cap of money and no price of {provider}:{model}; write its price per million tokens into the"
        f' configuration file and start the server again: [budget] price."{provider}:{model}" ='
        " { input = 0.25, output = 2.0, cached = 0.025 }"
    )


def charged(reserved: Tokens, used: Tokens, outcome: str) -> Tokens:
    """What a call is taken to have used. Of one that broke off with nothing counted, what was sent counts."""
    if used.total == 0 and outcome in _UNHEARD:
        return Tokens(input=reserved.input, output=0)
    return used


def day_of(now: int) -> str:
    """The day (UTC) of a time in microseconds, `2026-01-31`."""
    return datetime.fromtimestamp(now / MICROSECONDS, tz=UTC).date().isoformat()


def day_end(now: int) -> int:
    """When the next day (UTC) begins, microseconds."""
    today = datetime.fromtimestamp(now / MICROSECONDS, tz=UTC).date()
    tomorrow = datetime.combine(today + timedelta(days=1), datetime.min.time(), tzinfo=UTC)
    return round(tomorrow.timestamp()) * MICROSECONDS


def days_before(now: int, days: int) -> str:
    """The day that lies `days` days back."""
    return day_of(now - days * 86_400 * MICROSECONDS)


def day_begin(day: str) -> int:
    """When a day begins, microseconds."""
    return round(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()) * MICROSECONDS


def money_text(micros: int, currency: str) -> str:
    """`1.2345 USD`: to the hundredth of a cent."""
    return f"{micros / MICROS:,.4f} {currency}"


class _Check(NamedTuple):
    """One cap: what is used of it (`open` of that only reserved), and what one more call may take."""

    reason: Stop
    cap: int | None
    used: int
    open: int
    more: int

    @property
    def is_full(self) -> bool:
        return self.cap is not None and self.used + self.more > self.cap


def _refused(check: _Check, budget: Budget, now: int) -> Refused:
    cap = check.cap or 0
    sentence = _used_up(check.reason, cap, check.used, check.more, budget.currency)
    if 0 < cap < check.more and not check.reason.is_of_kind:
        return Refused(reason=Stop.TOO_LARGE, until=None, sentence=sentence)
    if check.used - check.open + check.more <= cap:
        soon = now + round(limits.JOB_CONTENDED_SECONDS * MICROSECONDS)
        return Refused(reason=Stop.RESERVED, until=soon, sentence=sentence)
    return Refused(reason=check.reason, until=day_end(now), sentence=sentence)


def _lasts_longest(refused: Refused) -> int:
    return {Stop.TOO_LARGE: 0, Stop.RESERVED: 2}.get(refused.reason, 1)


_WHAT: Final[Mapping[Stop, str]] = {
    Stop.TOKENS: "today's tokens ([budget] tokens_per_day)",
    Stop.MONEY: "today's money ([budget] money_per_day)",
    Stop.PROJECT_TOKENS: "the project's tokens of today (project_tokens_per_day)",
    Stop.PROJECT_MONEY: "the project's money of today (project_money_per_day)",
    Stop.KIND_CALLS: "the calls that recent activity allows this kind",
    Stop.KIND_TOKENS: "the tokens that recent activity allows this kind",
}


def _used_up(reason: Stop, cap: int, used: int, more: int, currency: str) -> str:
    """Used up; or, where one call alone is too large, that waiting does not help."""
    is_money = reason in (Stop.MONEY, Stop.PROJECT_MONEY)

    def amount(value: int) -> str:
        return money_text(value, currency) if is_money else f"{value:,}"

    text = f"{_WHAT[reason]}: {amount(cap)}, of which {amount(used)} are used or reserved; one more call may take {amount(more)}"
    if more > cap and not reason.is_of_kind:
        return f"{text}, more than a whole day has: raise the cap, or lower max_output_tokens under [models]"
    return text


def _earned(per_session: float | None, per_100: float | None, activity: Activity) -> int | None:
    if per_session is None and per_100 is None:
        return None
    earned = (per_session or 0) * activity.sessions + (per_100 or 0) * activity.observations / 100
    # Rounded first: 0.1 of 30 must not be 2.
    return math.floor(round(earned, 6))


def _per_million(value: int) -> int:
    return -(-value // 1_000_000)
