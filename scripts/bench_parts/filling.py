"""Many pages in many projects, written into a database by the writer's own code in large transactions, without a writer; and
vectors for them that stand for nothing: only their number and size are those of an embedder."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy
from numpy.typing import NDArray

from memory_core.clock import SystemClock
from memory_core.commands.folders import add_project
from memory_core.commands.versions import PageDraft, link_targets, new_version
from memory_core.domain.embedding import EmbeddingModel
from memory_core.domain.page import PagePath, page_path
from memory_core.domain.project import Project
from memory_core.ids import IdSource
from memory_core.store import embedding_models, links, pages, projects, vector_index, vector_units
from memory_core.store.transaction import Reading, Transaction
from memory_core.store.writing import WriterConnection
from scripts.bench_parts.texts import Words

_TOGETHER = 1_000
MODEL = EmbeddingModel(provider="bench", model="noise", dimensions=384)
_FOLDERS = ("notes", "decisions", "gotchas", "concepts", "procedures")


@dataclass(kw_only=True)
class Rates:
    """Seconds that pages took: to make versions of texts, to write and index them."""

    pages: int = 0
    making: float = 0.0
    writing: float = 0.0


@dataclass(frozen=True, kw_only=True)
class _Made:
    """What a page's text became before anything is written."""

    project: Project
    path: PagePath
    version: pages.NewVersion
    targets: list[links.LinkTarget]


class World:
    """Pages of 60 to 400 invented words with front matter and links, dealt out to projects in turn. Page `n` is the same in
    each run, and holds a word of its own."""

    def __init__(self, database: Path, project_count: int) -> None:
        self.words = Words()
        self.pages = 0
        self._clock = SystemClock()
        self._connection = WriterConnection(database)
        self._ids = IdSource(self._clock)
        self.projects: list[Project] = self._transact(
            lambda tx: [self._project(tx, f"scale-{number:02}") for number in range(project_count)]
        )

    def fill(self, count: int) -> Rates:
        """Write pages until there are `count`."""
        rates = Rates(pages=count - self.pages)
        while self.pages < count:
            numbers = range(self.pages, min(self.pages + _TOGETHER, count))
            began = time.monotonic()
            made = list(self._made(numbers))
            between = time.monotonic()
            self._transact(lambda tx, made=made: self._write(tx, made))
            self._connection.checkpoint()
            rates.making += between - began
            rates.writing += time.monotonic() - between
            self.pages = numbers.stop
        return rates

    def embed(self) -> int:
        """Give each part of a page a vector, as the pool's embeddings arrive; how many there are."""
        self._transact(lambda tx: embedding_models.activate(tx, MODEL))
        chance = numpy.random.default_rng(5)
        after = count = 0
        while True:
            waiting = self._transact(
                lambda tx, after=after: vector_units.waiting_chunks(
                    tx, self._model(tx), after=after, through=sys.maxsize, limit=_TOGETHER
                )
            )
            if not waiting:
                break
            made = normalised(chance.standard_normal((len(waiting), MODEL.dimensions)))
            self._transact(lambda tx, waiting=waiting, made=made: self._keep(tx, waiting, made))
            count += len(waiting)
            after = waiting[-1].number
        while self._transact(lambda tx: vector_index.catch_up(tx, self._model(tx), _TOGETHER)):
            self._connection.checkpoint()
        return count

    def _model(self, reading: Reading) -> int:
        row = embedding_models.active(reading)
        assert row is not None
        return row["number"]

    def _keep(
        self, tx: Transaction, waiting: list[vector_units.Waiting], made: NDArray[numpy.float32]
    ) -> None:
        number = self._model(tx)
        for one, vector in zip(waiting, made, strict=True):
            digest = one.digest or b""
            vector_units.keep(tx, number, digest, vector=vector.tobytes(), error=None)
            unit = vector_units.Unit(
                is_turn=False,
                number=one.number,
                project_number=one.project_number,
                piece=0,
                owner=None,
                digest=digest,
            )
            vector_units.add(tx, number, unit)

    def close(self) -> None:
        while self._connection.join_index():
            pass
        self._connection.truncate()
        self._connection.close()

    def project_of(self, number: int) -> Project:
        return self.projects[number % len(self.projects)]

    def path_of(self, number: int) -> str:
        return f"{_FOLDERS[number % len(_FOLDERS)]}/topic-{number:06d}.md"

    @staticmethod
    def own_word(number: int) -> str:
        return f"own{number:06d}word"

    def text(self, number: int) -> str:
        chance = random.Random(number)
        told = self.words.some(chance, chance.randrange(60, 400))
        half = len(told) // 2
        other = max(number - len(self.projects) * chance.randrange(1, 20), 0)
        return (
            f"---\ntitle: Topic {number}\ntags: [bench, {told[0]}]\nentities: [{told[1]}]\n---\n"
            f"# Topic {number}\n\nOnly here: {self.own_word(number)}. {' '.join(told[:half])}\n\n"
            f"## More of it\n\nSee [[{self.path_of(other)}]] and `{told[2]}_{told[3]}`. {' '.join(told[half:])}\n"
        )

    def _made(self, numbers: range) -> Iterator[_Made]:
        for number in numbers:
            draft = PageDraft(path=page_path(self.path_of(number)), body=self.text(number))
            project, version = self.project_of(number), new_version(draft, None, "bench")
            targets = link_targets(project, draft.path, version.content[version.body_start :])
            yield _Made(project=project, path=draft.path, version=version, targets=targets)

    def _write(self, tx: Transaction, made: list[_Made]) -> None:
        for each in made:
            page_id, _ = pages.add_page(tx, each.project, each.path, each.version)
            links.replace(tx, each.project, page_id, each.targets)

    def _project(self, tx: Transaction, name: str) -> Project:
        row = projects.by_id(tx, add_project(tx, workspace="default", name=name))
        assert row is not None
        return Project.from_row(row)

    def _transact(self, work):
        tx = Transaction(self._connection.raw, self._ids)
        tx.now = self._clock.now_us()
        self._connection.begin()
        try:
            found = work(tx)
            tx.write_held()
            self._connection.commit()
        except BaseException:
            self._connection.rollback()
            raise
        return found


def normalised(vectors: NDArray[numpy.float64]) -> NDArray[numpy.float32]:
    return (vectors / numpy.linalg.norm(vectors, axis=-1, keepdims=True)).astype(numpy.float32)
