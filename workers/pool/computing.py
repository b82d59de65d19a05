"""Running a kind's `compute`: its input read, its output written, and what an error of it means for the job."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from memory_core.domain.job import Failure, Reason
from memory_core.errors import CoreError, Invalid, NotFound
from workers.logs import describe
from workers.pool import frames

if TYPE_CHECKING:
    from memory_core.job_kind import Tools


class Unusable(CoreError):
    """The kind cannot be computed here: it is unknown, or its input or output is not what it says."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.sentence)
        self.failure = failure


#: Codes of errors that hand a job back uncounted.
_RELEASES = {
    "model_cancelled": Reason.CANCELLED,
    "cancelled": Reason.CANCELLED,
    "budget": Reason.BUDGET,
    # The rest of the budget is reserved by calls that will be settled soon.
    "budget_reserved": Reason.CONTENDED,
    "model_out_of_credit": Reason.BUDGET,
    "model_rate_limited": Reason.PROVIDER_BUSY,
    "model_overloaded": Reason.PROVIDER_BUSY,
    # A server of one's own that is switched off for the night must not cost the jobs of the night.
    "model_unreachable": Reason.PROVIDER_BUSY,
    # The gate could not be asked whether a call may go out.
    "unavailable": Reason.CONTENDED,
}
#: Codes of errors that count, and whether trying again cannot help.
_FAILURES = {
    "budget_too_large": (Failure.TOO_LARGE, True),
    "model_refused": (Failure.PROVIDER_REFUSED, True),
    "model_prompt_too_long": (Failure.PROVIDER_REFUSED, True),
    "model_answer_too_long": (Failure.ANSWER, False),
    "model_bad_answer": (Failure.ANSWER, False),
    "no_provider": (Failure.NO_PROVIDER, True),
}


def run_kind(name: str, data: bytes, make_tools: Callable[[bool], Tools]) -> bytes:
    """The output, as JSON, of the kind `name` for an input in JSON. Raises `Unusable`, and whatever the kind raises.

    `make_tools` is asked with whether the kind reads the data directory.
    """
    # Kinds bring the libraries of the store along; a worker that is idle never needs them.
    from memory_core.bootstrap import load_jobs
    from memory_core.job_kind import kinds

    load_jobs()
    try:
        kind = kinds.get(name)
    except NotFound as error:
        raise Unusable(Failure.UNKNOWN_KIND) from error
    try:
        given = kind.read_input(data)
    except Invalid as error:
        raise Unusable(Failure.INPUT) from error
    output = kind.compute(given, make_tools(kind.on_data_host))
    if not isinstance(output, kind.output):
        raise Unusable(Failure.OUTPUT)
    return msgspec.json.encode(output)


def ending_of(error: BaseException, number: int) -> frames.Failed:
    """How a job ends by an error of its computation. The error's text goes nowhere: it may quote what somebody wrote."""
    code = error.code if isinstance(error, CoreError) else ""
    if code in _RELEASES:
        return frames.Failed(number=number, ending="release", code=_RELEASES[code])
    if isinstance(error, Unusable):
        return frames.Failed(number=number, ending="fail", code=error.failure, is_permanent=False)
    if code.startswith("model_") or code in _FAILURES:
        failure, is_permanent = _FAILURES.get(code, (Failure.PROVIDER, False))
        return frames.Failed(number=number, ending="fail", code=failure, is_permanent=is_permanent)
    return frames.Failed(
        number=number,
        ending="fail",
        code=Failure.CRASHED,
        exception=describe(type(error), error.__traceback__),
    )
