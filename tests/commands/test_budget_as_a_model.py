"""Whatever workers do, in whatever order: no day's caps are passed, and the books equal a plain model of them."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from memory_core import limits
from memory_core.commands.jobs import expire_leases
from memory_core.commands.model_control import PauseModels, ResumeModels, tidy_calls
from memory_core.domain.budget import Budget, Cap, Price, Spent, Tokens, day_of
from memory_core.domain.job import Reason
from memory_core.store import job_claims, model_calls, model_usage
from tests.factories import Store, database
from tests.jobs.calling import Caller, allow, spent_today, sweep_lost
from tests.jobs.working import add_job, add_project, kind, look, registered

PRICE = Price(input=3_000_000, output=15_000_000, cached=300_000)
PROJECTS = 2


@dataclass(frozen=True)
class Open:
    """A call as the model of it knows it."""

    worker: int
    project: int
    day: str
    reserved: Tokens


class Books(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.store: Store = database(Path(self.directory.name))
        self.kinds = registered(kind(uses_model=True))
        self.kinds.__enter__()
        self.projects = [add_project(self.store, str(number)) for number in range(PROJECTS)]
        self.workers: list[Caller | None] = [None] * 3
        self.of_worker: list[int] = [0] * 3
        self.budget = Budget()
        self.open: dict[bytes, Open] = {}
        self.lost: dict[bytes, Open] = {}
        self.settled: dict[bytes, tuple[Open, Tokens]] = {}
        self.jobs = self.calls = 0

    def teardown(self) -> None:
        self.kinds.__exit__(None, None, None)
        self.store.close()
        self.directory.cleanup()

    @initialize(
        day=st.integers(800, 6_000), project=st.integers(600, 5_000), money=st.integers(5_000, 40_000)
    )
    def budgeted(self, day: int, project: int, money: int) -> None:
        self.budget = Budget(
            day=Cap(tokens=day, money=money), project=Cap(tokens=project), prices={"openai:gpt-x": PRICE}
        )
        allow(self.store, self.budget)
        for number in range(3):
            self.claim(number, number % PROJECTS)

    # --- what workers do ---

    @precondition(lambda self: None in self.workers)
    @rule(project=st.integers(0, PROJECTS - 1))
    def come_back(self, project: int) -> None:
        self.claim(self.workers.index(None), project)

    def claim(self, number: int, project: int) -> None:
        self.jobs += 1
        worker = Caller(self.store, name=f"w{number}-{self.jobs}")
        job = add_job(self.store, str(self.jobs), project_id=self.projects[project])
        with self.store.transaction() as tx:
            job_claims.wake(tx, 128)
        while worker.take() not in (job, None):
            worker.finish()
        if worker.job == job:
            self.workers[number], self.of_worker[number] = worker, project

    def reserve(self, data: st.DataObject, tokens: int) -> None:
        number = data.draw(
            st.sampled_from([n for n, worker in enumerate(self.workers) if worker is not None])
        )
        worker = self.workers[number]
        assert worker is not None
        self.calls += 1
        # Not at random: what is drawn from must be the same each time.
        answer = worker.reserve(tokens, call=self.calls.to_bytes(16, "big"))
        project, today = self.of_worker[number], day_of(self.store.clock.now_us())
        planned = Tokens(input=tokens - tokens // 4, output=tokens // 4)
        assert answer["granted"] == self.fits(project, today, planned)
        if answer["granted"]:
            self.open[answer["call"]] = Open(number, project, today, planned)

    @precondition(lambda self: any(self.workers))
    @rule(data=st.data(), tokens=st.lists(st.integers(0, 400), min_size=2, max_size=4))
    def reserve_some(self, data: st.DataObject, tokens: list[int]) -> None:
        for more in tokens:
            self.reserve(data, more)

    @precondition(lambda self: self.open or self.lost)
    @rule(data=st.data())
    def settle(self, data: st.DataObject) -> None:
        """Also of a worker that was taken for dead."""
        known = {**self.open, **self.lost}
        call = data.draw(st.sampled_from(sorted(known)))
        found = known[call]
        used = Tokens(
            input=data.draw(st.integers(0, found.reserved.input)),
            output=data.draw(st.integers(0, found.reserved.output)),
        )
        (row,) = self.store.all("SELECT job_id, claim_hash FROM model_calls WHERE id = ?", call)
        late = Caller(self.store, job=row["job_id"], claim=row["claim_hash"])
        assert isinstance(late.settle(call, (used.input, used.output)), dict)
        self.open.pop(call, None)
        self.lost.pop(call, None)
        self.settled[call] = (found, used)

    @precondition(lambda self: all(self.workers))
    @rule(number=st.integers(0, 2), is_dead=st.booleans())
    def go(self, number: int, is_dead: bool) -> None:
        """A worker hands its job back, or dies: then its calls stay open until its lease is over."""
        worker, self.workers[number] = self.workers[number], None
        assert worker is not None
        if not is_dead:
            worker.release(Reason.BUDGET)

    # --- what time and people do ---

    def pass_time(self, seconds: float) -> None:
        """Who lives gives a sign of life; the leases of the others are over."""
        self.store.clock.advance(seconds)
        for worker in self.workers:
            if worker is not None:
                worker.renew()
        with self.store.transaction() as tx:
            expire_leases(tx)
        self.sweep()

    @precondition(lambda self: None in self.workers)
    @rule()
    def leases_run_out(self) -> None:
        self.pass_time(limits.JOB_LEASE_SECONDS + 1)

    @rule()
    def sweep(self) -> None:
        sweep_lost(self.store)
        lost = {row["id"] for row in self.store.all("SELECT id FROM model_calls WHERE outcome = 'lost'")}
        held = {number for number, worker in enumerate(self.workers) if worker is not None}
        for call in lost & self.open.keys():
            found = self.open.pop(call)
            assert found.worker not in held or self.changed_hands(call, found.worker)
            self.lost[call] = found

    @rule()
    def next_day(self) -> None:
        self.pass_time(86_400)

    @rule()
    def tidy(self) -> None:
        with self.store.transaction() as tx:
            tidy_calls(tx)

    @rule()
    def pause_for_a_while(self) -> None:
        self.store.apply(PauseModels())
        for worker in self.workers:
            if worker is not None:
                assert worker.reserve(0)["reason"] == "paused"
        self.store.apply(ResumeModels())

    @rule(more=st.integers(1, 500))
    def raise_the_cap(self, more: int) -> None:
        cap = replace(self.budget.day, tokens=(self.budget.day.tokens or 0) + more)
        self.budget = replace(self.budget, day=cap)
        allow(self.store, self.budget)

    # --- what must hold ---

    @invariant()
    def no_cap_is_passed(self) -> None:
        spent = spent_today(self.store)
        assert spent.tokens <= (self.budget.day.tokens or 0)
        assert spent.money <= (self.budget.day.money or 0)
        today = day_of(self.store.clock.now_us())
        for project in self.projects:
            of_project = model_usage.spent(look(self.store), today, today, scope=project)
            of_project += model_calls.open_sums(look(self.store), today, today, scope=project)
            assert of_project.tokens <= (self.budget.project.tokens or 0)

    @invariant()
    def the_books_equal_the_model(self) -> None:
        assert spent_today(self.store) == self.expected(day_of(self.store.clock.now_us()))

    # --- the plain model ---

    def expected(self, day: str, project: int | None = None) -> Spent:
        def counts(found: Open) -> bool:
            return found.day == day and project in (None, found.project)

        total = Spent()
        for found in (*self.open.values(), *self.lost.values()):
            if counts(found):
                money = PRICE.at_most(found.reserved)
                total += Spent(calls=1, tokens=found.reserved.total, money=money)
        for found, used in self.settled.values():
            if counts(found):
                total += Spent(calls=1, tokens=used.total, money=PRICE.of(used))
        return total

    def fits(self, project: int, day: str, planned: Tokens) -> bool:
        today, here = self.expected(day), self.expected(day, project)
        return (
            today.tokens + planned.total <= (self.budget.day.tokens or 0)
            and today.money + PRICE.at_most(planned) <= (self.budget.day.money or 0)
            and here.tokens + planned.total <= (self.budget.project.tokens or 0)
        )

    def changed_hands(self, call: bytes, number: int) -> bool:
        """The call is of an earlier claim than the one that the worker of that number holds."""
        worker = self.workers[number]
        (row,) = self.store.all("SELECT claim_hash FROM model_calls WHERE id = ?", call)
        return worker is not None and row["claim_hash"] != worker.claim


def test_no_interleaving_passes_a_cap_and_the_books_are_right():
    run_state_machine_as_test(
        Books,
        settings=settings(
            max_examples=60,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
