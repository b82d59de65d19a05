"""Jobs against a plain model of them: whatever workers, people and clocks do, both say the same, and every job ends once."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from memory_core import limits
from memory_core.clock import MICROSECONDS
from memory_core.commands.job_control import CancelJob, PauseQueue, ResumeQueue, RetryJob
from memory_core.commands.jobs import ClaimJob, FailJob, FinishJob, ReleaseJob, RenewJob
from memory_core.domain.command import Refusal
from memory_core.domain.job import Again, Done, Failure, Job, Later, Reason
from memory_core.ids import id_text
from memory_core.job_kind import digest_of, enqueue
from memory_core.store import audit, job_claims
from memory_core.store.transaction import Transaction
from tests.factories import database
from tests.jobs.model import ENDED, LEASE_US, Model, Paper
from tests.jobs.working import DIGEST, Sum, add_project, kind, registered
from workers.writer.jobs import Leases

SOURCES = st.sampled_from("ab")
#: None is the whole install.
PLACES = st.sampled_from([None, "one"])


def apply_counted(output: Sum, job: Job, tx: Transaction) -> Any:
    if output.mode == "later":
        return Later(reason=Reason.CONTENDED)
    if output.mode == "no":
        return Refusal(code="conflict", message="the source is another one now")
    if output.mode == "again":
        return Again(cursor={"at": 1})
    audit.record(tx, "effect", detail={"job": id_text(job.id)})
    return Done()


class Jobs(RuleBasedStateMachine):
    held = Bundle("held")

    @initialize()
    def begin(self) -> None:
        self.directory = tempfile.TemporaryDirectory(prefix="jobs-model-")
        self.store = database(Path(self.directory.name))
        self.kinds = registered(kind(apply=apply_counted))
        self.kinds.__enter__()
        self.places: dict[str | None, bytes | None] = {
            None: None,
            "one": add_project(self.store, "one"),
        }
        self.model = Model()
        self.leases = Leases(self.store.clock)
        #: When leases expire again, by the monotonic clock, and by how much the wall clock was set since it was noticed.
        self.quiet_until = self.store.clock.monotonic() + limits.JOB_START_GRACE_SECONDS
        self.wall_moved = 0.0
        self.tokens = 0

    @property
    def now(self) -> int:
        return self.store.clock.now_us()

    def paper(self, job_id: bytes) -> Paper:
        return self.model.jobs[job_id]

    # --- facts and people ---

    @rule(source=SOURCES, place=PLACES)
    def enqueue(self, source: str, place: str | None) -> None:
        project_id = self.places[place]
        with self.store.transaction() as tx:
            job_id, is_new = enqueue(tx, "test_sum", source_digest=digest_of(source), project_id=project_id)
            assert ("lint" in tx.rings) == is_new
        assert is_new == (job_id not in self.model.jobs)
        if is_new:
            paper = Paper(scope=project_id or b"", number=len(self.model.jobs))
            self.model.jobs[job_id] = paper
            self.model.line_up(paper)

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        if not self.model.jobs:
            return
        job_id = data.draw(st.sampled_from(list(self.model.jobs)))
        answer, paper = self.store.apply(CancelJob(job=id_text(job_id))), self.paper(job_id)
        assert isinstance(answer, Refusal) == (paper.state in ENDED)
        if paper.state == "pending":
            paper.let_go("cancelled")
        elif paper.state == "running":
            paper.cancel = True

    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        if not self.model.jobs:
            return
        job_id = data.draw(st.sampled_from(list(self.model.jobs)))
        answer, paper = self.store.apply(RetryJob(job=id_text(job_id))), self.paper(job_id)
        assert isinstance(answer, Refusal) == (paper.state not in ("failed", "cancelled"))
        if paper.state in ("failed", "cancelled"):
            paper.failures = paper.deaths = 0
            self.model.back(paper, self.now)

    @rule(pause=st.booleans())
    def pause_or_resume(self, pause: bool) -> None:
        self.store.apply(PauseQueue(queue="lint") if pause else ResumeQueue(queue="lint"))
        self.model.is_paused = pause

    # --- workers, some of them late ---

    @rule(target=held)
    def claim(self) -> tuple[bytes, bytes] | None:
        self.tokens += 1
        token = hashlib.sha256(b"%d" % self.tokens).digest()
        expected = self.model.claim(token, self.now)
        answer = self.store.apply(
            ClaimJob(claim=token, worker="w", queues=("lint",), on_data_host=bool(self.tokens % 2))
        )
        assert answer["job"] == (None if expected is None else id_text(expected))
        assert answer["more"] == (not self.model.is_paused and self.model.next() is not None)
        return None if expected is None else (expected, token)

    def is_stale(self, held: tuple[bytes, bytes], answer: Any) -> bool:
        """Whether the claim is over by the model; the answer must say the same."""
        job_id, token = held
        is_over = self.paper(job_id).holder != token
        assert isinstance(answer, Refusal) == is_over
        return is_over

    @rule(claim=held)
    def renew(self, claim: tuple[bytes, bytes] | None) -> None:
        if claim is None:
            return
        answer = self.store.apply(RenewJob(job=claim[0], claim=claim[1]))
        if not self.is_stale(claim, answer):
            paper = self.paper(claim[0])
            assert answer["cancel"] == paper.cancel
            paper.was_renewed, paper.lease_until = True, self.now + LEASE_US

    @rule(claim=consumes(held), mode=st.sampled_from(["done", "again", "later", "no", "nonsense"]))
    def finish(self, claim: tuple[bytes, bytes] | None, mode: str) -> None:
        if claim is None:
            return
        output: Any = {"numbers": "none"} if mode == "nonsense" else Sum(mode=mode)
        answer = self.store.apply(FinishJob(job=claim[0], claim=claim[1], input_digest=DIGEST, output=output))
        if self.is_stale(claim, answer):
            return
        paper = self.paper(claim[0])
        if mode == "done":
            paper.effects += 1
            paper.let_go("completed")
        elif mode == "again":
            self.model.back(paper, self.now)
        elif mode == "later":
            self.model.back(paper, self.now, limits.JOB_CONTENDED_SECONDS, "contended")
        else:
            self.model.fail(paper, self.now, is_permanent=False)

    @rule(claim=held, permanent=st.booleans())
    def fail(self, claim: tuple[bytes, bytes] | None, permanent: bool) -> None:
        if claim is None:
            return
        answer = self.store.apply(
            FailJob(job=claim[0], claim=claim[1], error=Failure.CRASHED, permanent=permanent)
        )
        if not self.is_stale(claim, answer):
            self.model.fail(self.paper(claim[0]), self.now, is_permanent=permanent)

    @rule(claim=held, reason=st.sampled_from(list(Reason)), seconds=st.sampled_from([None, 0.0, 5.0, 1e6]))
    def release(self, claim: tuple[bytes, bytes] | None, reason: Reason, seconds: float | None) -> None:
        if claim is None:
            return
        answer = self.store.apply(ReleaseJob(job=claim[0], claim=claim[1], reason=reason, seconds=seconds))
        if not self.is_stale(claim, answer):
            own = {"contended": 30.0, "budget": 300.0, "provider_busy": 60.0}.get(reason.value)
            pause = 0.0 if own is None else own if seconds is None else min(seconds, 3_600.0)
            self.model.back(self.paper(claim[0]), self.now, pause, reason.value)

    @rule(target=held)
    def a_worker_goes_silent(self) -> tuple[bytes, bytes] | None:
        """Its claim may yet be used: by a worker that was only slow."""
        claim = self.claim()
        self.store.clock.advance(limits.JOB_LEASE_SECONDS)
        self.leases_are_looked_at()
        return claim

    @rule(mode=st.sampled_from(["done", "again"]))
    def a_slow_worker_is_replaced(self, mode: str) -> None:
        slow = self.a_worker_goes_silent()
        quick = self.claim()
        self.finish(slow, mode)
        self.finish(quick, mode)

    @rule(seconds=st.sampled_from([-86_400.0, 86_400.0]))
    def the_clock_is_set_while_a_job_runs(self, seconds: float) -> None:
        self.claim()
        self.somebody_sets_the_clock(seconds)
        self.leases_are_looked_at()
        self.store.clock.advance(limits.JOB_LEASE_SECONDS - 1)
        self.leases_are_looked_at()

    # --- time and the writer's own duties ---

    @rule(seconds=st.sampled_from([1.0, 29.0, 60.0, 100.0, 299.0, 600.0]))
    def time_passes(self, seconds: float) -> None:
        self.store.clock.advance(seconds)

    @rule(seconds=st.sampled_from([-86_400.0, -31.0, -20.0, 20.0, 31.0, 86_400.0]))
    def somebody_sets_the_clock(self, seconds: float) -> None:
        self.store.clock.set_wall(seconds)
        self.wall_moved += seconds

    @rule()
    def leases_are_looked_at(self) -> None:
        with self.store.transaction() as tx:
            self.leases.expire(tx)
        if abs(self.wall_moved) > limits.JOB_CLOCK_STEP_SECONDS:
            self.wall_moved = 0.0
            self.quiet_until = self.store.clock.monotonic() + limits.JOB_LEASE_SECONDS
            for paper in self.model.jobs.values():
                if paper.lease_until is not None:
                    paper.lease_until = self.now + LEASE_US
                if paper.waits_until is not None:
                    paper.waits_until = min(paper.waits_until, self.now + 300 * MICROSECONDS)
        if self.store.clock.monotonic() >= self.quiet_until:
            self.model.expire(self.now)

    @rule()
    def pauses_are_looked_at(self) -> None:
        with self.store.transaction() as tx:
            job_claims.wake(tx, 128)
        self.model.wake(self.now)

    @rule()
    def the_line_is_tidied(self) -> None:
        with self.store.transaction() as tx:
            job_claims.forget_turns(tx, 100)
        self.model.line = [
            scope
            for scope in self.model.line
            if any(paper.scope == scope and paper.is_due for paper in self.model.jobs.values())
        ]

    # --- what is always true ---

    @invariant()
    def both_say_the_same(self) -> None:
        if not hasattr(self, "store"):
            return
        for row in self.store.all("SELECT * FROM jobs"):
            paper = self.paper(row["id"])
            assert {
                "state": row["state"],
                "failures": row["failures"],
                "deaths": row["deaths"],
                "claims": row["claims"],
                "holder": row["claim_hash"],
                "was_renewed": row["renewed_at"] is not None,
                "lease_until": row["lease_until"],
                "waits_until": row["not_before"],
                "waits_for": row["waits_for"],
            } == {name: getattr(paper, name) for name in PLAIN}
            assert (row["cancel_asked_at"] is not None) == paper.cancel or row["state"] == "cancelled"
        counted = self.store.all(
            "SELECT json_extract(detail, '$.job') AS job, count(*) AS n FROM audit_log WHERE op = 'effect' GROUP BY 1"
        )
        assert {row["job"]: row["n"] for row in counted} == {
            id_text(key): paper.effects for key, paper in self.model.jobs.items() if paper.effects
        }
        assert all(paper.effects <= 1 for paper in self.model.jobs.values())

    def teardown(self) -> None:
        if not hasattr(self, "store"):
            return
        self.pause_or_resume(False)
        for _ in range(20):
            while (claim := self.claim()) is not None:
                self.finish(claim, "done")
            self.store.clock.advance(2 * limits.JOB_PAUSE_MAX_SECONDS)
            self.leases_are_looked_at()
            self.pauses_are_looked_at()
        self.both_say_the_same()
        assert all(paper.state in ENDED for paper in self.model.jobs.values())
        self.kinds.__exit__(None, None, None)
        self.store.close()
        self.directory.cleanup()


PLAIN = (
    "state",
    "failures",
    "deaths",
    "claims",
    "holder",
    "was_renewed",
    "lease_until",
    "waits_until",
    "waits_for",
)

TestJobs = Jobs.TestCase
TestJobs.settings = settings(
    max_examples=150,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
