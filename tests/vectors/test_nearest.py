"""The index table and memory give the same answers, and neither gives anything that the asker may not see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_core import limits
from memory_core.bootstrap import load_jobs
from memory_core.clock import rfc3339
from memory_core.commands import embeddings
from memory_core.commands.pages import DeletePage
from memory_core.errors import StorageFailed
from memory_core.store import driver, nearest, vector_index
from memory_core.store.database import Database
from memory_core.store.vector_matrix import VectorMatrix
from tests.factories import Store, database
from tests.jobs.embedding_model import A, B, Maker, WordEmbedder
from tests.vectors.asking import asking
from tests.vectors.conftest import say, texts, write

WORDS = ("zebra", "quokka", "walrus", "heron", "lynx", "otter")


def memory_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "has_vectors", lambda: False)


@pytest.fixture(params=["index", "memory"])
def both(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The test runs once with the extension, and once where it cannot be loaded."""
    if request.param == "memory":
        memory_only(monkeypatch)
    return request.param


def filled(store: Store, maker: Maker) -> None:
    for number in range(30):
        project = ("alpha", "beta", "gamma")[number % 3]
        words = " ".join(WORDS[(number + step) % len(WORDS)] for step in range(1 + number % 4))
        write(store, f"notes/{number}.md", f"# Note {number}\n{words}", project)
        say(store, f"{words} said {number}", project)
    maker.all()


def test_the_extension_is_loaded_on_every_connection(store: Store):
    assert driver.has_vectors()
    with Database(store.path).snapshot() as reading:
        assert reading._connection.execute("SELECT vec_version()").fetchone()[0]


@pytest.mark.parametrize(
    "statement", [nearest._ALLOWED_HERE, nearest._HIDDEN], ids=["one project", "all projects"]
)
def test_what_is_hidden_is_found_without_looking_at_what_is_not(store: Store, statement: Any):
    with Database(store.path).snapshot() as reading:
        steps = reading._connection.execute(
            f"EXPLAIN QUERY PLAN {statement.sql}",
            {"model": 1, "project": 1, "owner": "owner", "now": 1},
        ).fetchall()
    looks = [step["detail"] for step in steps if step["detail"].startswith(("SCAN", "SEARCH x"))]
    assert len(looks) == 2
    assert all("unit_number=?" in look for look in looks)


def test_index_and_memory_answer_the_same(store: Store, maker: Maker, ask, monkeypatch):
    filled(store, maker)
    questions = [(word, scope) for word in WORDS for scope in (("alpha",), ("alpha", "gamma"), ())]
    by_index = [ask(word, *scope, limit=7) for word, scope in questions]
    asked: list[Any] = []
    inner = vector_index.nearest
    monkeypatch.setattr(vector_index, "nearest", lambda *a, **k: asked.append(1) or inner(*a, **k))
    ask("zebra", "alpha")
    assert asked

    memory_only(monkeypatch)
    by_memory = [ask(word, *scope, limit=7) for word, scope in questions]

    for first, second in zip(by_index, by_memory, strict=True):
        assert [(n.is_turn, n.number, n.piece) for n in first] == [
            (n.is_turn, n.number, n.piece) for n in second
        ]
        assert numpy.allclose([n.similarity for n in first], [n.similarity for n in second], atol=1e-5)


def test_the_best_come_first_and_not_more_than_asked_for(store: Store, maker: Maker, ask, both):
    filled(store, maker)

    found = ask("zebra quokka", "alpha", limit=5)

    assert len(found) == 5
    assert [n.similarity for n in found] == sorted((n.similarity for n in found), reverse=True)
    assert ask("zebra quokka", "alpha")[:5] == found


def test_what_may_not_be_seen_takes_no_place_of_what_may(store: Store, maker: Maker, ask, both):
    """The filters come before the cut: the nearest are all hidden, and the answer is full all the same."""
    for number in range(20):
        say(store, f"zebra secret {number}", principal="eve")
        write(store, f"old/{number}.md", f"zebra past {number}", expires_at=rfc3339(store.clock.now_us() + 1))
        say(store, f"zebra elsewhere {number}", "beta")
    say(store, "a heron and a zebra")
    write(store, "notes/a.md", "an otter, a lynx and a zebra")
    maker.all()
    store.clock.advance(60)

    found = texts(store, ask("zebra", "alpha", limit=2))

    assert sorted(found) == ["a heron and a zebra", "an otter, a lynx and a zebra"]
    everywhere = texts(store, ask("zebra", limit=22))
    assert len(everywhere) == 22
    assert not [text for text in everywhere if "secret" in text or "past" in text]
    assert len(ask("zebra", "alpha", include_expired=True)) == 22


def test_vectors_of_another_model_answer_nothing(store: Store, maker: Maker, ask, both):
    say(store, "zebra")
    maker.all()

    assert ask("zebra", "alpha", model=B) == []


def test_a_change_of_model_makes_all_anew_and_the_old_ones_go_when_that_is_done(
    store: Store, maker: Maker, ask, both
):
    filled(store, maker)
    maker.bind(B)
    maker.embedder = WordEmbedder(identity=B)
    assert ask("zebra", "alpha") == []
    assert maker.progress().sentence() == "0 of 60, time left unknown"
    job = maker.job()
    maker.slice(job)
    with store.transaction() as tx:
        embeddings.tidy(tx)
    # Half way: the new ones answer already, the old ones are still there.
    assert store.all("SELECT count(*) AS n FROM embedding_models")[0]["n"] == 2
    store.connection.execute("DELETE FROM jobs")
    maker.all() if maker.progress().pending else None

    assert len(ask("zebra", "alpha", model=B)) == 20
    for _ in range(10):
        with store.transaction() as tx:
            embeddings.tidy(tx)
    assert [row["model"] for row in store.all("SELECT model FROM embedding_models")] == ["b"]
    tables = [
        row["name"]
        for row in store.all("SELECT name FROM sqlite_master WHERE name LIKE 'vectors~_%' ESCAPE '~'")
    ]
    assert tables == ([] if both == "memory" else [name for name in tables if name.startswith("vectors_2")])


def test_the_old_model_is_taken_up_again_without_work(store: Store, maker: Maker, ask, both):
    filled(store, maker)
    assert maker.embedder is not None
    made = len(maker.embedder.asked)
    maker.bind(B)
    maker.bind(A)

    assert len(ask("zebra", "alpha")) == 20
    assert len(maker.embedder.asked) == made


def test_making_all_anew_by_force_embeds_everything_again(store: Store, maker: Maker, ask, both):
    filled(store, maker)
    maker.embedder = WordEmbedder()
    store.apply(embeddings.MakeEmbeddings(force=True), token_scope="write")
    assert ask("zebra", "alpha") == []
    maker.all()

    assert sum(map(len, maker.embedder.asked)) == 60
    assert len(ask("zebra", "alpha")) == 20
    for _ in range(10):
        with store.transaction() as tx:
            embeddings.tidy(tx)
    assert len(ask("zebra", "alpha")) == len(ask("zebra")) - 40 == 20
    assert len(store.all("SELECT * FROM embedding_models")) == 1


def test_making_one_project_anew_leaves_the_others(store: Store, maker: Maker, ask, both):
    filled(store, maker)
    maker.embedder = WordEmbedder()
    (alpha,) = store.all("SELECT number FROM projects WHERE name = 'alpha'")
    store.apply(embeddings.MakeEmbeddings(force=True, projects=(alpha["number"],)), token_scope="write")
    assert (ask("zebra", "alpha"), len(ask("zebra", "beta"))) == ([], 20)
    maker.all()

    assert sum(map(len, maker.embedder.asked)) == 20
    assert len(ask("zebra", "alpha")) == 20
    assert maker.progress().sentence() == "60 of 60"


@pytest.mark.parametrize(
    "damage", ["x'00'", "zeroblob(32)", "CAST(x'0000c07f' || zeroblob(28) AS BLOB)", "x'ff' || 'text'", "7"]
)
def test_a_damaged_vector_costs_itself_only(store: Store, maker: Maker, ask, both, damage: str):
    write(store, "notes/bad.md", "zebra bad")
    write(store, "notes/good.md", "zebra good")
    maker.all()
    (bad,) = store.all(
        "SELECT c.digest FROM page_chunks c JOIN pages p ON p.number = c.page_number WHERE p.path = 'notes/bad.md'"
    )
    store.connection.execute(f"UPDATE embeddings SET vector = {damage} WHERE digest = ?", (bad["digest"],))
    # What the index holds of it is made anew from the damaged one.
    store.connection.execute("UPDATE embedding_models SET indexed_through = 0")
    with store.transaction() as tx:
        embeddings.tidy(tx)

    for scope in (("alpha",), ()):
        assert "zebra good" in texts(store, ask("zebra", *scope))[0]
    store.apply(DeletePage(workspace="default", project="alpha", path="notes/bad.md"))
    with store.transaction() as tx:
        embeddings.tidy(tx)
    assert texts(store, ask("zebra", "alpha")) == texts(store, ask("zebra")) == ["zebra good"]


def test_a_damaged_index_leaves_the_answer_to_memory(store: Store, maker: Maker, ask, monkeypatch, caplog):
    filled(store, maker)
    before = ask("zebra", "alpha", limit=5)
    number = store.all("SELECT number FROM embedding_models")[0]["number"]
    store.connection.execute(f"UPDATE vectors_{number}_vector_chunks00 SET vectors = x'00'")

    assert [n.number for n in ask("zebra", "alpha", limit=5)] == [n.number for n in before]
    assert "vector_index_failed" in [getattr(record, "action", "") for record in caplog.records]


def test_an_index_that_fell_behind_catches_up(store: Store, maker: Maker, ask, monkeypatch):
    write(store, "notes/a.md", "zebra one")
    maker.all()
    with monkeypatch.context() as without:
        memory_only(without)
        write(store, "notes/b.md", "zebra two")
        write(store, "notes/a.md", "zebra three")
        maker.all()
        with_memory = texts(store, ask("zebra", "alpha"))
    assert texts(store, ask("zebra", "alpha")) == with_memory
    with store.transaction() as tx:
        embeddings.tidy(tx)
        model = tx.row(vector_index.text_statement("SELECT * FROM embedding_models WHERE is_active = 1"))
        assert vector_index.is_whole(tx, model)
    assert texts(store, ask("zebra", "alpha")) == with_memory
    number = model["number"]
    rows = store.all(f"SELECT rowid FROM vectors_{number}")
    assert {row["rowid"] for row in rows} == {
        row["number"] for row in store.all("SELECT number FROM vector_units")
    }


def test_more_vectors_than_memory_may_take_are_an_error_that_says_so(store: Store, maker: Maker, monkeypatch):
    filled(store, maker)
    matrix = VectorMatrix(max_bytes=100)
    with Database(store.path).snapshot() as reading:
        model = reading.row(vector_index.text_statement("SELECT * FROM embedding_models"))
        with pytest.raises(StorageFailed, match="more vectors"):
            matrix.nearest(reading, model, numpy.ones(8, dtype=numpy.float32), 3)


def test_an_older_snapshot_is_given_nothing_newer(store: Store, maker: Maker):
    write(store, "notes/a.md", "zebra one")
    maker.all()
    matrix, older, newer = VectorMatrix(), Database(store.path), Database(store.path)
    wanted = numpy.ones(8, dtype=numpy.float32)
    statement = vector_index.text_statement("SELECT * FROM embedding_models")
    with older.snapshot() as before:
        model = before.row(statement)
        first = matrix.nearest(before, model, wanted, 10)
        write(store, "notes/b.md", "zebra two")
        maker.all()
        with newer.snapshot() as after:
            assert len(matrix.nearest(after, after.row(statement), wanted, 10)) == 2
        assert matrix.nearest(before, model, wanted, 10) == first
    older.close()
    newer.close()


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("page"), st.sampled_from("ab"), st.integers(0, 3), st.sampled_from(WORDS), st.booleans()
        ),
        st.tuples(
            st.just("turn"), st.sampled_from("ab"), st.sampled_from(["ada", "eve"]), st.sampled_from(WORDS)
        ),
        st.tuples(st.just("delete"), st.sampled_from("ab"), st.integers(0, 3)),
        st.tuples(st.just("make")),
        st.tuples(st.just("tidy")),
        st.tuples(st.just("later")),
        st.tuples(st.just("model"), st.sampled_from([A, B])),
    ),
    max_size=25,
)


@pytest.fixture
def stores(tmp_path) -> Iterator[Any]:
    made: list[Store] = []

    def new() -> Store:
        directory = tmp_path / str(len(made))
        directory.mkdir()
        made.append(database(directory))
        return made[-1]

    yield new
    for one in made:
        one.close()


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS, word=st.sampled_from(WORDS), limit=st.integers(1, 6))
def test_nothing_leaks_and_all_that_may_be_found_is(
    stores, steps: list[tuple[Any, ...]], word: str, limit: int
):
    """Whatever happened before: an answer holds what the asker may see, by both ways alike, and all of it where it has room."""
    store = stores()
    maker = Maker(store)
    model = A
    maker.bind(model)
    for step in steps:
        match step:
            case ("page", project, number, said, expires):
                more = {"expires_at": rfc3339(store.clock.now_us() + 1_000_000)} if expires else {}
                write(store, f"{number}.md", f"{said} {number} {project}", project, **more)
            case ("turn", project, principal, said):
                say(store, f"{said} of {principal}", project, principal)
            case ("delete", project, number):
                store.apply(DeletePage(workspace="default", project=project, path=f"{number}.md"))
            case ("make",):
                made(store, maker)
            case ("tidy",):
                with store.transaction() as tx:
                    embeddings.tidy(tx)
                    embeddings.Strays().sweep(tx)
            case ("later",):
                store.clock.advance(2)
            case ("model", model):
                maker.bind(model)
                maker.embedder = WordEmbedder(identity=model)
    made(store, maker)
    with asking(store) as ask:
        for scope in (("a",), ("b",), ("a", "b"), ()):
            names = scope or ("a", "b")
            allowed = store.all(
                "SELECT 0 AS is_turn, c.number FROM page_chunks c JOIN pages p ON p.number = c.page_number"
                " JOIN projects j ON j.number = c.project_number WHERE p.tombstoned_at IS NULL"
                f" AND (p.expires_at IS NULL OR p.expires_at > {store.clock.now_us()})"
                f" AND j.name IN ({', '.join(repr(name) for name in names)})"
                " UNION ALL SELECT 1, o.seq FROM observations o JOIN projects j ON j.id = o.project_id"
                f" WHERE o.owner = 'ada' AND j.name IN ({', '.join(repr(name) for name in names)})"
            )
            may = {(bool(row["is_turn"]), row["number"]) for row in allowed}
            everything = ask(word, *scope, model=model)
            assert {(n.is_turn, n.number) for n in everything} == may
            assert len(ask(word, *scope, model=model, limit=limit)) == min(limit, len(may))
            with pytest.MonkeyPatch.context() as patched:
                memory_only(patched)
                assert {(n.is_turn, n.number) for n in ask(word, *scope, model=model)} == may


def made(store: Store, maker: Maker) -> None:
    load_jobs()
    with store.transaction() as tx:
        embeddings.look(tx)
        is_open = embeddings.open_job_of(tx) is not None
    if is_open:
        maker.all()


def test_limits_are_those_of_the_extension():
    assert limits.VECTOR_CHUNK_ROWS % 8 == 0
    assert limits.VECTOR_NEIGHBOURS_MAX <= 4_096
