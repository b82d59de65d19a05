"""Search as memory grows: ten times as many pages in fifty projects, one project or all of them asked, one client or sixteen."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator

from memory_core.clock import SystemClock
from memory_core.recall.search import Found, Question, search
from memory_core.store.database import Database
from scripts.bench_parts import asking
from scripts.bench_parts.figures import Result, at_least, at_most, quantile
from scripts.bench_parts.filling import Rates, World
from scripts.bench_parts.parts import Bench, parts
from scripts.bench_parts.searching import SHAPES
from scripts.bench_parts.stack import Stack

SCOPED_SMALL, SCOPED_LARGE = at_most(15), at_most(40)
GROWTH = at_most(1.5)
GLOBAL = at_most(250)
CLIENTS = 16
MANY_CLIENTS = at_least(1.5)
INDEX_BUILD = at_least(1_000)
FROM_TEXTS = at_least(200)
_CHECKED = 20


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


def _ask(database: Database, world: World, text: str, project: int | None) -> Found:
    with database.snapshot() as reading:
        projects = None if project is None else [world.projects[project]]
        return search(
            reading, Question(text=text, projects=projects, now=SystemClock().now_us(), principal="owner")
        )


def _wrong(database: Database, world: World) -> list[str]:
    found: list[str] = []
    for number in range(0, world.pages, max(1, world.pages // _CHECKED)):
        hits = _ask(database, world, world.own_word(number), number % len(world.projects)).hits
        if [hit.path for hit in hits][:1] != [world.path_of(number)]:
            found.append(f"{world.path_of(number)} is not what its own word finds")
        elsewhere = _ask(database, world, world.own_word(number), (number + 1) % len(world.projects)).hits
        if world.path_of(number) in [hit.path for hit in elsewhere]:
            found.append(f"{world.path_of(number)} is found in another project")
    return found


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
