"""A verdict can fail: by a figure on the wrong side of its target, and by one wrong row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from memory_core.clock import SystemClock
from memory_core.ids import IdSource
from memory_core.store.database import open_writer
from scripts.bench_parts import report, verify
from scripts.bench_parts.__main__ import main
from scripts.bench_parts.commands import envelopes_of
from scripts.bench_parts.figures import Result, at_least, at_most
from scripts.bench_parts.jobs import fairness
from scripts.bench_parts.parts import parts
from scripts.bench_parts.recording import Recorder, replay
from scripts.bench_parts.texts import Events
from scripts.bench_parts.verify import Sent
from tests.store.databases import new_writer
from workers.writer.engine import Engine
from workers.writer.mark import MarkFile

RUN = Events("00abcd", 600)


def stored(directory: Path, numbers: list[int], clock: SystemClock) -> Path:
    """A database that a real engine put these events into."""
    directory.mkdir()
    engine = new_engine(directory, clock)
    report = engine.apply_batch(envelopes_of(RUN, numbers))
    assert len(report.outcomes) == len(numbers)
    engine.connection.close()
    return directory / "memory.sqlite"


def new_engine(directory: Path, clock: SystemClock) -> Engine:
    connection = new_writer(directory, clock)
    return Engine(connection, epoch=1, ids=IdSource(clock), clock=clock, mark=MarkFile(directory / "mark"))


@pytest.mark.parametrize(
    ("target", "held", "missed"),
    [(at_least(0.7), 0.7, 0.69), (at_most(12), 12, 12.01)],
)
def test_a_figure_on_the_wrong_side_of_its_target_fails_the_part(target, held, missed):
    good, bad = Result(part="x"), Result(part="x")

    good.add("ratio", held, "", target)
    bad.add("ratio", missed, "", target)

    assert good.is_good
    assert not bad.is_good
    assert bad.figures[0].verdict == "MISSED"


def test_the_median_of_the_rounds_decides():
    result = Result(part="x")

    assert result.add_median("rate", [1, 9, 5], "events/s", at_least(5)) == 5
    assert result.is_good
    assert not Result(part="x", complaints=["a row is missing"]).is_good


def test_rows_that_are_all_there_draw_no_complaint(tmp_path: Path):
    database = stored(tmp_path / "a", list(range(12)), SystemClock())

    assert verify.events(database, [Sent(events=RUN, count=12)]) == []


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ("DELETE FROM observations WHERE seq = 3", "is not there"),
        ("UPDATE observations SET body = replace(body, 'o', 'u')", "was changed"),
        (
            "UPDATE observations SET result = (SELECT result FROM observations WHERE seq = 2)",
            "is there twice",
        ),
        ("UPDATE sessions SET observation_count = observation_count + 1", "their sessions count"),
        ("INSERT INTO observations_fts(observations_fts) VALUES ('delete-all')", "in the full-text index"),
    ],
)
def test_a_wrong_row_fails_the_part(tmp_path: Path, wrong: str, complaint: str):
    database = stored(tmp_path / "a", list(range(12)), SystemClock())
    writer = open_writer(database)

    writer.execute(wrong)
    writer.close()

    assert any(complaint in line for line in verify.events(database, [Sent(events=RUN, count=12)]))


def test_a_lost_event_is_forgiven_only_when_it_was_not_accepted(tmp_path: Path):
    database = stored(tmp_path / "a", [0, 1, 3], SystemClock())

    assert verify.events(database, [Sent(events=RUN, count=4, others={2})]) == []
    assert verify.events(database, [Sent(events=RUN, count=4)]) != []


def test_recorded_statements_make_the_same_rows_again(tmp_path: Path):
    clock = SystemClock()
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    engine = new_engine(tmp_path / "first", clock)
    recorder = Recorder(engine.connection.raw)
    engine.connection.raw = recorder
    engine.apply_batch(envelopes_of(RUN, list(range(8))))
    second = new_writer(tmp_path / "second", clock)

    replay(second.raw, recorder.calls)

    second.close()
    assert verify.events(tmp_path / "second" / "memory.sqlite", [Sent(events=RUN, count=8)]) == []


def test_the_page_of_figures_keeps_the_words_around_them(tmp_path: Path):
    page = tmp_path / "performance.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    result = Result(part="drain", verified=["12 events"])
    result.add("rate", 2_000, "events/s", at_least(3_000))

    report.write([result], {"machine": "two cores"}, "full", page)

    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| drain | rate | 2,000 events/s | ≥ 3,000 | MISSED |  |" in text


def test_a_missed_target_is_the_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def measure(_):
        result = Result(part="drain")
        result.add("rate", 1, "events/s", at_least(3_000))
        return result

    monkeypatch.setitem(parts._items, "drain", measure)

    done = CliRunner().invoke(main, ["drain", "--json", "--directory", str(tmp_path)])

    assert done.exit_code == 1
    assert json.loads(done.stdout)["parts"][0]["figures"][0]["verdict"] == "MISSED"
    assert list(tmp_path.iterdir()) == []


def _claims(order: list[int]) -> list[tuple[str, int, int, int, str]]:
    """Rows as the part `jobs` reads them, claimed in this order of projects."""
    return [("completed", 1, at, at + 1, str(project)) for at, project in enumerate(order, start=1)]


def test_projects_that_take_turns_are_told_from_one_that_is_starved():
    turns, starved = [*range(10)] * 6, sorted([*range(10)] * 6)
    swapped = [*range(10), 2, 1, 0, *range(3, 10)]

    assert fairness(_claims(turns)) == (10, 0.15)
    assert fairness(_claims(swapped))[0] == 10
    latest, spread = fairness(_claims(starved))
    assert (latest, spread > 0.8) == (55, True)
