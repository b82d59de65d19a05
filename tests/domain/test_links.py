"""Links are read as Obsidian and CommonMark show them, wherever they stand, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import limits
from memory_core.domain.links import PageLink, links_in
from memory_core.domain.page import page_path
from memory_core.errors import Invalid

PAGE = page_path("notes/here.md")


def found(body: str) -> list[PageLink]:
    return list(links_in(body, PAGE))


def paths(body: str) -> list[str]:
    return [link.target.path for link in found(body)]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("[[decisions/queue]]", "decisions/queue.md"),
        ("[[decisions/queue.md]]", "decisions/queue.md"),
        ("[[/decisions/queue]]", "decisions/queue.md"),
        ("[[ decisions/queue ]]", "decisions/queue.md"),
        ("[[./there]]", "notes/there.md"),
        ("[[../decisions/queue]]", "decisions/queue.md"),
        ("[[releases/v1.2]]", "releases/v1.2.md"),
        ("[[R\u00e9sum\u00e9 caf\u00e9]]", "R\u00e9sum\u00e9 caf\u00e9.md"),
        ("[[Re\u0301sume\u0301]]", "R\u00e9sum\u00e9.md"),
        ("![[decisions/queue]]", "decisions/queue.md"),
        ("[there](there.md)", "notes/there.md"),
        ("[there](there)", "notes/there.md"),
        ("[there](../decisions/queue.md)", "decisions/queue.md"),
        ("[there](/decisions/queue.md)", "decisions/queue.md"),
        ("[there](./a/./b.md)", "notes/a/b.md"),
        ("[there](<with space.md>)", "notes/with space.md"),
        ("[there](with%20space.md)", "notes/with space.md"),
        ("[there](caf%C3%A9.md)", "notes/caf\u00e9.md"),
        ('[there](there.md "a title")', "notes/there.md"),
        ("[there](<there.md> 'a title')", "notes/there.md"),
        ("[there](there.md (a title))", "notes/there.md"),
        ("[there](a(b).md)", "notes/a(b).md"),
        (r"[there](a\(b.md)", "notes/a(b.md"),
        ("[there](a&amp;b.md)", "notes/a&b.md"),
        ("[there](there.md?raw=1)", "notes/there.md"),
        ("[a [nested] label](there.md)", "notes/there.md"),
        ("[![an image](image.png)](there.md)", "notes/there.md"),
        ("[label]: there.md", "notes/there.md"),
        ("[label]: <with space.md> 'a title'", "notes/with space.md"),
    ],
)
def test_each_form_points_where_a_reader_would_go(text: str, path: str):
    assert paths(text) == [path]
    assert paths(f"before {text} after" if not text.startswith("[label]:") else f"before\n\n{text}\n") == [
        path
    ]


@pytest.mark.parametrize(
    "text",
    [
        "[[#only a heading]]", "[there](#heading)", "[[]]", "[[|label]]", "[there]()",
        "[[https://example.org/page]]", "[there](https://example.org/page)", "[there](//example.org/page)",
        "[there](mailto:ada@example.org)", "[[mailto:ada@example.org]]", "[there](C:/windows.md)",
        "[[image.png]]", "![[image.png]]", "[there](paper.pdf)", "![an image](there.md)",
        "[[../../outside]]", "[there](../../outside.md)", "[there](folder/)", "[[folder/]]", "[there](..)",
        r"\[[there]]", r"\[there](there.md)", "[there] (there.md)", "[[the\nre]]", "[[.hidden]]", "[[con]]",
        "[^1]: there.md", "[ ] a task (there.md)",
    ],
)  # fmt: skip
def test_what_is_no_link_to_a_page_is_none(text: str):
    assert paths(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "`[[no]]`",
        "``[[no]] ` [[no]]``",
        "a `code\nspan [[no]]` goes on",
        "```\n[[no]]\n```",
        "~~~md\n[[no]]\n```\n[[no]]\n~~~",
        "````\n```\n[[no]]\n```\n````",
        "```\n[[no]]",
        "    [[no]]",
        "text\n\n\t[[no]]\n\n    [[no]]",
        "- item\n\n      [[no]]",
        "- ```\n  [[no]]\n  ```",
        "> ```\n> [[no]]\n> ```",
        "<!-- [[no]] -->",
        "text <!-- [[no]]\n[[no]] --> text",
        "<!--\n```\n[[no]]\n-->",
        "<!-- [[no]]",
        "`[no](no.md)`",
    ],
)
def test_nothing_in_code_or_comments_is_a_link(text: str):
    assert paths(text) == []
    assert paths(f"[[before]]\n\n{text}") == ["before.md"]


@pytest.mark.parametrize(
    "text",
    [
        "```\ncode\n```\n[[there]]",
        "`code` [[there]] `code`",
        "a lone ` tick [[there]]",
        "a ` tick\n\n[[there]] and a ` tick",
        "text\n    [[there]] goes on the paragraph",
        "- item\n\n    [[there]] is in the item",
        "1. item\n   [[there]]",
        "> [[there]]",
        "> ```\n> code\n[[there]]",
        "# [[there]]",
        "<!-- comment --> \n\n[[there]]",
        r"\`[[there]]\`",
        "``` not ` a fence\n[[there]]",
        "```\r\ncode\r\n```\r\n[[there]]",
    ],
)
def test_beside_code_links_are_links(text: str):
    assert paths(text) == ["there.md"]


def test_a_link_names_heading_label_and_kind():
    (link,) = found("![[there#A heading|what *it* says]]")

    assert (link.heading, link.label, link.is_embed) == ("A heading", "what *it* says", True)
    assert found("[`code` label](there.md#a%20b)")[0].label == "`code` label"
    assert found("[`code` label](there.md#a%20b)")[0].heading == "a b"


def test_a_pipe_that_a_table_needs_escaped_is_a_pipe():
    links = found("| a | b |\n|---|---|\n| [[there\\|label]] | [[other#h\\|more]] |\n")

    assert [(link.target.path, link.label) for link in links] == [("there.md", "label"), ("other.md", "more")]


@pytest.mark.parametrize(
    ("text", "workspace", "project"),
    [
        ("[[beta:notes/a]]", None, "beta"),
        ("[[Work/Beta:notes/a]]", "work", "beta"),
        ("[[beta:notes/a#h|l]]", None, "beta"),
        ("[[my.project_1-x:notes/a]]", None, "my.project_1-x"),
        ("[[_global:notes/a]]", "default", "_global"),
    ],
)
def test_a_wikilink_may_name_another_project(text: str, workspace: str | None, project: str):
    (link,) = found(text)

    assert (link.workspace, link.project, link.target.path) == (workspace, project, "notes/a.md")


def test_a_markdown_link_never_leaves_its_project():
    assert paths("[there](beta:notes/a.md)") == []


def test_links_inside_a_links_label_win_over_it():
    assert paths("[a [b](inner.md) c](outer.md)") == ["notes/inner.md"]


PIECES = ["[[", "]]", "[", "](", ")", "|", "\\", "`", "```", "\n", "\n\n", "    ", "<!--", "-->", "<", ">", "a/b", "../", "#", ":",
          "beta:", "%20", "!", '"', "~~~", "- ", "\t", "]: ", "&amp;", "\u00e9", "\0", "\r\n", "?"]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=60).map("".join))
def test_any_text_is_read_and_every_span_is_its_link(body: str):
    last = 0
    for link in found(body):
        text = body[link.start : link.end]
        assert 0 <= link.start < link.end <= len(body)
        assert last <= link.end
        last = link.end
        assert text.startswith(("[", "![["))
        assert page_path(link.target.path) == link.target
        alone = found(text)
        assert [(one.target, one.workspace, one.project) for one in alone if one.end == len(text)] == [
            (link.target, link.workspace, link.project)
        ]


@given(
    st.text(
        alphabet=st.characters(blacklist_characters="[]|#?:\n\0\\", blacklist_categories=("Cs",)),
        min_size=1,
        max_size=40,
    )
)
def test_a_wikilink_to_any_page_that_can_be_finds_it(name: str):
    try:
        page = page_path(f"notes/{name}.md")
    except Invalid:
        return
    if "/" in name or "`" in name or "<!--" in name:
        return
    assert paths(f"[[notes/{name}.md]]") == [page.path]


def test_no_more_is_read_than_the_limits_say():
    assert len(found("[[a]] " * (limits.LINK_MARKS_MAX * 2))) <= limits.LINK_MARKS_MAX
    assert found("x" * limits.LINKS_READ_MAX_CHARS + "[[a]]") == []
