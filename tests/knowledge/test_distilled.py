"""What a distillation says of a session: taken once, with where it is from, and never over what somebody holds on to."""

from __future__ import annotations

import pytest

from memory_core.commands.knowledge import Where
from memory_core.domain.distillation import Candidate
from memory_core.domain.knowledge import Origin, Standing, Verdict, verdict_on_upsert
from memory_core.errors import Invalid
from memory_core.ids import id_text
from tests.knowledge.learning import ELSEWHERE, HOME, Knowing, in_directory, tombstone, upsert


def held(knowing: Knowing, key: str = "build") -> tuple[str, float, int, bool]:
    """Text, confidence, version and pin of what holds."""
    entry = knowing.under(key)
    assert entry is not None
    return entry.content, entry.confidence, entry.version, entry.pinned


def test_distillation_is_idempotent_and_provenance_survives_session_deletion(knowing: Knowing):
    session = knowing.session()
    source = knowing.job(session)
    first = knowing.distil(upsert(), upsert("style", "tabs"), source=source)
    rows = knowing.books.query("SELECT * FROM knowledge_versions ORDER BY knowledge_id")

    again = knowing.distil(upsert(), upsert("style", "tabs"), source=source)
    assert [(each.action, each.entry_id, each.version) for each in again] == [
        (each.action, each.entry_id, each.version) for each in first
    ]
    assert knowing.books.query("SELECT * FROM knowledge_versions ORDER BY knowledge_id") == rows

    knowing.books.query("DELETE FROM sessions WHERE id = ?", session)
    for row in knowing.books.query("SELECT * FROM knowledge_versions"):
        assert row["source_session_id"] is None
        assert row["provenance_session_id"] == session
        assert (row["source_first_sequence"], row["source_last_sequence"]) == (1, 12)
        assert row["source_sha256"] == source.provenance.sha256
        assert row["job_id"] == source.job_id
    assert held(knowing) == ("make test", 0.9, 1, False)


def test_distilled_tombstone_keeps_confidence_and_provenance(knowing: Knowing):
    made = knowing.known()
    session = knowing.session()
    source = knowing.job(session)

    (done,) = knowing.distil(tombstone(confidence=0.8), source=source)

    assert done.action == "tombstoned"
    (row,) = knowing.tombstones(made["id"])
    assert (row["origin"], row["confidence"]) == ("distillation", 0.8)
    assert (row["provenance_session_id"], row["source_first_sequence"], row["source_last_sequence"]) == (
        session,
        1,
        12,
    )
    assert (row["source_sha256"], row["job_id"], row["candidate_index"]) == (
        source.provenance.sha256,
        source.job_id,
        0,
    )
    assert knowing.entry(made["id"]).is_forgotten
    assert knowing.books.query("SELECT 1 FROM pages WHERE tombstoned_at IS NULL") == []


def test_a_job_in_slices_says_nothing_twice(knowing: Knowing):
    source = knowing.job(knowing.session())
    whole = [upsert(f"key {number}", "text") for number in range(6)]

    knowing.distil(*whole[:4], source=source)
    done = knowing.distil(*whole[2:], source=source, first=2)

    assert [each.index for each in done] == [2, 3, 4, 5]
    assert knowing.books.query("SELECT count(*) AS n FROM knowledge_versions") == [{"n": 6}]
    assert knowing.books.query("SELECT count(*) AS n FROM distillation_results") == [{"n": 6}]


def test_a_repeated_tombstone_of_a_hidden_key_writes_no_record_and_keeps_the_clock(knowing: Knowing):
    made = knowing.known()
    knowing.distil(tombstone())
    before = knowing.entry(made["id"])

    knowing.books.clock.advance(3_600)
    (again,) = knowing.distil(tombstone())
    (unknown,) = knowing.distil(tombstone("never heard of"))

    assert (again.action, unknown.action) == ("skipped", "skipped")
    assert (again.entry_id, unknown.entry_id) == (before.id, None)
    assert knowing.entry(made["id"]).tombstoned_at == before.tombstoned_at
    assert len(knowing.tombstones(made["id"])) == 1


@pytest.mark.parametrize("confidence", [0.0, 0.7, 1.0])
def test_an_automatic_tombstone_never_overrides_a_pin(knowing: Knowing, confidence: float):
    made = knowing.known()
    knowing.pin(made["id"])

    (done,) = knowing.distil(tombstone(confidence=confidence))

    assert done.action == "skipped"
    assert not knowing.entry(made["id"]).is_forgotten
    assert knowing.tombstones(made["id"]) == []


def test_a_distilled_fact_of_the_same_directory_is_the_next_version(knowing: Knowing):
    knowing.distil(upsert(content="make", confidence=0.5))
    knowing.distil(upsert(content="ninja", confidence=0.4))

    assert held(knowing) == ("ninja", 0.4, 2, False)


def test_a_pinned_fact_written_by_hand_keeps_its_place_and_the_new_one_is_kept_aside(knowing: Knowing):
    made = knowing.known(content="by hand")
    knowing.pin(made["id"])

    (done,) = knowing.distil(upsert(content="otherwise", confidence=1.0))
    (again,) = knowing.distil(upsert(content="otherwise", confidence=1.0))

    assert (done.action, done.version, done.is_active) == ("upserted", 2, False)
    assert again.action == "skipped"
    assert held(knowing) == ("by hand", 1.0, 1, True)
    assert knowing.page(made["id"])[1] == "by hand"
    assert knowing.activate(made["id"], 2)["version"] == 2
    assert held(knowing) == ("otherwise", 1.0, 2, True)


@pytest.mark.parametrize(("confidence", "holds"), [(0.79, "first"), (0.8, "second"), (0.9, "second")])
def test_a_pinned_distilled_fact_gives_way_only_to_one_as_sure(
    knowing: Knowing, confidence: float, holds: str
):
    knowing.distil(upsert(content="first", confidence=0.8))
    knowing.pin(id_text(knowing.under("build").id))  # type: ignore[union-attr]

    knowing.distil(upsert(content="second", confidence=confidence))

    assert held(knowing)[0] == holds
    assert held(knowing)[3] is True
    assert len(knowing.versions(id_text(knowing.under("build").id))) == 2  # type: ignore[union-attr]


@pytest.mark.parametrize(("confidence", "holds"), [(0.69, "by hand"), (0.7, "distilled")])
def test_what_was_written_by_hand_gives_way_to_what_is_sure_enough(
    knowing: Knowing, confidence: float, holds: str
):
    knowing.known(content="by hand")

    knowing.distil(upsert(content="distilled", confidence=confidence))

    assert held(knowing)[0] == holds


def test_what_says_nothing_new_makes_no_version(knowing: Knowing):
    knowing.distil(upsert(confidence=0.8))
    (same,) = knowing.distil(upsert(confidence=0.8))
    (weaker,) = knowing.distil(upsert(confidence=0.5))
    (surer,) = knowing.distil(upsert(confidence=0.95))

    assert [same.action, weaker.action, surer.action] == ["skipped", "skipped", "upserted"]
    assert held(knowing)[1:3] == (0.95, 2)


def test_what_somebody_forgot_comes_back_only_when_it_is_said_otherwise(knowing: Knowing):
    knowing.distil(upsert(content="make test"))
    text = id_text(knowing.under("build").id)  # type: ignore[union-attr]
    knowing.forget(text)

    (same,) = knowing.distil(upsert(content="make test", confidence=1.0))
    assert same.action == "skipped"
    assert knowing.entry(text).is_forgotten

    (other,) = knowing.distil(upsert(content="pytest"))
    assert other.action == "upserted"
    assert held(knowing)[0] == "pytest"
    assert knowing.page(text)[1] == "pytest"


def test_what_a_session_took_back_another_session_may_say_again(knowing: Knowing):
    knowing.distil(upsert())
    knowing.distil(tombstone())

    (again,) = knowing.distil(upsert())

    assert again.action == "upserted"
    assert held(knowing)[2] == 2


def test_a_distillation_touches_its_own_directory_only(knowing: Knowing):
    there = knowing.known(where=in_directory(ELSEWHERE, workspace="default", project="alpha"))
    own = knowing.known(where=Where(workspace="default", project="alpha"), key="own")

    knowing.distil(upsert(), tombstone("own"))
    knowing.distil(tombstone(), upsert("own", "else"))

    assert knowing.entry(there["id"]).version == 1
    assert not knowing.entry(there["id"]).is_forgotten
    assert knowing.entry(own["id"]).content == "make all"
    assert knowing.under("own", HOME) is not None


def test_a_session_without_a_directory_teaches_its_project(knowing: Knowing):
    source = knowing.job(knowing.session(None), None)

    (done,) = knowing.distil(upsert(), source=source)

    assert done.is_active
    assert knowing.under("build") is None
    answer = knowing.known(content="make check", where=Where(workspace="default", project="alpha"))
    assert done.entry_id is not None
    assert answer["id"] == id_text(done.entry_id)


@pytest.mark.parametrize("wrong", [upsert(content="x\x00y"), upsert("k\x00y"), tombstone("k\x00y")])
def test_one_impossible_candidate_keeps_all_of_its_job_out(knowing: Knowing, wrong: Candidate):
    with pytest.raises(Invalid):
        knowing.distil(upsert("fine"), wrong)

    assert knowing.books.query("SELECT * FROM knowledge") == []
    assert knowing.books.query("SELECT * FROM distillation_results") == []


def test_the_verdict_never_lets_less_confidence_over_a_pin():
    for origin in (Origin.MANUAL, Origin.DISTILLATION):
        for before in (0.0, 0.5, 0.7, 1.0):
            for after in (0.0, 0.5, 0.7, 1.0):
                standing = Standing(
                    content="a", confidence=before, origin=origin, is_pinned=True, is_forgotten=False
                )
                verdict = verdict_on_upsert(standing, "b", after, was_said_before=False)
                assert (verdict is Verdict.TAKE) == (origin is Origin.DISTILLATION and after >= before)


def test_retention_never_removes_pinned_knowledge(knowing: Knowing):
    from memory_core.commands.knowledge_ageing import (
        delete_old_tombstones,
        prune_versions,
        tombstone_aged,
    )

    books = knowing.books
    old, pinned = knowing.known("old"), knowing.known("pinned")
    knowing.pin(pinned["id"])
    for number in range(12):
        knowing.known("old", content=f"text {number}")
        knowing.known("pinned", content=f"text {number}")
    knowing.activate(old["id"], 2)
    assert books.transact(lambda tx: prune_versions(tx, kept=8, limit=2)) == 2
    assert books.transact(lambda tx: prune_versions(tx, kept=8, limit=100)) == 2
    assert [v[0] for v in knowing.versions(old["id"])] == [2, *range(6, 14)]
    assert len(knowing.versions(pinned["id"])) == 13
    knowing.known("old", content="newest")
    assert knowing.entry(old["id"]).version == 14

    now = books.clock.now_us()
    knowing.known("young")
    assert books.transact(lambda tx: tombstone_aged(tx, before=now, limit=10)) == 1
    assert knowing.entry(old["id"]).is_forgotten
    assert not knowing.entry(pinned["id"]).is_forgotten
    assert [t["origin"] for t in knowing.tombstones(old["id"])] == ["age"]
    assert books.transact(lambda tx: tombstone_aged(tx, before=now, limit=10)) == 0

    hidden_at = knowing.entry(old["id"]).tombstoned_at
    assert hidden_at is not None
    assert books.transact(lambda tx: delete_old_tombstones(tx, before=hidden_at - 1, limit=10)) == 0
    assert books.transact(lambda tx: delete_old_tombstones(tx, before=hidden_at, limit=10)) == 1
    assert knowing.under("old") is None
    assert books.query("SELECT count(*) AS n FROM knowledge_versions WHERE content LIKE 'text%'") == [
        {"n": 12}
    ]
    again = knowing.known("old", content="anew")
    assert knowing.page(again["id"])[1] == "anew"
