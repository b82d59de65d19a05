"""Search over HTTP and in a browser finds what `memory_query` finds: pages and turns, by words and by meaning."""

from __future__ import annotations

from typing import Any

import pytest

from memory_core.clock import FakeClock
from memory_core.ids import IdSource
from memory_core.models.errors import Unreachable
from memory_core.models.query_embedder import QueryEmbedder
from tests.factories import Store
from tests.jobs.embedding_model import Maker, WordEmbedder
from tests.web.house import House
from tests.web.markup import Elements, dangers
from web.question_vectors import QuestionVectors

ALPHA = "workspace=default&project=alpha"


def hook(house: House, event: str, *, session: str = "s", **body: Any) -> None:
    given = {"session_id": session, "cwd": "/srv/alpha", **body}
    assert house.post(f"/hook?agent=claude-code&event={event}&wait=commit", given).status_code == 200


@pytest.fixture
def house(house: House) -> House:
    house.start_writer()
    given = {"path": "notes/retries.md", "body": "# Retries\n\nThe uploader tries three times."}
    scope = {"project": "alpha", "workspace": "default"}
    assert house.post("/api/v1/tools/memory_write_page", given | scope).status_code == 200
    hook(house, "UserPromptSubmit", prompt="May the gateway drop <b>stale</b> quokkas?")
    hook(house, "Stop", last_assistant_message="It drops them after an hour.")
    return house


def embedded(house: House) -> WordEmbedder:
    """All that is kept gets its vector, and questions theirs by the same embedder."""
    house.stop_writer()
    clock = FakeClock()
    maker = Maker(
        Store(path=house.settings.database, connection=house.connection.raw, clock=clock, ids=IdSource(clock))
    )
    maker.bind(WordEmbedder().identity)
    maker.all()
    embedder = WordEmbedder()
    house.parts.question_vectors = QuestionVectors(
        house.parts.database, house.parts.clock, QueryEmbedder(lambda: embedder, house.parts.clock)
    )
    return embedder


def places(hits: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(hit["kind"], hit["id"]) for hit in hits]


@pytest.mark.parametrize("asked", ["uploader", "quokkas", "uploader quokkas hour", "nothing of it"])
def test_a_search_finds_what_memory_query_finds_in_its_order(house: House, asked: str):
    scope = {"workspace": "default", "project": "alpha"}
    by_tool = house.post("/api/v1/tools/memory_query", {"query": asked, **scope}).json
    by_address = house.get(f"/api/v1/search?q={asked}&{ALPHA}").json

    assert places(by_address) == places(by_tool["hits"])


def test_a_turn_is_named_with_its_session_its_event_and_who_said_it(house: House):
    (hit, *_) = house.get("/api/v1/search?q=quokkas").json

    assert (hit["kind"], hit["speaker"], hit["path"]) == ("turn", "user", "")
    assert hit["event_id"] == hit["id"]
    session = house.get("/api/v1/sessions").json[0]
    assert hit["session_id"] == session["id"]
    assert hit["snippet"] == "May the gateway drop &lt;b&gt;stale&lt;/b&gt; <mark>quokkas</mark>?"
    assert "score_details" not in hit


@pytest.mark.parametrize("said", ["1", "true"])
def test_explain_tells_how_each_hit_was_found_and_what_was_asked(house: House, said: str):
    answer = house.get(f"/api/v1/search?q=uploader&explain={said}").json

    assert answer["hits"][0]["score_details"]["streams"]["lexical"]["rank"] == 1
    assert "lexical" in answer["streams_active"]
    assert (answer["streams_failed"], answer["terms"], answer["hint"]) == ([], ["uploader"], None)
    assert {"lexical", "hits", "total"} <= set(answer["timings_ms"])
    assert house.post("/api/v1/search", {"q": "uploader", "explain": True}).json["hits"] == answer["hits"]


def test_a_question_without_a_word_says_so_under_explain_and_finds_nothing(house: House):
    assert house.get("/api/v1/search?q=%3F%21").json == []
    assert "no word" in house.get("/api/v1/search?q=%3F%21&explain=1").json["hint"]


def test_what_shares_no_word_is_found_by_its_meaning(house: House):
    embedded(house)
    # Meaning is by words here, also by those that a search does not look for.
    asked = "/api/v1/search?q=the+three&explain=1"

    streams = house.get(asked).json["hits"][0]["score_details"]["streams"]

    assert streams["vector"]["cosine"] > 0.3
    assert "vector" in house.get(asked).json["streams_active"]


def test_an_embedder_that_fails_is_named_and_words_answer(house: House):
    embedded(house).fails = lambda _: Unreachable()

    answer = house.get("/api/v1/search?q=uploader")

    assert answer.headers["Memoryd-Streams-Failed"] == "vector"
    assert [hit["path"] for hit in answer.json] == ["notes/retries.md"]
    assert "it failed: vector" in house.get("/ui/search?q=uploader").text
    explored = house.post(
        "/api/v1/tools/memory_explore", {"focus": "uploader", "project": "alpha", "workspace": "default"}
    ).json
    assert (explored["streams_failed"], explored["hits"][0]["path"]) == (["vector"], "notes/retries.md")
    page = house.post(
        "/api/v1/tools/memory_read_page",
        {"query": "uploader", "project": "alpha", "workspace": "default"},
    )
    assert page.json["path"] == "notes/retries.md"


def test_a_page_is_read_by_what_it_means(house: House):
    embedded(house)
    asked = {"query": "the Retries tries", "project": "alpha", "workspace": "default"}

    assert house.post("/api/v1/tools/memory_read_page", asked).json["path"] == "notes/retries.md"


def test_what_a_tool_did_is_a_hit_where_nothing_else_answers(house: House):
    tool = {
        "tool_name": "Bash",
        "tool_input": {"command": "zymurgy --all"},
        "tool_response": {"stdout": "ok"},
    }
    hook(house, "PostToolUse", **tool)

    (hit,) = house.get("/api/v1/search?q=zymurgy").json

    assert (hit["kind"], hit["path"], hit["event_id"]) == ("post-tool-use", "", hit["id"])
    page = house.get("/ui/search?q=zymurgy").text
    assert "these events may" in page
    assert f"/ui/sessions/{hit['session_id']}?event={hit['id']}" in page


def test_an_expired_page_is_found_only_where_it_is_asked_for(house: House):
    given = {"path": "notes/old.md", "body": "# Old\n\nvermilion", "expires_at": "2001-01-01"}
    scope = {"project": "alpha", "workspace": "default"}
    assert house.post("/api/v1/tools/memory_write_page", given | scope).status_code == 200

    assert house.get("/api/v1/search?q=vermilion").json == []
    found = house.get("/api/v1/search?q=vermilion&include_expired=true").json
    assert [hit["path"] for hit in found] == ["notes/old.md"]


def test_a_browser_shows_who_said_it_when_and_leads_to_that_event(house: House):
    text = house.get("/ui/search?q=quokkas").text
    assert dangers(text) == []
    page = Elements(text)
    assert "said by user" in text
    assert any(tag == "time" for tag, _ in page.found)
    address = next(attrs["href"] for tag, attrs in page.found if tag == "a" and "event=" in attrs["href"])

    shown = house.get(address).text

    assert "May the gateway" in shown
    assert "<b>Prompt</b>" in shown
    answers = Elements(house.get("/ui/search?q=drops+hour").text)
    later = next(attrs["href"] for tag, attrs in answers.found if tag == "a" and "event=" in attrs["href"])
    assert "It drops them" in house.get(later).text
    assert "<b>Prompt</b>" not in house.get(later).text


def test_an_event_of_another_session_shows_the_session_from_its_beginning(house: House):
    hook(house, "UserPromptSubmit", session="other", prompt="Elsewhere.")
    session = next(row["id"] for row in house.get("/api/v1/sessions").json if row["title"] == "Elsewhere.")
    (hit, *_) = house.get("/api/v1/search?q=quokkas").json

    assert "Elsewhere." in house.get(f"/ui/sessions/{session}?event={hit['id']}").text
    assert house.get(f"/ui/sessions/{session}?event=none").status_code == 400
