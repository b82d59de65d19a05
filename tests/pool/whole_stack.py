"""A whole server whose jobs and leases are quick, and a way to look into its jobs."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_core import bootstrap
from memory_core.config import Settings, install_id
from memory_core.errors import OutcomeUnknown, Unavailable
from tests.mutants import job_kinds
from tests.mutants.job_kinds import EnqueueProbes
from tests.patience import as_shipped
from tests.pool.conftest import LOADER, ROOT
from tests.pool.real_worker import RealWorker
from tests.stack.conftest import RunningTree, make_tree, wait_until
from web.auth import Caller
from web.identity import CommandId
from web.parts import Parts, build
from workers import broker

QUICK = (
    "JOB_LEASE_SECONDS=2,JOB_RENEW_SECONDS=0.3,JOB_BACKOFF_SECONDS=0.2,JOB_START_GRACE_SECONDS=0,"
    "JOB_FAILURES_MAX=2,JOB_DEATHS_UNCOUNTED=1,POOL_RENEW_AGAIN_SECONDS=0.3"
)


@dataclass
class Stack:
    """The server, and what its jobs came to."""

    tree: RunningTree
    parts: Parts
    home: Path
    number: int = 0

    @property
    def settings(self) -> Settings:
        return self.tree.settings

    def enqueue(
        self, what: str = "echo", text: str = "", notes: str = "", *, count: int = 1, kind: str = "probe"
    ) -> list[str]:
        """Jobs, each with a subject of its own; the subjects."""
        subjects = []
        for _ in range(count):
            self.number += 1
            subjects.append(f"{what}|{text}|{notes}|{self.number}")
        command, own_id = EnqueueProbes(kind=kind, subjects=tuple(subjects)), os.urandom(16)
        answers: list[Any] = []

        def answered() -> bool:
            try:
                # Some brokers of these tests never answer: given up after a minute, they would be given up too late.
                with as_shipped():
                    answers.append(
                        self.parts.gate.submit(
                            command,
                            CommandId(value=own_id, is_foreign=False),
                            Caller(principal="owner", scope="admin"),
                            seconds=10.0,
                        )
                    )
            except (Unavailable, OutcomeUnknown):
                return False  # the broker is away: the same is sent again, as every client does
            return answers[-1] == {"created": count}

        wait_until(answered)
        return subjects

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(f"file:{self.settings.database}?mode=ro", uri=True)) as connection:
            return connection.execute(sql, values).fetchall()

    def states(self, subjects: list[str]) -> list[str]:
        wanted = set(subjects)
        return [state for subject, state in self.rows("SELECT subject, state FROM jobs") if subject in wanted]

    def wait_completed(self, subjects: list[str], seconds: float = 120.0) -> None:
        """Each took effect exactly once, by what its `apply` left in the audit log."""
        wait_until(lambda: self.states(subjects) == ["completed"] * len(subjects), seconds)
        self.check_once(subjects)

    def check_once(self, subjects: list[str]) -> None:
        applied = [
            detail for (detail,) in self.rows("SELECT detail FROM audit_log WHERE op = 'probe_applied'")
        ]
        for subject in subjects:
            assert sum(f'"{subject}"' in detail for detail in applied) == 1, subject

    def column(self, subject: str, name: str) -> Any:
        ((value,),) = self.rows(f"SELECT {name} FROM jobs WHERE subject = ?", subject)
        return value

    def wait_running(self, subject: str) -> None:
        wait_until(lambda: self.column(subject, "state") == "running")

    @property
    def pool(self) -> int:
        return self.tree.pids["pool"]

    def wait_new_pool(self, old: int) -> None:
        wait_until(lambda: self.tree.pids.get("pool") not in (None, old))

    def arm(self, step: str) -> None:
        (self.home / "die-at").write_text(step)

    def worker(self, name: str, *, mutants: str = "", quick: str = "", **more: Any) -> RealWorker:
        """One more worker of this stack, with its own token and no data directory."""
        return RealWorker(
            self.home / name,
            broker.broker_url(self.settings),
            self.settings.url,
            mutants=mutants,
            environ={"POOL_QUICK": QUICK + quick, "DIE_AT": str(self.home / "die-at")},
            install=install_id(self.settings),
            pool_token_file=str(self.settings.local_pool_token_file),
            **more,
        )


@contextmanager
def whole_stack(
    home: Path, *, quick: str = QUICK, environ: dict[str, str] | None = None, **options: Any
) -> Iterator[Stack]:
    """Everything that `memoryd up` starts, ready; `quick` as `quick_jobs` reads it, `options` are settings."""
    bootstrap.load_commands()
    job_kinds.register()
    with make_tree(home) as start:
        tree = start(
            "workers.supervisor",
            environ={
                "PYTHONPATH": f"{LOADER}:{ROOT}",
                "MEMORYD_TEST_MUTANT": "job_kinds,quick_jobs,quick_pool,die_at",
                "POOL_QUICK": quick,
                "DIE_AT": str(home / "die-at"),
                **(environ or {}),
            },
            **options,
        )
        tree.wait_ready()
        parts = build(tree.settings)
        try:
            yield Stack(tree=tree, parts=parts, home=home)
        finally:
            parts.line.close()
