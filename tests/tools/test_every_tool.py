"""What holds for every tool, also for those that come later: which project it means, and how long its answer can get."""

from __future__ import annotations

import secrets
from collections.abc import Generator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_core import errors, limits
from memory_core.commands.capture import RecordObservation
from memory_core.commands.feedback import GiveFeedback
from memory_core.commands.handoffs import BeginHandoff
from memory_core.commands.pages import WritePage
from memory_core.ids import id_text, session_id_from
from memory_core.tools import call_tool, tools
from memory_core.tools._schema import schema_of
from tests.books import Books
from tests.factories import bash, event, said, used_tool
from tests.tools.context import Context

#: Something to call each tool with, where it needs anything.
NEEDED: dict[str, Any] = {
    "path": "notes/a",
    "query": "zebra",
    "body": "# A\n\ntext",
    "summary": "halfway",
    "signal": "helpful",
    "session_id": id_text(session_id_from("s")),
    "handoff_id": "00000000-0000-7000-8000-000000000000",
}
#: It is about one handoff, by its id, and about no project.
WITHOUT_SCOPE = {"memory_handoff_cancel"}
#: It answers for all projects where none is known.
OF_ALL = {"memory_status"}
MAKES_PROJECTS = {"memory_write_page", "memory_handoff_begin"}
SCOPED = [name for name in tools.names() if name not in WITHOUT_SCOPE]


def arguments_of(name: str) -> dict[str, Any]:
    """The least that the tool takes."""
    required = schema_of(tools.get(name).arguments).get("required", [])
    found = {argument: NEEDED[argument] for argument in required}
    return found or ({"path": NEEDED["path"]} if name == "memory_read_page" else {})


@pytest.fixture
def two_open(context: Context) -> Context:
    """Open sessions in `alpha` and `beta`, and a project `gamma` that nobody works in."""
    context.books.apply(
        RecordObservation(event=event(session_key="t", cwd="/srv/beta"), source="test"), principal="ada"
    )
    for workspace, project in (("default", "alpha"), ("default", "gamma"), ("work", "gamma")):
        context.books.apply(WritePage(workspace=workspace, project=project, path="notes/a", body="# Zebra"))
    return context


def projects(context: Context) -> list[Any]:
    return context.books.query("SELECT name FROM projects")


def test_every_tool_but_those_named_here_takes_a_scope():
    takes = {
        name
        for name in tools.names()
        if {"project", "workspace"} <= set(schema_of(tools.get(name).arguments).get("properties", {}))
    }
    assert takes == set(SCOPED)


@pytest.mark.parametrize("name", sorted(set(SCOPED) - OF_ALL))
def test_where_the_scope_is_unknown_it_says_so_with_the_candidates(two_open: Context, name: str):
    before = projects(two_open)
    with pytest.raises(errors.NotFound, match="scope unknown") as told:
        two_open.call(name, **arguments_of(name))
    assert "default/alpha" in str(told.value)
    assert "default/beta" in str(told.value)
    assert "gamma" not in str(told.value)
    assert two_open.sent == []
    assert projects(two_open) == before


@pytest.mark.parametrize("name", SCOPED)
def test_a_workspace_alone_names_no_project(two_open: Context, name: str):
    with pytest.raises(errors.Invalid, match="workspace alone"):
        two_open.call(name, **arguments_of(name), workspace="default")


@pytest.mark.parametrize("name", SCOPED)
def test_a_project_that_is_not_there_is_made_by_those_that_write_and_by_no_other(
    two_open: Context, name: str
):
    before = projects(two_open)
    if name in MAKES_PROJECTS:
        assert two_open.call(name, **arguments_of(name), project="delta")["project"] == "delta"
        assert len(projects(two_open)) == len(before) + 1
        return
    with pytest.raises(errors.NotFound, match="default/alpha"):
        two_open.call(name, **arguments_of(name), project="delta")
    assert projects(two_open) == before


@pytest.mark.parametrize("name", SCOPED)
def test_the_session_that_asks_says_the_project(two_open: Context, name: str):
    two_open.session_id = session_id_from("s")
    answer = two_open.call(name, **arguments_of(name))
    assert "beta" not in msgspec.json.encode(answer).decode()


def test_a_name_alone_means_the_active_workspace_then_the_default_one(two_open: Context):
    write = {"path": "b", "body": "# B"}
    assert two_open.call("memory_write_page", **write, project="gamma")["workspace"] == "default"
    at_work = event(session_key="w", cwd="/srv/x")
    two_open.books.apply(
        RecordObservation(event=at_work, source="test", workspace="work", project="gamma"), principal="ada"
    )
    two_open.session_id = session_id_from("w")
    assert two_open.call("memory_write_page", **write, project="gamma")["workspace"] == "work"
    assert two_open.call("memory_briefing", project="gamma")["workspace"] == "work"
    assert two_open.call("memory_briefing", project="alpha")["workspace"] == "default"
    assert two_open.call("memory_write_page", **write, project="new")["workspace"] == "work"


def test_a_name_that_only_other_workspaces_have_is_found_or_asked_about(two_open: Context):
    two_open.books.apply(WritePage(workspace="home", project="taxes", path="a", body="x"))
    assert two_open.call("memory_briefing", project="taxes")["workspace"] == "home"
    two_open.books.apply(WritePage(workspace="work", project="taxes", path="a", body="x"))
    for name in ("memory_briefing", "memory_write_page"):
        with pytest.raises(errors.NotFound, match=r"scope unknown.*home/taxes, work/taxes"):
            two_open.call(name, **arguments_of(name), project="taxes")


# --- sizes ---------------------------------------------------------------------------------------

#: Characters that JSON writes as up to six, one that escaping makes longer, one outside the basic plane.
AWKWARD = '"\\\x01\u2028😀memoryd:recalled <!-- -->\n'


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Generator[Context]:
    """A project where everything is as large and as many as it can be."""
    books = Books(tmp_path_factory.mktemp("crowded"))
    _sessions(books)
    _pages(books)
    for _ in range(12):
        books.apply(
            BeginHandoff(
                summary=AWKWARD * 500,
                open_questions=(AWKWARD * 60,) * 20,
                next_steps=(AWKWARD * 60,) * 20,
                files_touched=(AWKWARD * 9,) * 20,
                cwd="/srv/" + "d" * 4_000,
                workspace="default",
                project="alpha",
                from_agent=AWKWARD * 40,
                to_agent=AWKWARD * 40,
                model=AWKWARD * 40,
            ),
            principal="ada",
        )
    yield Context(books=books)
    books.close()


def _sessions(books: Books) -> None:
    where = {"session_key": "s", "cwd": "/srv/alpha"}
    long = AWKWARD * 400
    for number in range(120):
        one = said(f"zebra {number} {long}", **where) if number % 2 else used_tool(bash(long, long), **where)
        books.apply(RecordObservation(event=one, source="test"), principal="ada", token_scope="capture")
    for number in range(40):
        books.apply(
            WritePage(
                workspace="w" * 60 + str(number), project="p" * 60 + str(number), path="a", body="zebra"
            )
        )


def _pages(books: Books) -> None:
    for number in range(130):
        folder = ("_rules", "_slots", "notes", "decisions")[number % 4]
        path = f"{folder}/{'n' * 180}{number}"
        extra = "\n".join(f'key{n}: "{"v" * 90}"' for n in range(120)) if number % 10 == 0 else "x: 1"
        title = (AWKWARD.replace("\n", " ") * 10)[:190] + str(number)
        books.apply(
            WritePage(
                workspace="default",
                project="alpha",
                path=path,
                title=title,
                body=f"---\n{extra}\n---\n# Zebra\n\n"
                + (AWKWARD + "zebra ") * (3_000 if number == 0 else 300)
                + "z" * 5_000,
                tags=tuple(f"{'t' * 60}{n}" for n in range(30)),
                pinned=number % 3 == 0,
            )
        )
        if number % 5 == 0:
            wrong = GiveFeedback(
                workspace="default", project="alpha", path=path, signal="wrong", reason=AWKWARD * 100
            )
            books.apply(wrong)


ASKED: dict[str, dict[str, Any]] = {
    "memory_query": {"query": "zebra", "explain": True},
    "memory_read_page": {"path": "_rules/" + "n" * 180 + "0"},
    "memory_delete_page": {"path": "gone"},
    "memory_feedback": {"path": "_slots/" + "n" * 180 + "1", "reason": AWKWARD * 100},
}


@pytest.mark.parametrize("name", tools.names())
@pytest.mark.parametrize("limit", [1, 10, 10**6])
def test_no_answer_is_longer_than_its_limit(crowded: Context, name: str, limit: int):
    shape = schema_of(tools.get(name).arguments)["properties"]
    more = {argument: limit for argument in ("limit", "recent_pages_limit", "max_chars") if argument in shape}
    given = {**arguments_of(name), **ASKED.get(name, {}), **more}
    if name in WITHOUT_SCOPE:
        with pytest.raises(errors.NotFound):
            crowded.call(name, **given)
        return
    answer = crowded.call(name, **given, project="alpha", workspace="default")
    size = len(msgspec.json.encode(answer).decode())
    assert size <= limits.ANSWER_MAX_CHARS
    if limit > 10 and tools.get(name).is_read_only and name != "memory_status":
        assert size > limits.ANSWER_MAX_CHARS // 3, "the limit was not what ended this answer"


def test_a_query_without_pages_is_bounded_too(crowded: Context):
    with crowded.database.snapshot():
        pass
    long = AWKWARD * 300
    for sent in (
        said("quokka " + long, session_key="q", cwd="/srv/q"),
        used_tool(bash(f"wombat {long}"), session_key="q", cwd="/srv/q"),
    ):
        crowded.books.apply(RecordObservation(event=sent, source="x"), principal="ada")
    for word, part in (("quokka", "hits"), ("wombat", "raw_hits")):
        answer = crowded.call("memory_query", query=word, everywhere=True, limit=100)
        assert answer[part]
        assert len(msgspec.json.encode(answer).decode()) <= limits.ANSWER_MAX_CHARS


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
    max_examples=60,
)
@given(name=st.sampled_from(tools.names()), data=st.data())
def test_neither_a_long_nor_a_strange_argument_makes_a_long_answer(crowded: Context, name: str, data: Any):
    long = secrets.choice(["x", "é", '"', "\x00", "😀", "a/"]) * 30_000
    texts = st.one_of(st.text(max_size=40), st.just(long))
    shape = schema_of(tools.get(name).arguments).get("properties", {})
    given: dict[str, Any] = {}
    for argument, part in shape.items():
        if data.draw(st.booleans(), label=argument):
            wants_number = "integer" in str(part)
            given[argument] = data.draw(st.integers() if wants_number else texts, label=argument)
    if "project" in shape and data.draw(st.booleans(), label="where there is much"):
        given |= {"project": "alpha"}
        given.pop("workspace", None)
    assert len(_said(crowded, name, given)) <= limits.ANSWER_MAX_CHARS


def _said(context: Context, name: str, given: dict[str, Any]) -> str:
    """The answer as text; a refusal's is to be much shorter."""
    try:
        return msgspec.json.encode(call_tool(name, given, context)).decode()
    except errors.CoreError as error:
        return str(error) * (limits.ANSWER_MAX_CHARS // 4_000)
