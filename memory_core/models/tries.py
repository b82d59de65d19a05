"""Trying one request again, within the bounds of its call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from memory_core import limits
from memory_core.models.bounds import Bounds
from memory_core.models.errors import PASSING, ProviderError
from memory_core.models.port import NOTHING, Meter, Planned, Usage

T = TypeVar("T")


def metered(
    step: Callable[[], T], usage_of: Callable[[T], Usage], *, planned: Planned, meter: Meter, bounds: Bounds
) -> tuple[T, Usage]:
    """One request, up to `MODEL_TRIES` times while a retry can help at once; its answer, and what all tries used.

    Each try is reserved before and settled after. Raises what the last try raised, or `Cancelled` or `TimedOut` of a
    pause, with the usage of all tries; what `meter.reserve` raises.
    """
    spent, pause = NOTHING, 0.0
    for number in range(limits.MODEL_TRIES):
        try:
            bounds.wait(pause)
            answer, used = _settled(step, usage_of, planned, meter)
        except ProviderError as error:
            error.usage = spent = spent + error.usage
            wanted = _pause(error, number)
            if wanted is None or wanted >= bounds.remaining_seconds():
                raise
            pause = wanted
        else:
            return answer, spent + used
    raise AssertionError("the last try returns or raises")


def _settled(
    step: Callable[[], T], usage_of: Callable[[T], Usage], planned: Planned, meter: Meter
) -> tuple[T, Usage]:
    reserved = meter.reserve(planned)
    try:
        answer = step()
    except ProviderError as error:
        meter.settle(reserved, error.usage, error.code)
        raise
    except BaseException:
        meter.settle(reserved, NOTHING, ProviderError.code)
        raise
    used = usage_of(answer)
    meter.settle(reserved, used, "ok")
    return answer, used


def _pause(error: ProviderError, number: int) -> float | None:
    """Seconds until the next try; None where there is none."""
    if not isinstance(error, PASSING) or number + 1 >= limits.MODEL_TRIES:
        return None
    if error.retry_after_seconds is None:
        return limits.MODEL_RETRY_SECONDS * 2**number
    if error.retry_after_seconds > limits.MODEL_RETRY_AFTER_MAX_SECONDS:
        return None
    return error.retry_after_seconds
