"""The tools as an agent calls them: arguments as they come, answers that fit the schema, errors that help."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from memory_core import errors, limits
from memory_core.commands.capture import RecordObservation
from memory_core.domain import recalled
from memory_core.ids import session_id_from
from memory_core.tools import call_tool, tools
from memory_core.tools._schema import schema_of
from tests.factories import event
from tests.tools.context import Context


def test_there_are_these_tools():
    assert tools.names() == [
        "memory_briefing",
        "memory_delete_page",
        "memory_explore",
        "memory_feedback",
        "memory_handoff_accept",
        "memory_handoff_begin",
        "memory_handoff_cancel",
        "memory_query",
        "memory_read_page",
        "memory_read_session_observations",
        "memory_recent",
        "memory_status",
        "memory_write_page",
    ]


@pytest.mark.parametrize("name", tools.names())
def test_every_tool_has_schemas_and_a_description_of_each_argument(name: str):
    tool = tools.get(name)
    schema = schema_of(tool.arguments)

    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator.check_schema(schema_of(tool.answer))
    assert schema["type"] == "object"
    assert len(tool.description) > 60
    for argument, part in schema.get("properties", {}).items():
        assert "description" in str(part), argument


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("index.md", "memoryd renders it from its tables"),
        ("log-2026-11", "memoryd renders it from its tables"),
        ("_meta.md", "one of memoryd's own files"),
        ("notes/~x.md", "drafts and backups"),
    ],
)
def test_what_is_no_page_is_not_read_as_one_and_it_is_said_why(context: Context, path: str, says: str):
    context.call("memory_write_page", path="notes/a.md", body="text\n")

    with pytest.raises(errors.NotFound, match=says) as refused:
        context.call("memory_read_page", path=path)
    assert "memory_explore" in str(refused.value)


def test_a_page_goes_round_written_found_read_listed_deleted(context: Context):
    written = context.call(
        "memory_write_page", path="decisions/queue", body="# One queue\nOne writer, one stream.\n"
    )
    assert written["index_status"] == "indexed"
    assert written["path"] == "decisions/queue.md"
    assert written["project"] == "alpha"

    hits = context.call("memory_query", query="writer stream")["hits"]
    assert [hit["path"] for hit in hits] == ["decisions/queue.md"]

    page = context.call("memory_read_page", path="decisions/queue.md")
    assert "One writer, one stream." in page["body"]
    assert recalled.strip(page["body"]).strip() == ""
    assert page["kind"] == "decision"
    assert page["frontmatter"]["title"] == "One queue"

    assert [hit["path"] for hit in context.call("memory_recent")["hits"]] == ["decisions/queue.md"]
    assert context.call("memory_status")["counts"]["pages_latest"] == 1
    assert context.call("memory_delete_page", path="decisions/queue.md")["existed"] is True
    assert context.call("memory_query", query="writer stream")["hits"] == []
    with pytest.raises(errors.NotFound, match="search for it"):
        context.call("memory_read_page", path="decisions/queue.md")


@pytest.mark.parametrize(
    "title", ["\U0001f680", "\u65e5\u672c\u8a9e", "a/b: c", "CON", "...", "../../etc/passwd", "long " * 80]
)
def test_a_page_is_read_back_by_its_exact_title(context: Context, title: str):
    context.call("memory_write_page", title=title, body="this one")
    context.call("memory_write_page", title="other " + title, body="not this")
    context.call("memory_write_page", title=title + "!", body="nor this")

    assert "this one" in context.call("memory_read_page", query=title)["body"]


def test_spellings_of_arguments_that_agents_use_are_taken(context: Context):
    context.call("memory_write_page", path="a", content="# Zebra\nstripes", tags="animal")

    assert len(context.call("memory_query", q="zebra", n="5")["hits"]) == 1
    assert len(context.call("memory_query", search="zebra", top_k=5, project=None)["hits"]) == 1
    assert context.call("memory_read_page", path="a")["tags"] == ["animal"]
    assert len(context.call("memory_query", query="zebra", **{"global": True})["hits"]) == 1


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("memory_query", {"qery": "x"}, "did you mean query"),
        ("memory_query", {}, "query is missing; it takes: query, limit"),
        ("memory_query", {"query": "x", "limit": "many"}, "limit: expected int"),
        ("memory_query", {"query": {"a": 1}}, "query: expected str"),
        ("memory_query", {"query": "a", "q": "b"}, "given twice"),
        ("memory_query", {"query": "a", "project": "p", "everywhere": True}, "give one of"),
        ("memory_query", {"query": "a", "scopes": [{"workspace": "w"}]}, "project"),
        ("memory_read_page", {}, "exactly one of path and query"),
        ("memory_read_page", {"path": "a", "query": "b"}, "exactly one of path and query"),
        ("memory_read_page", {"path": "../../etc/passwd"}, "dot"),
        ("memory_write_page", {"body": "x", "tier": "eternal"}, "tier is one of"),
        ("memory_write_page", {"body": "x", "scope": "all"}, "global"),
        ("memory_write_page", {"body": "x", "expires_at": "soon"}, "2031-05-01"),
        ("memory_handoff_cancel", {"handoff_id": "nonsense"}, "not an id"),
    ],
)
def test_wrong_arguments_say_what_is_wrong(context: Context, name: str, arguments: dict[str, Any], says: str):
    with pytest.raises(errors.Invalid, match=says):
        call_tool(name, arguments, context)


def test_a_tool_that_is_not_there_names_those_that_are(context: Context):
    with pytest.raises(errors.NotFound, match="memory_query"):
        call_tool("memory_find", {}, context)


def test_without_a_scope_the_answer_names_the_candidates(context: Context):
    beta = event(session_key="t", cwd="/srv/beta")
    context.books.apply(RecordObservation(event=beta, source="test"), principal="ada")

    with pytest.raises(errors.NotFound, match="default/alpha"):
        context.call("memory_query", query="x")
    context.session_id = session_id_from("t")
    assert context.call("memory_write_page", path="a", body="b")["project"] == "beta"


def test_what_holds_everywhere_is_found_from_every_project(context: Context):
    written = context.call("memory_write_page", path="prefs", body="# Prefs\ntabs not spaces", scope="global")
    found = context.call("memory_query", query="tabs spaces")

    assert written["project"] == "_global"
    assert found["hits"] == []
    assert [hit["path"] for hit in found["global_scope_hits"]] == ["prefs.md"]


def test_a_recalled_page_that_is_sent_back_as_it_came_is_not_written(context: Context):
    context.call("memory_write_page", path="a", body="# Zebra\nstripes")
    body = context.call("memory_read_page", path="a")["body"]

    with pytest.raises(errors.Invalid, match="markers"):
        context.call("memory_write_page", path="b", body=body)


def test_a_recalled_page_with_something_added_is_refused_and_not_silently_cut(context: Context):
    context.call("memory_write_page", path="a", body="# Zebra\nstripes")
    body = context.call("memory_read_page", path="a")["body"]

    with pytest.raises(errors.Invalid, match="without the lines of the markers"):
        context.call("memory_write_page", path="a", body=body + "\nand hooves")
    assert "stripes" in context.call("memory_read_page", path="a")["body"]


def test_a_conflict_is_told_and_nothing_is_written_over(context: Context):
    context.call("memory_write_page", path="a", body="one")
    read = context.call("memory_read_page", path="a")
    context.call("memory_write_page", path="a", body="two")

    with pytest.raises(errors.Conflict, match="read it again"):
        context.call("memory_write_page", path="a", body="three", base_version=read["version_id"])
    assert "two" in context.call("memory_read_page", path="a")["body"]


def test_a_long_page_comes_in_parts_that_join_to_the_whole(context: Context):
    text = "".join(f"line {number}\n" for number in range(12_000))
    context.call("memory_write_page", path="long", title="Long", body=text)
    parts: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = context.call("memory_read_page", path="long", offset=offset)
        assert len(page["body"]) < limits.ANSWER_MAX_CHARS
        fenced = page["body"].split(recalled.NOTICE + "\n\n", 1)[1]
        parts.append(fenced[: fenced.rindex("\n<!-- memoryd")])
        offset = page.get("next_offset")

    assert len(parts) > 1
    assert "".join(parts) == text


@pytest.mark.parametrize(
    ("scope", "name", "is_allowed"),
    [
        ("read", "memory_query", True),
        ("read", "memory_write_page", False),
        ("read", "memory_handoff_accept", False),
        ("capture", "memory_query", False),
        ("pool", "memory_query", False),
        ("admin", "memory_write_page", True),
    ],
)
def test_a_token_does_what_its_scope_allows(context: Context, scope: str, name: str, is_allowed: bool):
    context.token_scope = scope
    arguments = {"memory_query": {"query": "x"}, "memory_write_page": {"body": "x", "path": "a"}}.get(
        name, {}
    )
    if is_allowed:
        context.call(name, **arguments)
    else:
        with pytest.raises(errors.Forbidden):
            context.call(name, **arguments)


def test_a_slow_writer_is_told_as_pending(context: Context):
    context.is_slow = True

    for name, arguments in (
        ("memory_write_page", {"body": "x", "path": "a"}),
        ("memory_delete_page", {"path": "a"}),
        ("memory_handoff_begin", {"summary": "x"}),
        ("memory_handoff_accept", {}),
    ):
        assert context.call(name, **arguments) == {"status": "pending", "command_id": "c"}


def test_a_handoff_is_left_and_taken_once(context: Context):
    left = context.call(
        "memory_handoff_begin", summary="halfway", next_steps='["test it", "ship it"]', to_agent="codex"
    )
    taken = context.call("memory_handoff_accept", agent="codex")["handoff"]

    assert taken["handoff_id"] == left["handoff_id"]
    assert "halfway" in taken["markdown"]
    assert "ship it" in taken["markdown"]
    assert "handoff" not in context.call("memory_handoff_accept", agent="codex")


def test_a_handoff_left_by_mistake_is_closed(context: Context):
    left = context.call("memory_handoff_begin", summary="oops")

    assert context.call("memory_handoff_cancel", id=left["handoff_id"])["cancelled"] is True
    assert "handoff" not in context.call("memory_handoff_accept")


def test_status_tells_of_parts_that_are_away(context: Context):
    assert context.call("memory_status")["status"] == "ok"
    context.vitals = lambda: {"broker": {"status": "away"}}  # type: ignore[method-assign]

    answer = context.call("memory_status")
    assert answer["status"] == "degraded"
    assert answer["counts"]["observations"] == 1
    assert answer["scope"] == "default/alpha"
