"""Patterns over paths: what crosses a directory and what does not, and that nothing is ever matched by accident."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.domain.path_glob import PathGlob, plain
from memory_core.errors import Invalid

ROOT, HOME = "/srv/app", "/home/ada"
PARTS = st.text(alphabet="ab.*?é", min_size=1, max_size=4).filter(
    lambda t: "***" not in t and t not in (".", "..")
)
PATTERNS = (
    st.lists(PARTS | st.just("**"), min_size=1, max_size=5).map("/".join).filter(lambda t: "***" not in t)
)
PATHS = st.lists(st.text(alphabet="ab.é", min_size=1, max_size=3).filter(lambda t: t.strip(".")), max_size=5)


def glob(pattern: str) -> PathGlob:
    return PathGlob(pattern, root=ROOT, home=HOME)


def hits(pattern: str, path: str) -> bool:
    return glob(pattern).matches(plain(path, cwd=ROOT, home=HOME))


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("secrets/**", "secrets"),
        ("secrets/**", "secrets/a/b.pem"),
        ("secrets/", "secrets/a"),
        ("./*.pem", "key.pem"),
        ("**/.env", ".env"),
        ("**/.env", "a/b/.env"),
        ("a/**/b", "a/b"),
        ("a/**/**/b", "a/x/y/b"),
        ("~/.ssh/**", "/home/ada/.ssh/id"),
        ("~/.ssh/**", "~/.ssh/id"),
        ("/etc/ma?k", "/etc/mask"),
        ("/**", "/anything/at/all"),
        ("*.pem", "x/../key.pem"),
        ("é/*", "e\u0301/x"),
        (r"C:\Src\*", "c:/src/Plan.txt"),
    ],
)
def test_these_match(pattern: str, path: str):
    assert hits(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.pem", "a/key.pem"),
        ("secrets/**", "secretsx"),
        ("secrets/*", "secrets/a/b"),
        ("a?b", "a/b"),
        ("key.pem", "keyxpem"),
        ("KEY", "key"),
        ("~/.ssh/**", "/home/bob/.ssh/id"),
        ("/etc/**", "/srv/etc/x"),
        ("**/x", "/elsewhere/x"),
        ("**/x", "ax"),
        ("a/**/x", "a/bx"),
    ],
)
def test_these_do_not(pattern: str, path: str):
    assert not hits(pattern, path)


@pytest.mark.parametrize(
    "pattern",
    [
        *("", " ", "!a", "a{b}", "[a]", "(a)", "a|b", "^a", "$HOME/a", "%A%", "a/***/b", "../a", "a/../b"),
        *("~bob/x", "C:a", "x" * 1_025, "a\x00b"),
    ],
)
def test_a_pattern_that_could_mean_something_else_is_refused(pattern: str):
    with pytest.raises(Invalid):
        glob(pattern)


def test_wildcards_in_the_name_of_the_root_are_plain_characters():
    odd = PathGlob("*.pem", root="/srv/a*b", home="")
    assert odd.matches("/srv/a*b/key.pem")
    assert not odd.matches("/srv/axb/key.pem")


@given(PATTERNS, PATHS)
def test_a_pattern_means_what_the_same_regular_expression_means(pattern: str, parts: list[str]):
    path = plain("/".join(parts) or ".", cwd=ROOT)
    regex = re.escape(ROOT) + _translated("/" + _collapsed(pattern))
    assert glob(pattern).matches(path) is (re.fullmatch(regex, path, re.DOTALL) is not None)


def _collapsed(pattern: str) -> str:
    while re.search(r"(^|/)\*\*/\*\*(/|$)", pattern):
        pattern = re.sub(r"(^|/)\*\*/\*\*(/|$)", r"\1**\2", pattern)
    return pattern


def _translated(text: str) -> str:
    out, at = "", 0
    while at < len(text):
        if text.startswith("/**/", at):
            out, at = out + "/(?:.*/)?", at + 4
        elif text[at:] == "/**":
            out, at = out + "(?:/.*)?", at + 3
        elif text.startswith("**", at):
            out, at = out + ".*", at + 2
        else:
            out += {"*": "[^/]*", "?": "[^/]"}.get(text[at], re.escape(text[at]))
            at += 1
    return out


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_text_breaks_it(pattern: str, path: str):
    try:
        hits(pattern, path)
    except Invalid:
        pass


@given(st.text(alphabet="ab./~", max_size=30))
def test_a_plain_path_is_absolute_and_plain_again(path: str):
    try:
        made = plain(path, cwd="/w", home=HOME)
    except Invalid:
        return
    assert made.startswith("/")
    assert not {"", ".", ".."} & set(made.split("/")[1:]) or made == "/"
    assert plain(made, cwd="/other") == made
