"""Embeddings as a whole: which model is bound, when the job that makes them is due, what of the past is taken away, and a person's word."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core import job_kind, limits
from memory_core.clock import MICROSECONDS
from memory_core.commands import Answer, command
from memory_core.domain.command import Refusal
from memory_core.domain.embedding import EmbeddingModel
from memory_core.domain.job import State
from memory_core.ids import id_text
from memory_core.store import audit, embedding_models, jobs, vector_index, vector_units
from memory_core.store.transaction import Reading, Transaction

#: The job kind that makes them.
KIND = "embedding"


@dataclass(frozen=True, kw_only=True)
class MakeEmbeddings:
    """Make what is missing now. `force`: make all anew, of the projects with these numbers (None: of all)."""

    force: bool = False
    projects: tuple[int, ...] | None = None


@command(MakeEmbeddings, name="make_embeddings")
def make(body: MakeEmbeddings, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"job": id}`."""
    model = embedding_models.active(tx)
    if model is None:
        return Refusal(
            code="conflict",
            message="no embedder is configured: pip install 'memoryd[local]', or name embed_provider under [models]",
        )
    if body.force and body.projects is None:
        embedding_models.supersede(tx, model["number"])
        audit.record(tx, "embeddings_made_anew")
    elif body.force:
        for number in body.projects or ():
            vector_units.drop_project(tx, model["number"], number)
        vector_units.drop_failed(tx, model["number"])
        embedding_models.begin_anew(tx, model["number"])
        audit.record(tx, "embeddings_made_anew")
    else:
        vector_units.drop_failed_units(tx, model["number"])
        embedding_models.begin_anew(tx, model["number"])
    open_job = open_job_of(tx)
    if open_job is None:
        open_job, _ = job_kind.enqueue(
            tx, KIND, source_digest=job_kind.digest_of(KIND, tx.new_id()), is_asked_for=True
        )
    return None if open_job is None else {"job": id_text(open_job)}


def bind(tx: Transaction, model: EmbeddingModel | None) -> bool:
    """Make the configured model the one that is searched with; whether that is new."""
    return embedding_models.activate(tx, model)


def open_job_of(read: Reading) -> bytes | None:
    """The job that makes embeddings and has not ended."""
    for state in (State.RUNNING, State.PENDING):
        if found := jobs.listed(read, state=state, kind=KIND, limit=1):
            return found[0].job.id
    return None


def look(tx: Transaction) -> int:
    """Make a job where text came that has no vector yet; how many. What comes while one is open waits for the next look."""
    model = embedding_models.active(tx)
    if model is None or not _is_waiting(tx, model["chunks_through"], model["turns_through"]):
        return 0
    if open_job_of(tx) is not None:
        return 0
    newest = jobs.listed(tx, kind=KIND, limit=1)
    pause = round(limits.EMBED_RETRY_SECONDS * MICROSECONDS)
    if newest and newest[0].job.state is not State.COMPLETED and _ended_at(newest[0].job) > tx.now - pause:
        # It failed for good, or a person cancelled it: not at once again.
        return 0
    jobs.forget_ended(tx, KIND, kept=limits.EMBED_JOBS_KEPT)
    job_kind.enqueue(tx, KIND, source_digest=job_kind.digest_of(KIND, tx.new_id()))
    return 1


def _ended_at(job: jobs.Job) -> int:
    return job.finished_at or 0


def _is_waiting(read: Reading, chunks_through: int, turns_through: int) -> bool:
    return vector_units.has_chunk_after(read, chunks_through) or vector_units.has_turn_after(
        read, turns_through
    )


def tidy(tx: Transaction) -> int:
    """A slice of keeping house: the index catches up, vectors of former models go once the present one has all. How many rows."""
    active = embedding_models.active(tx)
    touched = 0 if active is None else vector_index.catch_up(tx, active["number"])
    for model in embedding_models.every(tx):
        if model["is_active"]:
            continue
        if model["is_superseded"] or (active is not None and active["complete_at"] is not None):
            touched += _forget_some(tx, model["number"])
    return touched


def _forget_some(tx: Transaction, number: int) -> int:
    # Taken up again half way, it has to look at everything anew.
    embedding_models.begin_anew(tx, number)
    rows = vector_units.drop_some_units(tx, number, limits.VECTOR_DUTY_ROWS)
    rows = rows or vector_units.drop_some_embeddings(tx, number, limits.VECTOR_DUTY_ROWS)
    if rows or not vector_index.drop(tx, number):
        return rows
    vector_units.take_note_of(tx, number)
    embedding_models.forget(tx, number)
    return 1


class Strays:
    """Takes vectors of texts away that are no more, a slice at a time, round and round."""

    def __init__(self) -> None:
        self._place = (0, b"")

    def sweep(self, tx: Transaction) -> int:
        found = vector_units.strays(tx, self._place, limits.VECTOR_DUTY_ROWS)
        # A page that is just being written anew gets its vectors back from here: the job comes first.
        if open_job_of(tx) is not None:
            return 0
        vector_units.drop(tx, found)
        self._place = found[-1] if len(found) == limits.VECTOR_DUTY_ROWS else (0, b"")
        return len(found)
