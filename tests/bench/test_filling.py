"""What the bench writes past a writer is as whole as what a writer writes."""

from __future__ import annotations

from pathlib import Path

from memory_core.clock import SystemClock
from memory_core.recall.search import Question, search
from memory_core.store.database import Database
from scripts.bench_parts.filling import World
from tests.store.databases import new_database


def test_each_page_that_the_bench_writes_is_found_by_its_own_word(tmp_path: Path):
    path = new_database(tmp_path)
    world = World(path, 2)
    world.fill(4)
    database = Database(path)
    try:
        with database.snapshot() as reading:
            for number in range(world.pages):
                question = Question(
                    text=world.own_word(number),
                    projects=[world.project_of(number)],
                    now=SystemClock().now_us(),
                    principal="owner",
                    explain=True,
                )
                # Those that link to it may come behind it. As a name that its page says, the word would find it without any index.
                best = search(reading, question).hits[0]
                assert best.path == world.path_of(number)
                assert best.score_details
                assert "lexical" in best.score_details["streams"]
    finally:
        database.close()
        world.close()
