"""Kinds of jobs for tests, and workers that claim and end jobs by the commands, without any process."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from memory_core import job_kind
from memory_core.commands.jobs import ClaimJob, FailJob, FinishJob, ReleaseJob, RenewJob
from memory_core.domain.command import Refusal
from memory_core.domain.job import Again, Done, Failure, Job, Later, Reason
from memory_core.ids import id_bytes
from memory_core.job_kind import JobKind, enqueue
from memory_core.store import jobs, projects
from memory_core.store.transaction import Transaction
from tests.factories import Store

DIGEST = hashlib.sha256(b"input").digest()


@dataclass(frozen=True, kw_only=True)
class Sum:
    """Input and output of the test kinds. `mode` says what `apply` makes of it."""

    numbers: tuple[int, ...] = ()
    mode: str = "done"


def apply_sum(output: Sum, job: Job, tx: Transaction) -> Any:
    match output.mode:
        case "again":
            return Again(cursor={"at": sum(output.numbers)})
        case "later":
            return Later(reason=Reason.CONTENDED)
        case "changed":
            return Refusal(code="conflict", message="the source is another one now")
        case "no":
            return Refusal(code="invalid", message="no")
        case "raise":
            raise RuntimeError("a bug of the kind")
        case _:
            return Done(
                result={"sum": sum(output.numbers), "principal": tx.principal, "scope": tx.token_scope}
            )


def kind(name: str = "test_sum", **more: Any) -> JobKind:
    values: dict[str, Any] = {
        "name": name,
        "queue": "lint",
        "input": Sum,
        "output": Sum,
        "prepare": lambda _reading, _job: Sum(numbers=(1, 2)),
        "compute": lambda given, _tools: given,
        "apply": apply_sum,
    }
    return JobKind(**values | more)


@contextmanager
def registered(*some: JobKind) -> Iterator[None]:
    """The kinds are known while this lasts."""
    known: Any = job_kind.kinds._items
    for one in some:
        job_kind.register(one)
    try:
        yield
    finally:
        for one in some:
            del known[one.name]


def add_project(store: Store, name: str) -> bytes:
    with store.transaction() as tx:
        return projects.add(tx, workspace="default", name=name, repo_path=None)


def add_job(store: Store, source: str = "a", *, name: str = "test_sum", **more: Any) -> bytes:
    with store.transaction() as tx:
        return enqueue(tx, name, source_digest=job_kind.digest_of(source), **more)[0]


def job_of(store: Store, job_id: bytes) -> Job:
    found = jobs.one(look(store), job_id)
    assert found is not None
    return found


def look(store: Store) -> Transaction:
    """To ask the database outside of a transaction."""
    return Transaction(store.connection, store.ids)


@dataclass
class Worker:
    """One slot of a pool worker: what it holds, and the commands that it sends."""

    store: Store
    name: str = "worker-1"
    queues: tuple[str, ...] = ("lint",)
    on_data_host: bool = True
    #: Only jobs of this kind.
    kind: str = ""
    #: The hash of its lease token; a new one for each claim.
    claim: bytes = field(default=b"", repr=False)
    job: bytes = b""
    count: int = 0

    def take(self) -> bytes | None:
        """Claim; the job's id, or None."""
        self.count += 1
        claim = hashlib.sha256(f"{self.name}/{self.count}".encode()).digest()
        answer = self.store.apply(
            ClaimJob(
                claim=claim,
                worker=self.name,
                queues=self.queues,
                on_data_host=self.on_data_host,
                kind=self.kind,
            )
        )
        if answer["job"] is None:
            return None
        self.claim, self.job = claim, id_bytes(answer["job"])
        return self.job

    def renew(self) -> Any:
        return self.store.apply(RenewJob(job=self.job, claim=self.claim))

    def finish(self, output: Any = None) -> Any:
        return self.store.apply(
            FinishJob(
                job=self.job, claim=self.claim, input_digest=DIGEST, output=output or Sum(numbers=(1, 2))
            )
        )

    def fail(self, error: Failure = Failure.CRASHED, *, permanent: bool = False) -> Any:
        return self.store.apply(FailJob(job=self.job, claim=self.claim, error=error, permanent=permanent))

    def release(self, reason: Reason = Reason.STOPPING, seconds: float | None = None) -> Any:
        return self.store.apply(ReleaseJob(job=self.job, claim=self.claim, reason=reason, seconds=seconds))
