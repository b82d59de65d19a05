"""Questions in anybody's words find what is kept, and nothing outside their scope."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_core import limits
from memory_core.commands.capture import RecordObservation
from memory_core.commands.pages import DeletePage, WritePage
from memory_core.domain import recalled
from memory_core.domain.event import HookEvent
from memory_core.domain.project import Project
from memory_core.recall import search as searching
from memory_core.recall.search import Found, Question, search
from memory_core.store import projects
from memory_core.store.transaction import Reading
from tests.books import Books
from tests.factories import bash, ended, event, used_tool

PAGES = {
    "notes/tokens.md": "# foo-bar:baz registry key\nThe registry key foo-bar:baz must be set before boot.",
    "notes/cpp.md": "# C++ build flags\nWe compile C++ with -O2; the bindings live in src/main.cs.",
    "notes/csharp.md": "# Bindings\nC# bindings are generated; never edit the C sources by hand.",
    "notes/order.md": "# Order ZX-100821\nOrder ZX-100821 shipped 2031-12-15, don't reopen.",
    "docs/CLAUDE.md": "# Root instructions\nSee docs/CLAUDE.md and src/app/main.py.",
    "decisions/search.md": "# Cross project search strategy\nWe chose one index per workspace.",
    "sessions/a.md": "# Resumo\nA descri\u00e7\u00e3o da sess\u00e3o est\u00e1 no rodap\u00e9. Na\u00efve caf\u00e9 r\u00e9sum\u00e9 M\u00fcnchen. Stra\u00dfe.",
    "concepts/parser.md": "# Reading input\nparseHttpBody is called once per upload.",
    "concepts/ja.md": "# \u8a8d\u8a3c\n\u30ed\u30b0\u30a4\u30f3\u306e\u8a8d\u8a3c\u306f\u6bce\u56de\u884c\u3046\u3002",
}


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Generator[Books]:
    made = Books(tmp_path_factory.mktemp("recall"))
    for path, body in PAGES.items():
        made.apply(WritePage(workspace="default", project="alpha", path=path, body=body))
    made.apply(
        WritePage(workspace="default", project="beta", path="notes/tokens.md", body="# Beta\nfoo-bar:baz")
    )
    yield made
    made.close()


def ask(books: Books, text: str, project: str = "alpha", **more: object) -> Found:
    with books.database.snapshot() as reading:
        row = projects.named(reading, "default", project)
        question = Question(
            text=text, projects=[Project.from_row(row)], now=books.clock.now_us(), principal="ada", **more
        )
        return search(reading, question)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("foo-bar:baz", "notes/tokens.md"),
        ("C++", "notes/cpp.md"),
        ("C#", "notes/csharp.md"),
        ("ZX-100821", "notes/order.md"),
        ("2031-12-15", "notes/order.md"),
        ("don't reopen", "notes/order.md"),
        ("src/app/main.py", "docs/CLAUDE.md"),
        ("CLAUDE.md", "docs/CLAUDE.md"),
        ("have we ever discussed the cross project search strategy before?", "decisions/search.md"),
        ("descricao da sessao", "sessions/a.md"),
        ("naive cafe resume", "sessions/a.md"),
        ("Munchen", "sessions/a.md"),
        ("M\u00dcNCHEN", "sessions/a.md"),
        ("Mu\u0308nchen", "sessions/a.md"),
        ("STRASSE", "sessions/a.md"),
        ("parse http body", "concepts/parser.md"),
        ("parseHttpBody", "concepts/parser.md"),
        ("uploads", "concepts/parser.md"),
        ("\u8a8d\u8a3c", "concepts/ja.md"),
        ("\u30ed\u30b0\u30a4\u30f3", "concepts/ja.md"),
        ("\u6bce\u56de\u884c", "concepts/ja.md"),
        ("\u6bce", "concepts/ja.md"),
    ],
)
def test_the_page_that_is_meant_comes_first(books: Books, text: str, path: str):
    found = ask(books, text)

    assert [hit.path for hit in found.hits][:1] == [path]
    assert found.streams_failed == []


@pytest.mark.parametrize("text", ["C++", "C#"])
def test_two_languages_of_one_letter_are_not_taken_for_each_other(books: Books, text: str):
    assert len(ask(books, text).hits) == 1


@pytest.mark.parametrize(
    "text",
    [
        "what did we decide?", "AND", "OR", "NOT", "a OR", "NEAR(", "(unbalanced", '"unclosed', "title:", "*", "^x",
        "-flag", '""', "   ", "%_%", "{}[]", "`rm -rf`", "scope:p1", "scope : p2", "\x00", "\ud800", "a" * 5_000, "",
        "\U0001f680", "NEAR(a b, 2)", "title : foo", "foo*", "- - -", "'; DROP TABLE pages; --", "\u0345", "a\u0300" * 500,
    ],
)  # fmt: skip
def test_no_query_raises_and_none_is_taken_for_syntax(books: Books, text: str):
    found = ask(books, text)

    assert found.streams_failed == []


@given(text=st.text(max_size=200))
@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_no_text_at_all_raises(books: Books, text: str):
    assert ask(books, text).streams_failed == []


@pytest.mark.parametrize("text", ["", "   ", '""', "{}[]", "*", "\U0001f680"])
def test_a_query_without_a_word_has_no_hits_and_a_hint(books: Books, text: str):
    found = ask(books, text)

    assert found.hits == []
    assert found.hint


def test_words_that_are_operators_elsewhere_are_looked_for_as_words(books: Books):
    assert ask(books, "key AND NOT boot").hits[0].path == "notes/tokens.md"


def test_an_unrelated_question_finds_nothing(books: Books):
    assert ask(books, "kubernetes ingress timeout").hits == []


def test_another_project_is_never_in_the_answer(books: Books):
    found = ask(books, "foo-bar:baz")

    assert {hit.project for hit in found.hits} == {"alpha"}
    assert {hit.project for hit in ask(books, "foo-bar:baz", "beta").hits} == {"beta"}


@pytest.mark.parametrize("text", ["scope:p2", 'p2" OR scope : "p2', "p2"])
def test_a_query_cannot_ask_for_another_projects_token(books: Books, text: str):
    assert "beta" not in {hit.project for hit in ask(books, text).hits}


def test_a_hit_says_where_it_comes_from_and_its_snippet_is_fenced(books: Books):
    hit = ask(books, "registry boot").hits[0]

    assert (hit.workspace, hit.project, hit.path) == ("default", "alpha", "notes/tokens.md")
    assert hit.date.endswith("Z")
    assert "<mark>" in hit.snippet
    assert "default/alpha/notes/tokens.md" in hit.snippet
    assert recalled.strip(hit.snippet).strip() == ""


def test_scores_fall_from_hit_to_hit(books: Books):
    scores = [hit.score for hit in ask(books, "order key search index upload").hits]

    assert len(scores) > 1
    assert scores == sorted(scores, reverse=True)


def test_explain_names_the_stream_of_each_hit(books: Books):
    found = ask(books, "registry", explain=True)

    assert found.hits[0].score_details is not None
    assert found.hits[0].score_details["streams"]["lexical"]["rank"] == 1
    assert set(found.timings_ms) >= {"lexical", "hits", "total"}
    assert ask(books, "registry").hits[0].score_details is None


def test_expired_and_deleted_pages_are_not_found(tmp_path: Path):
    books = Books(tmp_path)
    for path, more in (
        ("notes/old.md", {"expires_at": "2001-01-01"}),
        ("notes/gone.md", {}),
        ("notes/here.md", {}),
    ):
        books.apply(WritePage(workspace="default", project="alpha", path=path, body="zebra", **more))
    books.apply(DeletePage(workspace="default", project="alpha", path="notes/gone.md"))

    assert [hit.path for hit in ask(books, "zebra").hits] == ["notes/here.md"]
    assert len(ask(books, "zebra", include_expired=True).hits) == 2
    books.close()


def told(books: Books, *events: HookEvent, principal: str = "ada") -> None:
    for each in events:
        books.apply(RecordObservation(event=each, source="test"), principal=principal)


def test_turns_answer_beside_pages_but_only_ones_own(tmp_path: Path):
    books = Books(tmp_path)
    books.apply(WritePage(workspace="default", project="alpha", path="notes/a.md", body="a quokka page"))
    told(books, event(body="the quokka test is flaky", cwd="/srv/alpha"))
    told(books, event(body="quokka of bob", cwd="/srv/alpha", session_key="b"), principal="bob")

    found = ask(books, "quokka")

    assert sorted((hit.kind, hit.speaker) for hit in found.hits) == [("note", None), ("turn", "user")]
    turn = next(hit for hit in found.hits if hit.is_turn)
    assert "flaky" in turn.snippet
    assert turn.id == turn.event_id
    assert turn.session_id
    assert (turn.path, found.raw_hits) == ("", [])
    assert [hit.kind for hit in ask(books, "quokka", pages_only=True).hits] == ["note"]
    books.close()


def test_a_turn_names_the_page_of_its_session_and_that_page_is_not_shown_beside_it(tmp_path: Path):
    books = Books(tmp_path)
    told(books, event(body="the quokka test is flaky", cwd="/srv/alpha"), ended(cwd="/srv/alpha"))

    (hit,) = ask(books, "quokka flaky").hits

    assert hit.kind == "turn"
    assert hit.path.startswith("sessions/")
    (page,) = ask(books, "quokka flaky", pages_only=True).hits
    assert (page.kind, page.path, page.session_id) == ("session", hit.path, hit.session_id)
    books.close()


def _sessions_of(found: Found) -> list[str | None]:
    return [hit.session_id for hit in found.hits]


def test_of_many_results_the_later_ones_come_from_sessions_that_are_not_there_yet(tmp_path: Path):
    books = Books(tmp_path)
    for number in range(90):
        told(books, event(body=f"something else, time {number}", cwd="/srv/alpha", session_key="noise"))
    for number in range(30):
        told(books, event(body=f"quokka and wombat, time {number}", cwd="/srv/alpha", session_key="loud"))
    for number in range(6):
        body = f"by the way, a quokka was seen at gate {number} in the evening"
        told(books, event(body=body, cwd="/srv/alpha", session_key=f"quiet-{number}"))

    many, few = (
        _sessions_of(ask(books, "quokka wombat", limit=limit)) for limit in (20, limits.HITS_AS_THEY_COME)
    )

    assert set(many[: limits.HITS_AS_THEY_COME]) == {many[0]}
    assert (len(few), len(many)) == (limits.HITS_AS_THEY_COME, 20)
    assert len(set(many)) == 7
    assert max(Counter(few).values()) == limits.HITS_AS_THEY_COME * 4 // 5
    books.close()


def test_a_session_that_shares_only_a_common_word_is_not_let_in(tmp_path: Path):
    books = Books(tmp_path)
    for number in range(30):
        body = f"the build of part {number}"
        told(books, event(body=body, cwd="/srv/alpha", session_key=f"common-{number}"))
    told(books, event(body="the build fails with quokka wombat numbat", cwd="/srv/alpha", session_key="rare"))

    found = ask(books, "quokka wombat numbat build", limit=40)

    assert "numbat" in found.hits[0].snippet
    assert len(found.hits) == 1
    books.close()


def test_what_a_tool_did_answers_when_nothing_else_does_but_only_ones_own(tmp_path: Path):
    books = Books(tmp_path)
    told(books, event(body="run it", cwd="/srv/alpha"), used_tool(bash("quokka --flaky"), cwd="/srv/alpha"))
    theirs = event(body="x", cwd="/srv/alpha", session_key="b"), used_tool(bash("quokka"), session_key="b")
    told(books, *theirs, principal="bob")

    found = ask(books, "quokka")

    assert found.hits == []
    assert ["flaky" in hit.snippet for hit in found.raw_hits] == [True]
    assert ask(books, "run quokka").raw_hits == []
    books.close()


def test_no_more_hits_than_a_hundred_and_each_snippet_bounded(tmp_path: Path):
    books = Books(tmp_path)
    for number in range(120):
        body = "zebra " + "x" * 400 + " "
        books.apply(
            WritePage(workspace="default", project="alpha", path=f"notes/{number}.md", body=body * 20)
        )

    found = ask(books, "zebra", limit=1_000)

    assert len(found.hits) == limits.RESULTS_MAX
    assert all(len(hit.snippet) < limits.HIT_SNIPPET_MAX_CHARS + 300 for hit in found.hits)
    assert all("<mark>zebra</mark>" in hit.snippet for hit in found.hits)
    books.close()


@pytest.mark.parametrize("before", [0, 190, 205, 50_000])
def test_a_word_as_long_as_its_page_does_not_flood_the_snippet(tmp_path: Path, before: int):
    books = Books(tmp_path)
    books.apply(
        WritePage(workspace="default", project="alpha", path="a", body=f"{'y' * before} zebra {'x' * 90_000}")
    )

    (hit,) = ask(books, "zebra").hits

    assert len(hit.snippet) < limits.HIT_SNIPPET_MAX_CHARS + 300
    assert "<mark>zebra</mark>" in hit.snippet
    assert hit.snippet.count("<mark>") == hit.snippet.count("</mark>")
    books.close()


def test_many_who_ask_at_once_take_turns_and_all_are_answered(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way, most, seen = [0], [0], threading.Lock()
    really = searching._searched

    def counted(reading: Reading, question: Question) -> Found:
        with seen:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        try:
            return really(reading, question)
        finally:
            with seen:
                under_way[0] -= 1

    monkeypatch.setattr(searching, "_searched", counted)
    with ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(lambda _: ask(books, "CLAUDE.md"), range(60)))

    assert {answer.hits[0].path for answer in answers} == {"docs/CLAUDE.md"}
    assert most[0] <= limits.SEARCHES_AT_ONCE


def test_a_search_that_fails_gives_its_turn_back(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_reading: Reading, _question: Question) -> Found:
        raise RuntimeError("broken")

    with monkeypatch.context() as patched:
        patched.setattr(searching, "_searched", broken)
        for _ in range(limits.SEARCHES_AT_ONCE + 1):
            with pytest.raises(RuntimeError):
                ask(books, "CLAUDE.md")

    assert ask(books, "CLAUDE.md").hits
