"""What a step of a durable session costs does not grow with the session: counted in SQLite's own steps, on a short session and a long one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from memory_core import bootstrap
from memory_core.commands.compaction import QueueCompaction
from tests.durable.directly import Holder, code, say, started
from tests.factories import Store, database

SHORT, LONG = 200, 12_000
TURN = tuple(say(f"word {number}") for number in range(10))
#: In their order, each by the holder.
STEPS: dict[str, Callable[[Holder], Any]] = {
    "release": Holder.release,
    "claim": Holder.claim,
    "replayed": Holder.replay,
    "renew": Holder.renew,
    "title": lambda holder: holder.title("a title"),
    "append": lambda holder: holder.append(*TURN),
    "a compaction": lambda holder: holder.store.apply(
        QueueCompaction(session=holder.session, through_sequence=10), token_scope="write"
    ),
    "close": Holder.close,
}


def steps_of(store: Store, act: Callable[[], Any]) -> int:
    """How many tens of SQLite's steps it takes."""
    count = 0

    def one_more() -> int:
        nonlocal count
        count += 1
        return 0

    store.connection.set_progress_handler(one_more, 10)
    try:
        assert code(act()) == ""
    finally:
        store.connection.set_progress_handler(None, 0)
    return count


def costs(directory: Path, events: int) -> dict[str, int]:
    """Of each step, in a session that has so many events."""
    directory.mkdir()
    store = database(directory)
    try:
        holder = Holder(store, started(store))
        holder.claim()
        holder.append(*TURN)
        while holder.last_sequence < events:
            holder.append(*TURN * min(400, (events - holder.last_sequence) // 10))
        return {name: steps_of(store, lambda s=step: s(holder)) for name, step in STEPS.items()}
    finally:
        store.close()


def test_no_step_of_a_long_session_costs_more_than_of_a_short_one(tmp_path: Path):
    bootstrap.load_jobs()
    short, long = costs(tmp_path / "short", SHORT), costs(tmp_path / "long", LONG)

    # A tree that is a level deeper, and never the events themselves, of which there are sixty times as many.
    assert {name: (short[name], long[name]) for name in STEPS if long[name] > short[name] * 1.3 + 20} == {}
