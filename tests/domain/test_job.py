"""The steps between the states of a job: what there is, and that there is nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from memory_core import limits
from memory_core.domain import job as rules
from memory_core.domain.job import Again, Done, Failure, Job, Later, Move, Reason, State
from memory_core.errors import Conflict, StaleLease

HASH = b"\x01" * 32


def job(state: State = State.PENDING) -> Job:
    made = Job(
        id=b"\x02" * 16,
        kind="sum",
        queue="lint",
        source_digest=b"\x03" * 32,
        principal="ada",
        token_scope="write",
        created_at=0,
        updated_at=0,
    )
    if state is State.PENDING:
        return made
    if state is State.CANCELLED:
        return rules.cancelled(made, now=1)
    running = rules.claimed(made, claim_hash=HASH, worker="w", now=1)
    if state is State.COMPLETED:
        return rules.finished(running, Done(), now=2)
    if state is State.FAILED:
        return rules.failed(running, Failure.CRASHED, now=2, is_permanent=True)
    return running


STEPS: dict[Move, Any] = {
    Move.CLAIM: lambda before: rules.claimed(before, claim_hash=HASH, worker="w", now=5),
    Move.FINISH: lambda before: rules.finished(before, Done(), now=5),
    Move.AGAIN: lambda before: rules.again(before, {}, now=5),
    Move.FAIL: lambda before: rules.failed(before, Failure.CRASHED, now=5),
    Move.RELEASE: lambda before: rules.released(before, Reason.STOPPING, now=5),
    Move.RETRY: lambda before: rules.retried(before, now=5),
}


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("move", list(STEPS))
def test_a_step_leads_where_the_table_says_or_nowhere(state: State, move: Move):
    expected = rules.after(state, move)

    if expected is None:
        with pytest.raises(Conflict):
            STEPS[move](job(state))
    else:
        assert STEPS[move](job(state)).state is expected


@pytest.mark.parametrize("state", [State.COMPLETED, State.CANCELLED])
def test_what_is_done_or_cancelled_is_not_cancelled(state: State):
    with pytest.raises(Conflict):
        rules.cancelled(job(state), now=5)


def test_a_failed_job_is_dismissed_by_cancelling_it():
    assert rules.cancelled(job(State.FAILED), now=5).state is State.CANCELLED


@pytest.mark.parametrize("state", [state for state in State if state is not State.RUNNING])
def test_only_a_running_job_has_a_lease(state: State):
    for step in (rules.renewed, rules.expired):
        with pytest.raises(Conflict):
            step(job(state), now=5)
    with pytest.raises(StaleLease):
        rules.check_lease(job(state), HASH)


@pytest.mark.parametrize(("failures", "seconds"), [(1, 30), (2, 60), (3, 120), (4, 240), (5, 300), (60, 300)])
def test_the_pause_doubles_up_to_five_minutes(failures: int, seconds: int):
    assert rules.backoff_seconds(failures) == seconds


def test_every_failure_has_a_sentence_that_fits():
    for failure in Failure:
        assert 0 < len(failure.sentence.encode()) <= limits.JOB_ERROR_MAX_BYTES


def test_a_claim_does_not_show_its_lease_in_words():
    running = job(State.RUNNING)

    assert repr(HASH) not in repr(running)
    assert rules.check_lease(running, HASH) is running


def test_what_a_kind_says_is_plain():
    assert Done().result == {}
    assert Later().reason is Reason.CONTENDED
    assert Again(cursor={"at": 1}).cursor == {"at": 1}
