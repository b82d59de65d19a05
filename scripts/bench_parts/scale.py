"""Search as memory grows: ten times as many pages in fifty projects, one project or all of them asked, one client or sixteen."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator

import numpy

from memory_core.clock import SystemClock
from memory_core.models.query_embedder import QueryVector
from memory_core.recall.search import Found, Hit, Question, search
from memory_core.recall.vectors import QuestionVector, near
from memory_core.store.database import Database
from memory_core.store.nearest import Scope
from memory_core.store.vector_matrix import VectorMatrix
from scripts.bench_parts import asking
from scripts.bench_parts.figures import Result, at_least, at_most, quantile
from scripts.bench_parts.filling import MODEL, Rates, World, normalised
from scripts.bench_parts.parts import Bench, parts
from scripts.bench_parts.searching import SHAPES
from scripts.bench_parts.stack import Stack

SCOPED_SMALL, SCOPED_LARGE = at_most(15), at_most(40)
GROWTH = at_most(1.5)
GLOBAL = at_most(250)
WITH_VECTORS = at_most(80)
CLIENTS = 16
MANY_CLIENTS = at_least(1.5)
INDEX_BUILD = at_least(1_000)
FROM_TEXTS = at_least(200)
_CHECKED = 20
#: What a search takes of its streams.
_NEAR = 50


@parts.add("scale")
def scale(bench: Bench) -> Result:
    """It needs a stack of its own, whose writer and pool are away while pages are written past them."""
    result = Result(part="scale")
    home = bench.directory / "stack"
    with Stack(home) as stack:
        database_path = stack.database
    world = World(database_path, bench.sizes.scale_projects)
    small, large = bench.sizes.scale_pages
    medians: list[float] = []
    written: list[Rates] = []
    for count, target in ((small, SCOPED_SMALL), (large, SCOPED_LARGE)):
        bench.say(f"scale: writing {count - world.pages:,} pages")
        written.append(world.fill(count))
        bench.say(f"scale: searching {count:,} pages")
        database = Database(database_path)
        took = sorted(_scoped(database, world, bench.sizes.searches))
        medians.append(statistics.median(took))
        name = f"{count:,} pages in {len(world.projects)} projects, one asked"
        result.add(f"{name}: p50", medians[-1], "ms", target)
        result.add(f"{name}: p99", quantile(took, 0.99), "ms")
        result.complaints += _wrong(database, world)
        if count == large:
            _everywhere(result, database, world, bench.sizes.searches)
            bench.say("scale: making vectors")
            vectors = world.embed()
            _with_vectors(result, database, world, bench.sizes.searches, vectors)
        database.close()
    result.add("the larger against the smaller, p50", medians[1] / medians[0], "", GROWTH)
    _rates(result, written)
    world.close()
    with Stack(home, only=("broker", "web")) as stack:
        _clients(result, bench, stack, world)
    result.verified.append(
        f"{_CHECKED} of the pages of each size: found first by a word of their own, in their project alone"
    )
    return result


def _rates(result: Result, written: list[Rates]) -> None:
    count = sum(rates.pages for rates in written)
    writing = sum(rates.writing for rates in written)
    making = sum(rates.making for rates in written)
    result.add("written and indexed", count / writing, "pages/s", INDEX_BUILD)
    result.add(
        "from texts with front matter, links and hashes", count / (writing + making), "pages/s", FROM_TEXTS
    )


def _questions(world: World, each: int) -> Iterator[tuple[int, str]]:
    """A project's number and a question, of each shape in turn."""
    chance = random.Random(3)
    for _ in range(each):
        for make in SHAPES.values():
            yield chance.randrange(len(world.projects)), make(world.words, chance)


def _scoped(database: Database, world: World, each: int) -> Iterator[float]:
    for number, text in _questions(world, each):
        began = time.monotonic()
        _ask(database, world, text, number)
        yield (time.monotonic() - began) * 1000


def _everywhere(result: Result, database: Database, world: World, each: int) -> None:
    took: list[float] = []
    for _, text in _questions(world, each):
        began = time.monotonic()
        _ask(database, world, text, None)
        took.append((time.monotonic() - began) * 1000)
    name = f"{world.pages:,} pages, all projects asked"
    result.add(f"{name}: p50", statistics.median(took), "ms", GLOBAL)
    result.add(f"{name}: p99", quantile(took, 0.99), "ms")


def _with_vectors(result: Result, database: Database, world: World, each: int, count: int) -> None:
    """The same questions by their words and by a vector each, one after the other, in one project and in all."""
    chance, matrix = numpy.random.default_rng(6), VectorMatrix()
    took: dict[str, list[float]] = {"one project": [], "all projects": []}
    for number, text in _questions(world, each):
        vector = normalised(chance.standard_normal(MODEL.dimensions))
        question = QuestionVector(query=QueryVector(model=MODEL, vector=vector), matrix=matrix)
        for name, project in (("one project", number), ("all projects", None)):
            began = time.monotonic()
            _ask(database, world, text, project)
            projects = None if project is None else [world.projects[project].number]
            scope = Scope(projects=projects, owner="owner", now=SystemClock().now_us())
            with database.snapshot() as reading:
                found = near(reading, question, scope, _NEAR)
            took[name].append((time.monotonic() - began) * 1000)
            if len(found) < min(_NEAR, count // (1 if project is None else len(world.projects)) // 2):
                result.complaints.append(f"only {len(found)} units are near a question in {name}")
    for name, target in (("one project", WITH_VECTORS), ("all projects", GLOBAL)):
        title = f"{world.pages:,} pages with {count:,} synthetic vectors, words and vectors of {name}"
        result.add(f"{title}: p50", statistics.median(took[name]), "ms", target)
        result.add(f"{title}: p99", quantile(took[name], 0.99), "ms")


def _ask(database: Database, world: World, text: str, project: int | None, *, explain: bool = False) -> Found:
    with database.snapshot() as reading:
        question = Question(
            text=text,
            projects=None if project is None else [world.projects[project]],
            now=SystemClock().now_us(),
            principal="owner",
            explain=explain,
        )
        return search(reading, question)


def _wrong(database: Database, world: World) -> list[str]:
    found: list[str] = []
    for number in range(0, world.pages, max(1, world.pages // _CHECKED)):
        hits = _ask(database, world, world.own_word(number), number % len(world.projects), explain=True).hits
        # It is written as a name is, and by names alone it would be found without the full-text index.
        if not hits or hits[0].path != world.path_of(number) or not _is_by_words(hits[0]):
            found.append(f"{world.path_of(number)} is not what its own word finds")
        elsewhere = _ask(database, world, world.own_word(number), (number + 1) % len(world.projects)).hits
        if world.path_of(number) in [hit.path for hit in elsewhere]:
            found.append(f"{world.path_of(number)} is found in another project")
    return found


def _is_by_words(hit: Hit) -> bool:
    return hit.score_details is not None and "lexical" in hit.score_details["streams"]


def _clients(result: Result, bench: Bench, stack: Stack, world: World) -> None:
    questions: list[dict[str, object]] = [
        {"query": text, "project": world.projects[number].name} for number, text in _questions(world, 20)
    ]

    def ask(clients: int) -> asking.Report:
        plan = asking.Plan(
            port=stack.port,
            token=stack.token,
            tool="memory_query",
            questions=questions,
            clients=clients,
            seconds=bench.sizes.asking_seconds,
        )
        report = asking.run(plan)
        if report.others:
            result.complaints.append(
                f"{report.others} of {report.answers} questions of {clients} clients were refused"
            )
        return report

    ask(1)
    alone: list[float] = []
    together: list[float] = []
    for round_number in range(bench.sizes.rounds):
        bench.say(f"scale: one client and {CLIENTS}, round {round_number + 1}")
        alone.append(ask(1).rate)
        together.append(ask(CLIENTS).rate)
    result.add_median("one client", alone, "answers/s")
    result.add_median(f"{CLIENTS} clients", together, "answers/s")
    ratios = [many / one for many, one in zip(together, alone, strict=True)]
    result.add_median(f"{CLIENTS} clients against one", ratios, "", MANY_CLIENTS)
