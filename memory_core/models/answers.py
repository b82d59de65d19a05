"""Reading what a vendor's client gives back: nothing of it is believed, and errors become ours."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

from memory_core.clock import MICROSECONDS
from memory_core.models import errors
from memory_core.models.bounds import Bounds
from memory_core.models.errors import Malformed, ProviderError
from memory_core.models.port import NOTHING, Completion, StopReason, Usage

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray
    from pydantic import BaseModel

logger = logging.getLogger(__name__)

E = TypeVar("E", bound=Exception)

#: Loggers of the vendors' clients: at DEBUG they would write prompts and headers into the log.
_TALKATIVE = (
    "anthropic",
    "openai",
    "google_genai",
    "voyage",
    "httpx2",
    "httpcore2",
    "httpx",
    "httpcore",
    "urllib3",
)
#: How servers say that a prompt does not fit, where they have no code for it.
_TOO_LONG = (
    "prompt is too long",
    "maximum context length",
    "input token count",
    "exceeds the context",
    "context size",
)


def quiet() -> None:
    """Let the vendors' clients log no more than warnings, whatever the log level here is."""
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)


@dataclass
class Heard:
    """An answer while it arrives. What it used so far is told by the error when it breaks off."""

    model: str = ""
    parts: list[str] = field(default_factory=list[str])
    usage: Usage = NOTHING
    stop: StopReason | None = None
    is_refused: bool = False
    unknown: set[str] = field(default_factory=set[str])

    @contextmanager
    def spending(self) -> Generator[None]:
        try:
            yield
        except ProviderError as error:
            error.usage = self.usage
            raise

    def completion(self, model: str) -> Completion:
        """The whole answer. `Refused`, or `Unreachable` when it never said that it was over: the connection was cut."""
        if self.is_refused:
            raise errors.Refused(usage=self.usage)
        if self.stop is None:
            raise errors.Unreachable(usage=self.usage)
        return Completion(
            text="".join(self.parts),
            usage=self.usage,
            model=self.model or model,
            stop_reason=self.stop,
            unknown_fields=len(self.unknown),
        )


def count(value: Any) -> int:
    """A number of tokens; nothing counts as 0. Raises `Malformed`."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Malformed
    return value


def text(value: Any) -> str:
    """A text; nothing counts as an empty one. Raises `Malformed`."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Malformed
    return value


def compact(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def matrix(rows: Sequence[Sequence[float]]) -> NDArray[numpy.float32]:
    """Rows of numbers as one array. Raises `Malformed` when they are of several lengths, or no numbers."""
    import numpy

    try:
        array = numpy.asarray(rows, dtype=numpy.float32)
    except (TypeError, ValueError):
        raise Malformed from None
    if array.ndim != 2:
        raise Malformed
    return array


def unknown_fields(answer: BaseModel) -> set[str]:
    """Names of the fields, at any depth, that the vendor's client has no place for."""
    kind = type(answer).__name__
    found = {f"{kind}.{name}" for name in answer.model_extra or {}}
    for name in type(answer).model_fields:
        found |= _unknown_inside(getattr(answer, name, None))
    return found


def _unknown_inside(value: Any) -> set[str]:
    if hasattr(value, "model_extra"):
        return unknown_fields(cast("BaseModel", value))
    if isinstance(value, list):
        return {name for item in cast("list[Any]", value) for name in _unknown_inside(item)}
    return set()


@contextmanager
def translated(vendor_error: type[E], of_vendor: Callable[[E], ProviderError | None]) -> Generator[None]:
    """Around all use of a vendor's client: whatever it raises comes out as a `ProviderError`.

    `of_vendor(error)` translates one of `vendor_error`. An error of the transport travels as the cause of the
    client's own. What is left is a client that stumbled over an answer.
    """
    try:
        yield
    except ProviderError:
        raise
    except Exception as error:
        if ours := _carried(error):
            raise ours from None
        if isinstance(error, vendor_error) and (known := of_vendor(error)):
            raise known from None
        logger.warning(
            "a provider's answer could not be read",
            extra={"action": "model_answer_unreadable", "error": type(error).__name__},
        )
        raise Malformed from None


def _carried(error: BaseException) -> ProviderError | None:
    """The error of the transport that a client wrapped."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        if isinstance(at, ProviderError):
            return at
        seen.add(id(at))
        at = at.__cause__ or at.__context__
    return None


def of_status(status: int, headers: Mapping[str, str], message: Any, bounds: Bounds) -> ProviderError:
    """The error that an HTTP status stands for with all vendors; `message` is only looked at, never kept."""
    pause = retry_after_seconds(headers, bounds)
    kind = _OF_STATUS.get(status)
    if kind is None:
        kind = errors.Overloaded if status >= 500 else errors.Rejected if status >= 400 else Malformed
    if kind is errors.Rejected and says_too_long(message):
        kind = errors.TooLong
    return kind(retry_after_seconds=pause)


_OF_STATUS: dict[int, type[ProviderError]] = {
    401: errors.Unauthorized,
    402: errors.OutOfCredit,
    403: errors.Unauthorized,
    404: errors.NoSuchModel,
    408: errors.TimedOut,
    413: errors.TooLong,
    429: errors.RateLimited,
    504: errors.TimedOut,
}


def says_too_long(message: Any) -> bool:
    return isinstance(message, str) and any(words in message.lower() for words in _TOO_LONG)


def retry_after_seconds(headers: Mapping[str, str], bounds: Bounds) -> float | None:
    """What `Retry-After` (RFC 9110, 10.2.3: seconds or a date) or `Retry-After-Ms` asks for; never negative."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        until = parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, until - bounds.clock.now_us() / MICROSECONDS)


def _number(value: str | None) -> float | None:
    """A plain decimal number of at most nine digits: anything else is not what the standard allows."""
    digits = (value or "").strip()
    whole, _, rest = digits.partition(".")
    if not (whole.isascii() and whole.isdigit() and len(whole) <= 9 and (rest == "" or rest.isdigit())):
        return None
    return float(digits)
