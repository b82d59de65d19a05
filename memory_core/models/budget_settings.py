"""The settings of `[budget]`: caps, prices and allowances, read from the configuration file and the environment."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import fields
from decimal import Decimal
from typing import Any, Final, cast

from memory_core import config
from memory_core.domain.budget import MICROS, Allowance, Budget, Cap, Price
from memory_core.errors import Invalid

_SECTION: Final = "budget"
#: In place of a number: no cap.
_NONE: Final = "none"
KEYS: Final = (
    "tokens_per_day",
    "money_per_day",
    "project_tokens_per_day",
    "project_money_per_day",
    "currency",
    "backlog_max",
    "project",
    "kind",
    "price",
)
_ALLOWANCE: Final = tuple(f.name for f in fields(Allowance))


def read_budget(
    settings: config.Settings,
    environ: Mapping[str, str] | None = None,
    *,
    kinds: Collection[str] | None = None,
) -> Budget:
    """`[budget]`, under the environment, where a table is JSON.

    Raises `Invalid` that names the key: one that nobody reads, a value that is no amount, a kind that is not among `kinds`.
    """
    told = config.section(settings, _SECTION, environ)
    if unknown := sorted(set(told) - set(KEYS)):
        raise Invalid(f"[{_SECTION}] has no key {', '.join(unknown)}; there are: {', '.join(KEYS)}")
    usual = Budget()
    allowances = {name: _allowance(f"kind.{name}", table) for name, table in _tables(told, "kind").items()}
    if kinds is not None and (strange := sorted(set(allowances) - set(kinds))):
        raise Invalid(
            f"[{_SECTION}] kind.{strange[0]}: there is no such job kind; there are: {', '.join(sorted(kinds))}"
        )
    return Budget(
        day=Cap(
            tokens=_whole(told, "tokens_per_day", usual.day.tokens),
            money=_money(told, "money_per_day", usual.day.money),
        ),
        project=Cap(
            tokens=_whole(told, "project_tokens_per_day", None),
            money=_money(told, "project_money_per_day", None),
        ),
        projects={name: _project(name, table) for name, table in _tables(told, "project").items()},
        kinds=allowances,
        prices={name: _price(name, table) for name, table in _tables(told, "price").items()},
        currency=_currency(told.get("currency", usual.currency)),
        backlog_max=_whole(told, "backlog_max", usual.backlog_max),
    )


def _tables(told: Mapping[str, Any], key: str) -> dict[str, dict[str, Any]]:
    """The tables below a key, by their names."""
    value: Any = told.get(key, {})
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise Invalid(f"[{_SECTION}] {key}: as a variable it must be one JSON object") from None
    if not isinstance(value, dict):
        raise Invalid(f"[{_SECTION}] {key} must be a table")
    tables = cast("dict[str, Any]", value)
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise Invalid(f'[{_SECTION}] {key}."{name}" must be a table')
    return tables


def _project(name: str, table: Mapping[str, Any]) -> Cap:
    at = f'project."{name}"'
    if name.count("/") != 1:
        raise Invalid(f"[{_SECTION}] {at}: a project is named as workspace/project")
    _only(at, table, ("tokens_per_day", "money_per_day"))
    return Cap(
        tokens=_whole(table, "tokens_per_day", None, at), money=_money(table, "money_per_day", None, at)
    )


def _allowance(at: str, table: Mapping[str, Any]) -> Allowance:
    _only(at, table, _ALLOWANCE)
    return Allowance(**{key: float(_number(table[key], f"{at}.{key}")) for key in table})


def _price(name: str, table: Mapping[str, Any]) -> Price:
    at = f'price."{name}"'
    if not all(name.partition(":")[::2]):
        raise Invalid(f"[{_SECTION}] {at}: a price is named by provider:model, or provider:* for all of one")
    _only(at, table, ("input", "output", "cached"))
    if missing := {"input", "output"} - set(table):
        raise Invalid(
            f"[{_SECTION}] {at}: without {' and '.join(sorted(missing))}; both are per million tokens"
        )
    amounts = {key: _micros(table[key], f"{at}.{key}") for key in table}
    return Price(**{"cached": amounts["input"], **amounts})


def _only(at: str, table: Mapping[str, Any], keys: Collection[str]) -> None:
    if unknown := sorted(set(table) - set(keys)):
        raise Invalid(f"[{_SECTION}] {at} has no key {unknown[0]}; there are: {', '.join(keys)}")


def _whole(told: Mapping[str, Any], key: str, usual: int | None, at: str = "") -> int | None:
    if key not in told:
        return usual
    if _is_none(told[key]):
        return None
    value = _number(told[key], f"{at}.{key}" if at else key)
    if value != int(value):
        raise Invalid(f"[{_SECTION}] {key} must be a whole number")
    return int(value)


def _money(told: Mapping[str, Any], key: str, usual: int | None, at: str = "") -> int | None:
    if key not in told:
        return usual
    return None if _is_none(told[key]) else _micros(told[key], f"{at}.{key}" if at else key)


def _micros(value: Any, at: str) -> int:
    return int((_number(value, at) * MICROS).to_integral_value())


def _is_none(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lower() == _NONE


def _number(value: Any, at: str) -> Decimal:
    """Not negative, finite; of the environment it comes as text."""
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError
        number = float(str(value).replace("_", ""))
        if not math.isfinite(number) or not 0 <= number <= 1e15:
            raise ValueError
        return Decimal(str(value).replace("_", "").strip())
    except (ValueError, ArithmeticError):
        raise Invalid(f'[{_SECTION}] {at} must be a number from 0 on, or "{_NONE}" for no cap') from None


def _currency(value: Any) -> str:
    if not isinstance(value, str) or not 1 <= len(value.strip()) <= 8 or not value.isprintable():
        raise Invalid(f"[{_SECTION}] currency is a label of 1 to 8 characters, for example USD")
    return value.strip()
