"""An embedder that needs no model, and the job's three steps without any process."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy

from memory_core.bootstrap import load_jobs
from memory_core.commands import embeddings
from memory_core.domain.embedding import EmbeddingModel
from memory_core.domain.job import Again, Job
from memory_core.job_kind import kinds
from memory_core.models.port import NOTHING, Embedding
from memory_core.store import embedding_models, jobs
from memory_core.store.database import Database
from tests.factories import Store

A = EmbeddingModel(provider="test", model="a", dimensions=8)
B = EmbeddingModel(provider="test", model="b", dimensions=16)


def vector_of(text: str, model: EmbeddingModel = A) -> numpy.ndarray:
    """By the words of a text: texts that share words are near."""
    made = numpy.zeros(model.dimensions, dtype=numpy.float32)
    for word in text.lower().split():
        digest = hashlib.blake2b(f"{model.model} {word}".encode(), digest_size=8).digest()
        rng = numpy.random.default_rng(int.from_bytes(digest, "big"))
        made += rng.standard_normal(model.dimensions).astype(numpy.float32)
    return made / numpy.linalg.norm(made)


@dataclass
class WordEmbedder:
    identity: EmbeddingModel = A
    fails: Callable[[Sequence[str]], Exception | None] = lambda _texts: None
    asked: list[list[str]] = field(default_factory=list)

    @property
    def dimensions(self) -> int:
        return self.identity.dimensions

    @property
    def name(self) -> str:
        return self.identity.provider

    @property
    def model(self) -> str:
        return self.identity.model

    def embed(self, texts: Sequence[str], kind: str = "document", cancel: Any = None) -> Embedding:
        if (error := self.fails(texts)) is not None:
            raise error
        self.asked.append(list(texts))
        return Embedding(
            vectors=numpy.stack([vector_of(text, self.identity) for text in texts]),
            usage=NOTHING,
            model=self.identity.model,
        )


@dataclass
class Maker:
    """Runs the job as pool and writer do, slice by slice; what goes between them is JSON."""

    store: Store
    embedder: WordEmbedder | None = field(default_factory=WordEmbedder)

    def bind(self, model: EmbeddingModel | None) -> None:
        with self.store.transaction() as tx:
            embeddings.bind(tx, model)

    def job(self) -> Job:
        load_jobs()
        with self.store.transaction() as tx:
            embeddings.look(tx)
            found = embeddings.open_job_of(tx)
            assert found is not None, "no job was made"
            job = jobs.one(tx, found)
        assert job is not None
        return job

    def slice(self, job: Job) -> Any:
        """One slice; what `apply` did."""
        kind = kinds.get("embedding")
        database = Database(self.store.path)
        try:
            with database.snapshot() as reading:
                given = kind.read_input(msgspec.json.encode(kind.prepare(reading, job)))
        finally:
            database.close()
        tools: Any = SimpleNamespace(
            embedder=self.embedder, cancelled=lambda: False, progress=lambda _text: None, data=None
        )
        output = kind.read_output(msgspec.json.encode(kind.compute(given, tools)))
        with self.store.transaction() as tx:
            return kind.apply(output, job, tx)

    def all(self, most: int = 100) -> dict[str, Any]:
        """Until nothing is left; the counts."""
        job = self.job()
        for _ in range(most):
            done = self.slice(job)
            if not isinstance(done, Again):
                with self.store.transaction() as tx:
                    tx.run(_END, id=job.id)
                return dict(done.result)
            job = Job(**{**vars_of(job), "cursor": done.cursor})
        raise AssertionError("it never ends")

    def progress(self) -> Any:
        with self.store.transaction() as tx:
            model = embedding_models.active(tx)
            assert model is not None
            return embedding_models.progress(tx, model)


def vars_of(job: Job) -> dict[str, Any]:
    return {name: getattr(job, name) for name in job.__dataclass_fields__}


_END = jobs.text_statement("DELETE FROM jobs WHERE id = :id")
