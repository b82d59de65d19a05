"""Every chunk and turn gets its vector once, whatever fails or dies in between."""

from __future__ import annotations

import pytest

from memory_core import limits
from memory_core.commands import embeddings
from memory_core.commands.capture import RecordObservation
from memory_core.commands.pages import DeletePage
from memory_core.domain.job import Again, Done
from memory_core.errors import CoreError
from memory_core.models.errors import Refused, Rejected, Unreachable
from memory_core.models.metered import NoProvider
from memory_core.store import embedding_models
from tests.factories import Store, said, used_tool
from tests.jobs.embedding_model import A, B, Maker, WordEmbedder
from tests.vectors.conftest import say, texts, write


def asked(maker: Maker) -> list[str]:
    assert maker.embedder is not None
    return [text for batch in maker.embedder.asked for text in batch]


def test_chunks_and_turns_are_found_by_their_vectors(store: Store, maker: Maker, ask):
    write(store, "notes/a.md", "# Retries\nthe uploader tries three times")
    say(store, "please rename the parser")
    say(store, "the parser is renamed", speaker=said("x").speaker, kind=said("x").kind)
    counts = maker.all()

    assert (counts["embedded"], counts["failed"], counts["units"]) == (3, 0, 3)
    assert "three times" in texts(store, ask("uploader tries three times", "alpha"))[0]
    assert texts(store, ask("rename the parser please", "alpha"))[0] == "please rename the parser"
    assert maker.progress().sentence() == "3 of 3"


def test_a_chunk_is_embedded_with_its_title_and_heading(store: Store, maker: Maker):
    write(store, "notes/a.md", "# Uploader\n\n## Retries\nthree times")
    maker.all()

    (text,) = asked(maker)
    assert text.splitlines()[0] == "Uploader"
    assert "Retries" in text


def test_tool_rows_get_no_vector(store: Store, maker: Maker):
    say(store, "run the tests")
    tool = RecordObservation(event=used_tool(), source="test", workspace="default", project="alpha")
    store.apply(tool)
    maker.all()

    assert asked(maker) == ["run the tests"]


def test_a_long_turn_is_found_by_each_of_its_pieces_and_counts_once(store: Store, maker: Maker, ask):
    parts = [f"paragraph about {word} " * 60 for word in ("zebra", "quokka", "walrus")]
    say(store, "\n\n".join(parts))
    maker.all()

    found = ask("quokka", "alpha")
    assert len(found) == 1
    assert found[0].piece > 0
    assert maker.progress().total == 1


def test_a_page_that_is_written_anew_costs_what_changed(store: Store, maker: Maker):
    sections = [f"## Part {n}\n{'word ' * 150} number{n}" for n in range(4)]
    write(store, "notes/a.md", "# T\n\n" + "\n\n".join(sections))
    maker.all()
    before = len(asked(maker))
    sections[2] = sections[2].replace("number2", "another")
    write(store, "notes/a.md", "# T\n\n" + "\n\n".join(sections))

    maker.all()

    assert before >= 4
    assert len(asked(maker)) == before + 1
    assert maker.progress().pending == 0


def test_the_same_text_is_embedded_once(store: Store, maker: Maker):
    for project in ("alpha", "beta"):
        say(store, "continue", project)
    maker.all()

    assert asked(maker) == ["continue"]
    assert maker.progress().done == 2


def test_no_job_is_made_where_nothing_waits_or_no_embedder_is_configured(store: Store, maker: Maker):
    say(store, "hello")
    maker.all()
    with store.transaction() as tx:
        assert embeddings.look(tx) == 0
    maker.bind(None)
    say(store, "another")
    with store.transaction() as tx:
        assert embeddings.look(tx) == 0


def test_text_that_comes_while_a_job_is_open_makes_no_second_one(store: Store, maker: Maker):
    say(store, "first")
    maker.job()
    say(store, "second")
    with store.transaction() as tx:
        assert embeddings.look(tx) == 0
    assert len(store.all("SELECT id FROM jobs")) == 1


def test_many_texts_are_made_in_slices_and_each_once(store: Store, maker: Maker):
    for number in range(limits.EMBED_SLICE_TEXTS * 2 + 5):
        say(store, f"turn number{number}")
    maker.all()

    assert maker.embedder is not None
    assert max(len(batch) for batch in maker.embedder.asked) <= limits.EMBED_SLICE_TEXTS
    assert len(asked(maker)) == len(set(asked(maker))) == limits.EMBED_SLICE_TEXTS * 2 + 5
    assert maker.progress().pending == 0


def test_a_worker_that_dies_in_the_middle_costs_its_slice_and_nothing_is_doubled(store: Store, maker: Maker):
    for number in range(limits.EMBED_SLICE_TEXTS + 20):
        say(store, f"turn number{number}")
    job = maker.job()
    assert isinstance(maker.slice(job), Again)
    assert maker.embedder is not None
    maker.embedder.fails = lambda _: Unreachable()
    with pytest.raises(Unreachable):
        maker.slice(job)
    maker.embedder.fails = lambda _: None

    done = maker.slice(job)
    # The finish of the worker that was thought dead arrives too.
    again = maker.slice(job)

    assert isinstance(done, Done)
    assert isinstance(again, Done)
    assert len(asked(maker)) == len(set(asked(maker)))
    assert store.all("SELECT count(*) AS n FROM vector_units")[0]["n"] == limits.EMBED_SLICE_TEXTS + 20


def test_a_text_that_the_model_refuses_costs_that_text_only(store: Store, maker: Maker, ask):
    for number in range(9):
        say(store, f"turn number{number}")
    assert maker.embedder is not None
    maker.embedder.fails = lambda batch: Refused() if any("number4" in text for text in batch) else None

    counts = maker.all()

    assert (counts["embedded"], counts["failed"]) == (8, 1)
    assert len(ask("turn", "alpha")) == 8
    progress = maker.progress()
    assert (progress.pending, progress.failed) == (0, 1)
    assert "1 texts could not be embedded" in progress.sentence()


def test_what_was_refused_is_tried_again_when_a_person_asks(store: Store, maker: Maker, ask):
    say(store, "turn number4")
    assert maker.embedder is not None
    maker.embedder.fails = lambda _: Refused()
    maker.all()
    maker.embedder.fails = lambda _: None

    store.apply(embeddings.MakeEmbeddings(), token_scope="write")
    counts = maker.all()

    assert (counts["embedded"], counts["failed"]) == (1, 0)
    assert len(ask("turn", "alpha")) == 1


def test_a_provider_that_rejects_everything_is_no_fault_of_the_texts(store: Store, maker: Maker):
    for number in range(4):
        say(store, f"turn number{number}")
    assert maker.embedder is not None
    maker.embedder.fails = lambda _: Rejected()

    with pytest.raises(Rejected):
        maker.slice(maker.job())

    assert store.all("SELECT * FROM embeddings") == []


@pytest.mark.parametrize("embedder", [None, WordEmbedder(identity=B)])
def test_a_worker_with_another_embedder_says_so(store: Store, maker: Maker, embedder):
    say(store, "hello")
    maker.embedder = embedder

    with pytest.raises(NoProvider, match=r"the same \[models\]"):
        maker.slice(maker.job())


def test_a_job_that_failed_is_made_again_after_a_while(store: Store, maker: Maker):
    say(store, "hello")
    job = maker.job()
    store.connection.execute(
        "UPDATE jobs SET state = 'failed', last_error = 'x', failures = 3, finished_at = ? WHERE id = ?",
        (store.clock.now_us(), job.id),
    )
    with store.transaction() as tx:
        assert embeddings.look(tx) == 0
    store.clock.advance(limits.EMBED_RETRY_SECONDS + 1)
    with store.transaction() as tx:
        assert embeddings.look(tx) == 1


def test_a_deleted_page_and_turn_are_found_no_more(store: Store, maker: Maker, ask):
    write(store, "notes/a.md", "zebra")
    say(store, "zebra crossing")
    maker.all()
    assert len(ask("zebra", "alpha")) == len(ask("zebra")) == 2

    store.apply(DeletePage(workspace="default", project="alpha", path="notes/a.md"))
    assert texts(store, ask("zebra", "alpha")) == texts(store, ask("zebra")) == ["zebra crossing"]
    store.connection.execute("DELETE FROM observations")
    assert ask("zebra", "alpha") == ask("zebra") == []
    with store.transaction() as tx:
        embeddings.tidy(tx)
        embeddings.Strays().sweep(tx)
    assert store.all("SELECT * FROM vector_removals") == store.all("SELECT * FROM embeddings") == []


def test_vectors_of_another_length_are_refused(store: Store, maker: Maker):
    say(store, "hello")
    maker.embedder = WordEmbedder(identity=A)
    maker.embedder.embed = lambda texts, *_: WordEmbedder(identity=B).embed(texts)  # type: ignore[method-assign]

    done = maker.slice(maker.job())

    assert getattr(done, "code", None) == "invalid"


def test_the_progress_says_how_long_the_rest_takes(store: Store, maker: Maker):
    for number in range(10):
        say(store, f"turn number{number}")
    with store.transaction() as tx:
        model = embedding_models.active(tx)
        assert model is not None
        embedding_models.advance(
            tx, model["number"], chunks_through=0, turns_through=0, rate=0.1, complete_at=None
        )

    assert maker.progress().sentence() == "0 of 10, about 2 min left"


def test_embedding_is_refused_where_no_embedder_is_configured(store: Store, maker: Maker):
    maker.bind(None)

    refusal = store.apply(embeddings.MakeEmbeddings(), token_scope="write")

    assert refusal.code == "conflict"
    assert "memoryd[local]" in refusal.message
    assert issubclass(NoProvider, CoreError)
