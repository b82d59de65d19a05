"""What `explain` says of a small invented set: of each stream by itself, and of all together.

The expected answers lie in `golden/`. After a change of ranking that is meant, write them anew and read the difference:
`MEMORYD_GOLDEN=write scripts/test tests/recall/test_golden_explain.py`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from memory_core.commands.capture import RecordObservation
from memory_core.commands.pages import WritePage
from memory_core.domain.project import Project
from memory_core.models.query_embedder import QueryVector
from memory_core.recall import search as searching
from memory_core.recall.scope import Asker, project_for
from memory_core.recall.search import Found, Question, search
from memory_core.recall.streams import Stream, streams
from memory_core.recall.vectors import QuestionVector
from memory_core.registry import Registry
from memory_core.store.vector_matrix import VectorMatrix
from tests.books import Books
from tests.factories import event, said
from tests.jobs.embedding_model import A, Maker, vector_of

GOLDEN = Path(__file__).parent / "golden"
DAY = 86_400
_PAGES = {
    "decisions/retries.md": "# Retries of the uploader\n\nThe uploader tries three times. It calls parse_body. [[gotchas/gateway]]",
    "gotchas/gateway.md": "# The gateway drops idle connections\n\nAfter a minute without a byte.",
    "notes/herons.md": "# Herons\n\nThey nest behind the wall, near the uploader of the weather station.",
}
_SAID = (
    ("ada", "Why does the uploader give up so early?"),
    ("agent", "Its second attempt meets a connection that the gateway has dropped."),
    ("ada", "Then let it wait longer between attempts."),
)
#: Stream → question. Each stream answers its question by itself.
ALONE = {
    "lexical": "uploader attempts",
    "entity": "parse_body",
    "graph": "parse_body",
    "vector": "Retries uploader tries three times",
    "time": "What happened yesterday?",
}


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Generator[Books]:
    books = Books(tmp_path_factory.mktemp("golden"))
    for path, body in _PAGES.items():
        books.apply(WritePage(workspace="default", project="alpha", path=path, body=body))
        books.clock.advance(60)
    for speaker, text in _SAID:
        place = {"session_key": "s", "cwd": "/srv/alpha"}
        one = said(text, **place) if speaker == "agent" else event(body=text, **place)
        books.apply(RecordObservation(event=one, source="test"), token_scope="capture")
        books.clock.advance(60)
    maker = Maker(books.store)
    maker.bind(A)
    maker.all()
    books.clock.advance(DAY)
    yield books
    books.close()


def explained(books: Books, text: str, meant: str = "") -> dict[str, Any]:
    """What was found without what is new in each run (ids, numbers of time); scores to two places. The question's vector is that of
    `meant`."""
    with books.database.snapshot() as reading:
        found: Found = search(
            reading,
            Question(
                text=text,
                projects=[_alpha(reading)],
                now=books.clock.now_us(),
                principal="ada",
                explain=True,
                vector=QuestionVector(
                    query=QueryVector(model=A, vector=vector_of(meant or text)), matrix=VectorMatrix()
                ),
            ),
        )
    asked = {name for name in found.streams_active if not name.startswith("observations_")}
    assert set(found.timings_ms) == {*asked, "hits", "total"}
    return {
        "question": text,
        "streams_active": sorted(found.streams_active),
        "streams_failed": found.streams_failed,
        "terms": found.terms,
        "hits": [
            {
                "hit": hit.path or _bare(hit.snippet),
                "kind": hit.kind,
                "speaker": hit.speaker,
                "score": round(hit.score, 2),
                **_rounded(hit.score_details),
            }
            for hit in found.hits
        ],
    }


def _alpha(reading: Any) -> Project:
    return project_for(reading, Asker(principal="ada"), "default", "alpha")


def _bare(snippet: str) -> str:
    return snippet.splitlines()[1].replace("<mark>", "").replace("</mark>", "")


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 2)
    return {name: _rounded(item) for name, item in value.items()} if isinstance(value, dict) else value


def compare(name: str, told: dict[str, Any]) -> None:
    file = GOLDEN / f"{name}.json"
    if os.environ.get("MEMORYD_GOLDEN") == "write":
        file.write_text(json.dumps(told, ensure_ascii=False, indent=1) + "\n")
    assert told == json.loads(file.read_text())


def only(name: str) -> Registry[Stream]:
    registry: Registry[Stream] = Registry("search stream")
    registry.add(name)(streams.get(name))
    return registry


def test_there_is_a_question_for_each_stream():
    assert set(ALONE) == set(streams.names())


@pytest.mark.parametrize("name", sorted(ALONE))
def test_a_stream_answers_by_itself_and_says_how(books: Books, name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(searching, "streams", only(name))

    told = explained(books, ALONE[name])

    assert told["streams_active"] == [name]
    assert told["hits"]
    assert {tuple(hit["streams"]) for hit in told["hits"]} == {(name,)}
    compare(name, told)


def test_all_together_say_what_each_of_them_found(books: Books):
    told = explained(books, "parse_body tries three times", "Herons They nest behind the wall")

    assert {"lexical", "entity", "graph", "vector"} == set(told["streams_active"])
    assert {name for hit in told["hits"] for name in hit["streams"]} == set(told["streams_active"])
    compare("together", told)


def test_a_question_for_a_day_leaves_what_is_from_other_days_to_the_words(books: Books):
    assert [hit["hit"] for hit in explained(books, "What happened two weeks ago?")["hits"]] == []
    yesterday = explained(books, "What did we do yesterday?")["hits"]
    assert {hit["kind"] for hit in yesterday} >= {"turn", "decision"}
