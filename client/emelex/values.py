"""Single values of the older program's rows. Whatever breaks its own rules is `Corrupt`, with the row named."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from typing import Any, Final

from client.emelex.tables import Row
from memory_core import limits
from memory_core.clock import MICROSECONDS
from memory_core.domain import capped_json
from memory_core.errors import Corrupt

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HEX: Final = frozenset("0123456789abcdef")


def id_of(row: Row, name: str = "id") -> str:
    """A UUID as it is written there and here."""
    value = row[name]
    try:
        if isinstance(value, str) and str(uuid.UUID(value)) == value:
            return value
    except ValueError:
        pass
    raise Corrupt(f"{name} {value!r:.60} is no UUID")


def optional_id(row: Row, name: str) -> str | None:
    return None if row[name] is None else id_of(row, name)


def text_of(row: Row, name: str) -> str:
    value = row[name]
    if not isinstance(value, str):
        raise Corrupt(f"{name} is no text")
    return value


def number_of(row: Row, name: str, *, at_least: int = 0) -> int:
    value = row[name]
    if not isinstance(value, int) or value < at_least:
        raise Corrupt(f"{name} is {value!r:.40}, not a whole number from {at_least}")
    return value


def flag_of(row: Row, name: str) -> bool:
    return number_of(row, name) != 0


def moment_of(row: Row, name: str) -> int:
    """A time (RFC 3339, whatever the digits of its fraction) as UTC microseconds."""
    value = row[name]
    try:
        told = datetime.fromisoformat(text_of(row, name))
        at = (told.astimezone(UTC) - _EPOCH) if told.tzinfo else None
    except (ValueError, OverflowError):
        at = None
    if at is None or at.total_seconds() < 0:
        raise Corrupt(f"{name} {value!r:.60} is no time")
    return (at.days * 86_400 + at.seconds) * MICROSECONDS + at.microseconds


def optional_moment(row: Row, name: str) -> int | None:
    return None if row[name] is None else moment_of(row, name)


def digest_of(row: Row, name: str) -> str:
    value = row[name]
    if not isinstance(value, str) or len(value) != 64 or not set(value) <= _HEX:
        raise Corrupt(f"{name} is no SHA-256")
    return value


def json_of(row: Row, name: str) -> Any:
    try:
        return json.loads(text_of(row, name))
    except (ValueError, RecursionError) as error:
        raise Corrupt(f"{name} is no JSON") from error


def check_fits(name: str, value: Any, max_bytes: int) -> int:
    """How many bytes a value has as JSON. Raises `Invalid` for one that memoryd does not take."""
    return capped_json.measure(
        value, max_bytes=max_bytes, text_max_bytes=limits.FIELD_REDACTED_MAX_BYTES, what=name
    )


def cut_to(text: str, max_bytes: int) -> str:
    """The text, or as much of it as fits together with a line that says so."""
    data = text.encode("utf-8", "replace")
    if len(data) <= max_bytes:
        return text
    note = f"\n\n(cut by the import: it had {len(data)} bytes)\n"
    return data[: max_bytes - len(note)].decode("utf-8", "ignore") + note
