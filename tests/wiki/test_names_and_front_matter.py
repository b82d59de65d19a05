"""Paths never leave their project, names never collide or vanish, a person's front matter stays as it is."""

from __future__ import annotations

import unicodedata
from unittest.mock import patch

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.domain.front_matter import WRITTEN_KEYS, PageFacts, facts_from
from memory_core.domain.page import Tier, clean_title, name_key, page_path, path_for_title, slug, title_of
from memory_core.domain.project import Project
from memory_core.errors import Invalid
from memory_core.wiki import front_matter, yaml_head
from memory_core.wiki.layout import directory_name, file_of, parts_of

PROJECT = Project(id=b"1" * 16, number=1, name="alpha", workspace="default")


@given(st.text())
def test_any_text_is_a_safe_path_or_invalid(text: str):
    try:
        path = page_path(text)
    except Invalid:
        return
    parts = parts_of(file_of(PROJECT, path))
    assert parts[:2] == ["default", "alpha"]
    assert not any(part.startswith(".") or len(part.encode()) > 255 for part in parts)
    assert "\\" not in path.path
    assert unicodedata.is_normalized("NFC", path.path)
    assert path.path.lower().endswith(".md")
    assert page_path(path.path) == path


@given(st.text())
def test_keys_do_not_depend_on_case_or_normal_form(text: str):
    assert name_key(name_key(text)) == name_key(text)
    assert name_key(unicodedata.normalize("NFD", text)) == name_key(text)
    assert name_key(text.casefold()) == name_key(text) or "\u0345" in unicodedata.normalize("NFD", text)


@pytest.mark.parametrize(
    "text",
    ["", " ", "/a", "a//b", "a/", "../a", "a/../b", "a/./b", ".a", "a/.b/c", "a\\b", "C:a", "a\x00b", "a\nb", "con",
     "nul.txt", "a/aux/b", "a .md/b", "a.md/b.md", "a /b", " /b", "a./b", "\u202egpj.md", "\ud800", "x" * 300, "a/" * 200 + "b",
     "-rf", "a/--output=b", "git~1/config", "a:b/c", "a/x.md:hidden", "a<b>", "a|b", "a?", "a*", 'a"b', "nul .txt", "CLOCK$",
     "a\u200bb"],
)  # fmt: skip
def test_a_path_that_could_do_harm_is_invalid(text: str):
    with pytest.raises(Invalid):
        page_path(text)


@given(st.text(max_size=400))
def test_every_title_gives_a_path_that_can_be_used(title: str):
    path = path_for_title(title)

    assert page_path(path.path) == path
    assert path.stem


def _same_title(text: str) -> str:
    """What titles of one page have in common: case, normal form, spaces against hyphens."""
    return "-".join(part for part in name_key(text).replace("_", " ").replace("-", " ").split() if part)


@given(st.text(max_size=60), st.text(max_size=60))
def test_other_titles_never_share_a_name(one: str, other: str):
    assert (slug(one) == slug(other)) == (_same_title(one) == _same_title(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("\U0001f680", "\U0001f680\U0001f680"),
        ("a/b: c", "a b c"),
        ("x" * 300, "x" * 301),
        ("CON", "con!"),
        ("...", ""),
    ],
)
def test_titles_that_lose_what_tells_them_apart_stay_apart(one: str, other: str):
    assert slug(one) != slug(other)


def test_titles_in_any_script_stay_readable():
    assert slug("React \ud55c\uae00 Guide") == "react-\ud55c\uae00-guide"
    assert slug("Site Roadmap") == slug("site-roadmap") == "site-roadmap"


@given(st.text(min_size=1, max_size=80), st.text(min_size=1, max_size=80))
def test_directories_of_other_names_are_other_directories(one: str, other: str):
    for name in (directory_name(one), directory_name(other)):
        assert parts_of(name) == [name]
        assert not name.startswith(".")
    if name_key(one) != name_key(other):
        assert name_key(directory_name(one)) != name_key(directory_name(other))


@given(st.text())
def test_any_file_at_all_is_read_without_an_error(text: str):
    for content in (text, f"---\n{text}\n---\nbody"):
        read = front_matter.read(content)
        assert 0 <= read.body_start <= len(content)
        facts_from(read.values)


@given(
    st.text(max_size=120).map(clean_title),
    st.lists(
        st.text(min_size=1, max_size=30).map(clean_title).filter(lambda tag: tag.strip(" #")), max_size=5
    ),
    st.booleans(),
    st.integers(min_value=0, max_value=4_000_000_000_000_000) | st.none(),
    st.text(),
)
def test_what_is_written_is_read_back(
    title: str, tags: list[str], pinned: bool, expires_at: int | None, body: str
):
    facts, _ = facts_from({"title": title, "tags": tags})
    facts = PageFacts(
        title=facts.title, tags=facts.tags, tier=Tier.SEMANTIC, pinned=pinned or None, expires_at=expires_at
    )
    content, body_start = front_matter.render(facts, body)
    read = front_matter.read(content)

    assert read.problem is None
    assert content[body_start:] == body
    assert read.body_start == body_start
    again, problems = facts_from(read.values)
    assert problems == ()
    assert (again.title, again.tags or (), again.pinned, again.expires_at) == (
        facts.title,
        facts.tags or (),
        facts.pinned,
        facts.expires_at,
    )


_HEAD = 'aliases:\n  - one\n  - two # mine\n# a comment\ntitle: "Old"\ncssclass: wide\ntags:\n- x\n- y\n"quoted key": {a: [1, 2]}\n'


def test_unknown_keys_comments_and_order_stay():
    content, _ = front_matter.render(
        PageFacts(title="New", tier=Tier.SEMANTIC), "body", head=front_matter.read(f"---\n{_HEAD}---\n")
    )

    assert content == (
        "---\naliases:\n  - one\n  - two # mine\n# a comment\ntitle: New\ncssclass: wide\n"
        '"quoted key": {a: [1, 2]}\ntier: semantic\n---\nbody'
    )


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=5), inner, max_size=3),
    max_leaves=8,
), max_size=6))  # fmt: skip
def test_a_rewrite_keeps_the_values_of_every_unknown_key(values: dict[str, object]):
    unknown = {key: value for key, value in values.items() if key not in WRITTEN_KEYS}
    head = yaml.safe_dump(unknown, allow_unicode=True, sort_keys=False)
    if front_matter.read(f"---\n{head}---\n").problem:
        return
    content, _ = front_matter.render(
        PageFacts(title="T", tier=Tier.WORKING),
        "",
        head=front_matter.read(f"---\n{head if unknown else ''}---\n"),
    )

    kept = {key: value for key, value in front_matter.read(content).values.items() if key in unknown}
    assert kept == front_matter.read(f"---\n{head}---\n").values


@pytest.mark.parametrize(
    ("head", "says"),
    [
        ("a: &x 1\nb: *x\n", "anchors"),
        ("a: !!python/object/apply:os.system ['true']\n", "tags"),
        ("a: !!str 1\n", "tags"),
        ("- a\n- b\n", "key"),
        ("a: [1\n", "cannot be read"),
        ("a: " + "x" * 20_000 + "\n", "16 KB"),
        ("a: " + "[" * 3_000 + "\n", "cannot be read"),
    ],
)
def test_front_matter_that_could_do_harm_is_not_taken(head: str, says: str):
    read = front_matter.read(f"---\n{head}---\nbody")

    assert read.values == {}
    assert says in (read.problem or "")


PIECES = (
    *(
        "title: ",
        "tags: ",
        "x: ",
        "y: ",
        "word",
        "[a, b]",
        "[",
        "]",
        "{",
        "}",
        "- ",
        "? ",
        ": ",
        "\n",
        "\n  ",
        "\u2028",
    ),
    *(
        "&a ",
        "*a",
        "!x ",
        "<<: ",
        "<<",
        "'",
        '"',
        "# c",
        "|",
        "null",
        "12",
        "\x85",
        "\r\n",
        "\t",
        "- - - - ",
        "[[[[[[[[",
    ),
)


@settings(max_examples=300)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_a_front_matter_says_the_same_whether_or_not_it_is_gone_through_for_what_is_refused(text: str):
    def parsed() -> yaml_head.Head | None:
        try:
            return yaml_head.parse(text)
        except Invalid:
            return None

    quickly = parsed()
    with patch.object(yaml_head, "_is_plain", lambda _text: False):
        assert repr(parsed()) == repr(quickly)


@pytest.mark.parametrize(
    "nested",
    ["a: " + "[" * 32 + "x" + "]" * 32, "a:\n" + "- " * 32 + "x", "a: " + "{b: " * 32 + "x" + "}" * 32],
)
def test_a_front_matter_that_is_nested_too_deeply_is_not_taken(nested: str):
    assert "nested deeper" in (front_matter.read(f"---\n{nested}\n---\n").problem or "")


def test_a_heading_in_fenced_code_is_no_title():
    assert title_of("```\n# not this\n```\n# This *one* #\n") == "This *one*"
