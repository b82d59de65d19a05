"""What an error of a computation means for its job."""

from __future__ import annotations

import pytest

from memory_core.domain.job import Failure, Reason
from memory_core.models.errors import Overloaded, ProviderError, RateLimited, Unreachable
from memory_core.models.metered import BudgetReached
from workers.pool.computing import ending_of


@pytest.mark.parametrize(
    ("reason", "ending", "code", "is_permanent"),
    [
        ("tokens_per_day", "release", Reason.BUDGET, False),
        ("reserved", "release", Reason.CONTENDED, False),
        ("too_large", "fail", Failure.TOO_LARGE, True),
    ],
)
def test_a_refusal_of_the_budget_ends_the_job_as_long_as_it_lasts(
    reason: str, ending: str, code: str, is_permanent: bool
) -> None:
    ended = ending_of(BudgetReached("no", reason=reason), 1)

    assert (ended.ending, ended.code) == (ending, code)
    if ending == "fail":
        assert ended.is_permanent is is_permanent


@pytest.mark.parametrize("error", [Overloaded(), RateLimited(), Unreachable()])
def test_a_provider_that_is_away_for_a_while_costs_a_job_no_try(error: ProviderError) -> None:
    ended = ending_of(error, 1)

    assert (ended.ending, ended.code) == ("release", Reason.PROVIDER_BUSY)
