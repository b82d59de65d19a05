"""Compactions for tests: workers that compute one as the product does, and a model that says the same to everybody."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

import memory_core.jobs.compaction as compaction
from memory_core import job_kind
from memory_core.domain.command import Refusal
from memory_core.ids import id_bytes
from memory_core.models.port import StructuredCompletion, Usage
from memory_core.store import job_claims
from tests.factories import Store
from tests.jobs.sessions import Agent, working
from tests.jobs.working import Worker, job_of, look


@dataclass
class Model:
    """A language model that says the same to everybody."""

    says: str = "They chose SQLite."
    error: Exception | None = None
    name: str = "some"
    model: str = "model-1"
    max_output_tokens: int = 4_096
    context_tokens: int = 128_000
    asked: list[Any] = field(default_factory=list)

    def complete_structured(self, request: Any, schema: Any) -> StructuredCompletion:
        self.asked.append(request)
        if self.error:
            raise self.error
        return StructuredCompletion(
            value={"summary": self.says}, usage=Usage(input_tokens=9, output_tokens=5), model=self.model
        )


@dataclass
class Tools:
    model: Any = None


def worker(store: Store) -> Worker:
    return Worker(store, queues=("compaction",))


def compute(store: Store, job_id: bytes, model: Any = None) -> compaction.Summary:
    """What the worker sends back, by the way it travels."""
    kind = job_kind.kinds.get("compaction")
    source = kind.prepare(look(store), job_of(store, job_id))
    output = kind.compute(kind.read_input(msgspec.json.encode(source)), Tools(model))  # type: ignore[arg-type]
    return kind.read_output(msgspec.json.encode(output))


def work(store: Store, model: Any = None) -> Any:
    """Claim the next compaction and finish it; the answer."""
    one = worker(store)
    job_id = one.take()
    assert job_id is not None
    return one.finish(compute(store, job_id, model))


def queued(agent: Agent, through: int) -> bytes:
    answer = agent.compact(through)
    assert not isinstance(answer, Refusal), answer
    return id_bytes(answer["job"]["id"])


def compacted(store: Store, turns: int = 6, through: int = 4) -> Agent:
    """A session whose first events are summed up, and that nobody holds."""
    agent = working(store, turns)
    queued(agent, through)
    agent.release()
    assert work(store)["state"] == "completed"
    return agent


def edit(store: Store, agent: Agent, sequence: int) -> None:
    """Change an event behind memoryd's back."""
    with store.transaction():
        store.connection.execute(
            "UPDATE session_events SET payload_json = '{}' WHERE session_id = ? AND sequence = ?",
            (agent.session, sequence),
        )


def wake(store: Store, seconds: float) -> None:
    store.clock.advance(seconds)
    with store.transaction() as tx:
        job_claims.wake(tx, 128)
