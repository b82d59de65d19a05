"""Search over ten thousand pages, by questions of several shapes: inside a process, over HTTP, over MCP."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from memory_core.clock import SystemClock
from memory_core.commands.pages import WritePage
from memory_core.recall.scope import Asker, project_for
from memory_core.recall.search import Question, search
from memory_core.store.database import Database
from scripts.bench_parts import verify
from scripts.bench_parts.commands import envelope
from scripts.bench_parts.figures import Result, at_most, quantile
from scripts.bench_parts.parts import Bench, parts
from scripts.bench_parts.stack import Stack
from scripts.bench_parts.talk import Talk
from scripts.bench_parts.texts import Words

P50 = at_most(15)
PROJECT = "bench-wiki"
_FILL_PAGES = 1_000
#: Asks a question; paths of what was found.
Ask = Callable[[str], list[str]]
#: Shape of a question → how it is made. Ranks are places in the order of frequency.
SHAPES: dict[str, Callable[[Words, random.Random], str]] = {
    "one rare word": lambda words, chance: chance.choice(words.all[5_000:15_000]),
    "one middling word": lambda words, chance: chance.choice(words.all[200:1_000]),
    "one of the commonest words": lambda words, chance: chance.choice(words.all[:20]),
    "three words": lambda words, chance: " ".join(chance.sample(words.all[50:1_000], 3)),
    "a question of eight words": lambda words, chance: (
        "how does the "
        + " ".join([*chance.sample(words.all[:200], 3), *chance.sample(words.all[200:5_000], 5)])
        + "?"
    ),
    "a title": lambda _words, chance: f"Topic {chance.randrange(10_000)}",
    "nothing that is there": lambda _words, chance: (
        f"qqx{chance.randrange(10**6)} wwx{chance.randrange(10**6)}"
    ),
}


@parts.add("search")
def searching(bench: Bench) -> Result:
    """10,000 pages of 60 to 400 invented words in one project."""
    result = Result(part="search")
    words, chance = Words(), random.Random(5)
    with bench.stack() as stack:
        bench.say(f"search: writing {bench.sizes.pages:,} pages")
        written = _fill(stack, words, chance, bench.sizes.pages)
        database = Database(stack.database)
        with Talk(stack) as talk:
            ways: dict[str, Ask] = {
                "in process": _in_process(database),
                "over HTTP": lambda text: _paths(talk.tool("memory_query", query=text, project=PROJECT)),
                "over MCP": lambda text: _paths(talk.mcp_tool("memory_query", query=text, project=PROJECT)),
            }
            for way, ask in ways.items():
                bench.say(f"search: {way}")
                _measure(result, bench, words, way, ask)
                result.complaints += _wrong(ask, way, written)
        database.close()
        result.complaints += verify.pages(stack.data_dir, written)
    result.verified.append(f"{len(written):,} pages: in table, index and file as they were sent")
    result.verified.append("each way of asking finds the page that holds a word of its own, first")
    return result


def _fill(stack: Stack, words: Words, chance: random.Random, count: int) -> dict[str, str]:
    """Write the pages through the writer queue; path → body."""
    written: dict[str, str] = {}
    for number in range(count):
        told = " ".join(words.some(chance, chance.randrange(60, 400)))
        written[f"notes/topic-{number:05d}.md"] = (
            f"# Topic {number}\n\nOnly here: {_own_word(number)}. {told}\n"
        )
    commands = [
        envelope(WritePage(workspace="default", project=PROJECT, body=body, path=path))
        for path, body in written.items()
    ]
    for at in range(0, len(commands), _FILL_PAGES):
        stack.append(commands[at : at + _FILL_PAGES])
        stack.wait_drained()
    stack.wait_quiet()
    return written


def _own_word(number: int) -> str:
    return f"own{number:05d}word"


def _in_process(database: Database) -> Ask:
    def ask(text: str) -> list[str]:
        with database.snapshot() as reading:
            project = project_for(reading, Asker(principal="owner"), None, PROJECT)
            question = Question(text=text, projects=[project], now=SystemClock().now_us(), principal="owner")
            return [hit.path for hit in search(reading, question).hits]

    return ask


def _paths(answer: dict[str, Any]) -> list[str]:
    return [hit["path"] for hit in answer["hits"]]


def _measure(result: Result, bench: Bench, words: Words, way: str, ask: Ask) -> None:
    everything: list[float] = []
    for shape, make in SHAPES.items():
        chance = random.Random(shape)
        took: list[float] = []
        for _ in range(bench.sizes.searches):
            text = make(words, chance)
            began = time.monotonic()
            ask(text)
            took.append((time.monotonic() - began) * 1000)
        everything += took
        result.add(f"{way}: {shape}, p50", statistics.median(took), "ms")
    result.add(f"{way}: all shapes, p50", statistics.median(everything), "ms", P50)
    result.add(f"{way}: all shapes, p99", quantile(everything, 0.99), "ms")


def _wrong(ask: Ask, way: str, written: dict[str, str]) -> list[str]:
    found: list[str] = []
    paths = list(written)
    for number in range(0, len(paths), max(1, len(paths) // 20)):
        if ask(_own_word(number))[:1] != [paths[number]]:
            found.append(f"{way}: {paths[number]} is not what its own word finds")
    return found
