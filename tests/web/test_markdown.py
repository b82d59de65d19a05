"""A page's Markdown in a browser: links that lead somewhere, and nothing that runs."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import limits
from memory_core.domain.links import PageLink
from memory_core.domain.page import page_path
from tests.web.markup import Elements, dangers
from web.markdown import Markdown

MARKDOWN = Markdown()
ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<a href='javascript:alert(1)'>x</a>",
    "<!-- --><iframe srcdoc='<script>alert(1)</script>'>",
    "<div style='background:url(javascript:alert(1))'>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](javascript&#58;alert(1))",
    "[x](javascript&colon;alert(1))",
    "[x](&#x6A;avascript:alert(1))",
    "[x](<java\tscript:alert(1)>)",
    "[x]( \x01javascript:alert(1))",
    "[x](vbscript:msgbox(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](file:///etc/passwd)",
    "[x](vscode://file/etc/passwd)",
    "<ssh://a.example>",
    "[x](//evil.example/x)",
    "[x](/\\evil.example)",
    '[x](http://a.example "\\" onmouseover=alert(1) ")',
    '[x](http://a.example/" onclick=alert(1) x=")',
    "<javascript:alert(1)>",
    "<data:text/html,x>",
    "[x]\n\n[x]: javascript:alert(1)",
    "![x](javascript:alert(1))",
    "![x](data:image/svg+xml,<svg onload=alert(1)>)",
    '![" onerror="alert(1)](http://a.example/x.png)',
    "![x](http://a.example/x.png' onerror='alert(1))",
    '```" onload="alert(1)\nx\n```',
    "[[a|<script>alert(1)</script>]]",
    '[[a#" onclick="alert(1)]]',
    "[[javascript:alert(1)]]",
    "![[x' onclick='alert(1)]]",
    "# <script>alert(1)</script>",
    '# x" onclick="alert(1)',
    "| a |\n|---|\n| <script>alert(1)</script> |",
    "</article></main><script>alert(1)</script>",
]


def html(text: str, *, title: str = "T", missing: str = "") -> str:
    def locate(link: PageLink) -> tuple[str, bool]:
        return f"/ui/{link.project or 'own'}/{link.target.path}", link.target.path != missing

    return str(MARKDOWN.html(text, page_path("notes/a.md"), title, locate))


def hrefs(text: str) -> list[str]:
    return [attrs["href"] for tag, attrs in Elements(html(text)).found if tag == "a" and "href" in attrs]


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_stored_becomes_active(attack: str) -> None:
    assert dangers(html(attack)) == []
    assert dangers(html(f"- > *{attack}*\n")) == []


@given(
    st.lists(st.sampled_from([*ATTACKS, "[", "](", ")", "[[", "]]", "`", "<", '"', "\n\n", "|"]), max_size=6)
)
def test_no_mixture_becomes_active(parts: list[str]) -> None:
    assert dangers(html("".join(parts))) == []


@given(st.text(max_size=200))
def test_any_text_can_be_shown(text: str) -> None:
    assert dangers(html(text)) == []


def test_the_check_itself_finds_what_is_active() -> None:
    for text in ("<script>", "<a href=' java\nscript:x'>", "<p onclick=x>", "<img src='data:x'>"):
        assert dangers(text)


def test_links_lead_to_pages_of_this_and_of_other_projects() -> None:
    text = "[[x]] [[default/q:plan|the plan]] [b](b.md) [c](/c) [[x#A head]]"
    assert hrefs(text) == [
        "/ui/own/x.md",
        "/ui/q/plan.md",
        "/ui/own/notes/b.md",
        "/ui/own/c.md",
        "/ui/own/x.md#h-a-head",
    ]
    assert "the plan" in html(text)


def test_a_link_in_a_table_may_carry_an_escaped_bar() -> None:
    assert hrefs("| a |\n|---|\n| [[x\\|y]] |") == ["/ui/own/x.md"]


@pytest.mark.parametrize("code", ["`[[x]]`", "```\n[[x]]\n```", "    [[x]]", "\\[[x]]"])
def test_nothing_in_code_is_a_link(code: str) -> None:
    assert hrefs(code) == []
    assert "[[x]]" in Elements(html(code)).text


def test_a_page_that_is_not_there_looks_different() -> None:
    assert 'class="missing"' in html("[[x]]", missing="x.md")
    assert 'class="missing"' not in html("[[x]]")


def test_pictures_are_links_and_are_not_loaded() -> None:
    assert hrefs("![a cat](https://a.example/cat.png)") == ["https://a.example/cat.png"]
    assert "<img" not in html("![a cat](https://a.example/cat.png) ![b](b.png)")


def test_a_link_out_tells_nobody_where_it_was() -> None:
    assert 'rel="noopener noreferrer nofollow"' in html("[x](https://a.example)")


def test_the_heading_that_repeats_the_title_is_left_out() -> None:
    assert "<h1" not in html("# T\n\nbody")
    assert "<h1" in html("# Other\n\nbody")


@pytest.mark.parametrize("part", ["[", "[a](", "![", "*a _b ", "[[a]]", "<", "- a\n", "> ", "`", "a|"])
def test_a_text_made_to_be_slow_is_shown_as_it_is(part: str) -> None:
    text = part * (limits.PAGE_BODY_MAX_BYTES // len(part))
    begun = time.process_time()
    shown = html(text)
    # Far above what it takes, far below what the renderer would.
    assert time.process_time() - begun < 5
    assert shown.startswith('<pre class="text">')
