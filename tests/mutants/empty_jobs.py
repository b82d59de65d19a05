"""No mutant but an addition: a kind of job that does nothing, of one project at a time, in the worker's own thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

TARGET = "memory_core.jobs"
KIND = "empty"
QUEUE = "lint"


@dataclass(frozen=True, kw_only=True)
class Nothing:
    pass


def apply(*_: Any) -> Any:
    from memory_core.domain.job import Done

    return Done()


def register() -> None:
    from memory_core.job_kind import JobKind, kinds
    from memory_core.job_kind import register as add

    if KIND in kinds:
        return
    add(
        JobKind(
            name=KIND,
            queue=QUEUE,
            input=Nothing,
            output=Nothing,
            prepare=lambda *_: Nothing(),
            compute=lambda given, _: given,
            apply=apply,
            per="project",
            is_inline=True,
        )
    )


def patch(_: Any) -> None:
    register()
