"""Links between pages, read out of a page's text. Pure: nothing here knows which pages there are.

A target is a path, never an identity: what a link means is what its text says at the moment of asking.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from memory_core import limits
from memory_core.domain import place
from memory_core.domain.markdown_code import without_code
from memory_core.domain.page import SUFFIX, PagePath, page_path
from memory_core.errors import Invalid

#: What a mark begins with: looking for these first costs a tenth of trying a mark at each character.
_MARK_BEGINS = re.compile(r"[\\!\[\]\n]")
#: What a link's text can begin with; in a masked text all code and comments are NUL characters.
_MARK = re.compile(
    r"""
      \\.                                              # an escaped character begins nothing
    | (?P<wiki>!?\[\[ (?P<inner>[^\[\]\n\0]{1,1000}+) \]\])
    | (?P<definition>(?:(?<=^)|(?<=^[ ])|(?<=^[ ]{2})|(?<=^[ ]{3}))\[(?!\^)[^\[\]\n\0]{1,200}+\]:)
    | (?P<opens>!?\[)
    | (?P<closes>\])
    | (?P<blank>\n[ \t]*\n)
    """,
    re.VERBOSE | re.MULTILINE,
)
_DESTINATION = r"""
    (?: < (?P<pointed>(?:[^<>\n\\\0]|\\.){0,1000}+) >
      | (?P<bare>(?:[^\s()<>\\\0]|\\.|\([^\s()\\\0]{0,200}\)){1,1000}+) )
"""
_TARGET = re.compile(
    rf"""\( \s{{0,20}} {_DESTINATION}
        (?: \s{{1,20}} (?: "(?:[^"\\]|\\.){{0,200}}" | '(?:[^'\\]|\\.){{0,200}}' | \((?:[^()\\]|\\.){{0,200}}\) ) )?
        \s{{0,20}} \)""",
    re.VERBOSE,
)
_DEFINED = re.compile(rf"[ \t]{{0,20}} {_DESTINATION} (?=\s|\Z)", re.VERBOSE)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
#: `project:path` or `workspace/project:path`.
_SCOPE = re.compile(r"(?:(?P<workspace>[\w.-]+)/)?(?P<project>[\w.-]+):(?![/\s])(?P<path>.+)", re.DOTALL)
#: Words before a colon that name a program and no project.
_SCHEMES = {
    "http",
    "https",
    "ftp",
    "file",
    "mailto",
    "tel",
    "data",
    "javascript",
    "obsidian",
    "urn",
    "vscode",
}
#: A suffix that says "another kind of file": `v1.2` is none.
_SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}\Z")


@dataclass(frozen=True, kw_only=True)
class PageLink:
    """One link: `body[start:end]` is its text, `target` where it points, in another project where `project` is set."""

    start: int
    end: int
    target: PagePath
    #: Names as projects have them; None: the page's own.
    workspace: str | None = None
    project: str | None = None
    heading: str | None = None
    label: str | None = None
    is_embed: bool = False


@dataclass(frozen=True, kw_only=True)
class _Target:
    path: PagePath
    heading: str | None
    workspace: str | None = None
    project: str | None = None


def links_in(body: str, page: PagePath) -> Iterator[PageLink]:
    """The links of `body`, the text of `page` without its front matter, in the order of their ends.

    Wikilinks `[[path]]`, `[[path#heading|label]]`, `![[path]]`, also with `\\|` in tables, are relative to the
    project's root (to the page's folder when they begin with `./` or `../`) and may name another
    project: `[[project:path]]`, `[[workspace/project:path]]`. Markdown links `[label](path)` and
    definitions `[label]: path` are relative to the page's folder, to the root when they begin with `/`.
    `.md` is appended where no suffix is. Not links: code, HTML comments, images, addresses with a scheme,
    other kinds of files, folders, and what would leave the project. Any text can be read; no further than
    `LINKS_READ_MAX_CHARS` and `LINK_MARKS_MAX` brackets.
    """
    if "[[" not in body and "](" not in body and "]:" not in body:
        return
    masked = without_code(body[: limits.LINKS_READ_MAX_CHARS])
    openers: list[re.Match[str]] = []
    marks = position = 0
    while marks < limits.LINK_MARKS_MAX and (mark := _next_mark(masked, position)):
        marks += 1
        position = mark.end()
        kind = mark.lastgroup
        if kind in ("wiki", "inner"):
            found = _wikilink(body, mark, page)
        elif kind == "definition":
            found, position = _definition(body, masked, mark, page)
        elif kind == "closes" and openers:
            opener = openers.pop()
            found, position = _inline(body, masked, opener, mark, page)
            if position != mark.end() and not opener.group().startswith("!"):
                openers = [other for other in openers if other.group().startswith("!")]
        else:
            found = None
            if kind == "opens":
                openers.append(mark)
            elif kind == "blank":
                openers.clear()
                position = mark.end() - 1
        if found is not None:
            yield found


def _next_mark(text: str, position: int) -> re.Match[str] | None:
    while begins := _MARK_BEGINS.search(text, position):
        if mark := _MARK.match(text, begins.start()):
            return mark
        position = begins.end()
    return None


def nearest(key: str, source: str, candidates: Iterable[str]) -> str | None:
    """Which page a link means that says `key` where no page has exactly that path; all are path keys.

    As Obsidian finds the page of a shortened link: one whose path ends with what the link says, rather in the folder
    of the page `source` or below it, then the one with the shortest path.
    """
    folder = source.rpartition("/")[0]
    ending = [path for path in candidates if path.endswith(f"/{key}")]
    return min(
        ending,
        key=lambda path: (not path.startswith(f"{folder}/" if folder else ""), len(path), path),
        default=None,
    )


def _wikilink(body: str, mark: re.Match[str], page: PagePath) -> PageLink | None:
    text, bar, label = mark.group("inner").partition("|")
    target = _wiki_target(text.removesuffix("\\") if bar else text, page)
    if target is None:
        return None
    label = body[mark.end() - 2 - len(label) : mark.end() - 2] if bar else ""
    return _link(mark.start(), mark.end(), target, label, is_embed=mark.group().startswith("!"))


def _inline(
    body: str, masked: str, opener: re.Match[str], closer: re.Match[str], page: PagePath
) -> tuple[PageLink | None, int]:
    """The link between two brackets, and where to go on: behind its destination if it has one."""
    found = _TARGET.match(masked, closer.end())
    if found is None:
        return None, closer.end()
    target = None if opener.group().startswith("!") else _markdown_target(found, page)
    if target is None:
        return None, found.end()
    return _link(opener.start(), found.end(), target, body[opener.end() : closer.start()]), found.end()


def _definition(body: str, masked: str, mark: re.Match[str], page: PagePath) -> tuple[PageLink | None, int]:
    found = _DEFINED.match(masked, mark.end())
    target = _markdown_target(found, page) if found else None
    if found is None or target is None:
        return None, mark.end()
    return _link(mark.start(), found.end(), target, body[mark.start() + 1 : mark.end() - 2]), found.end()


def _link(start: int, end: int, target: _Target, label: str, *, is_embed: bool = False) -> PageLink:
    return PageLink(
        start=start,
        end=end,
        target=target.path,
        workspace=target.workspace,
        project=target.project,
        heading=target.heading,
        label=" ".join(label.replace("\\|", "|").split()) or None,
        is_embed=is_embed,
    )


# --- targets -------------------------------------------------------------------------------------


def _wiki_target(text: str, page: PagePath) -> _Target | None:
    text = text.strip()
    scope = _SCOPE.fullmatch(text)
    if scope is None:
        if _SCHEME.match(text) and "//" in text:
            return None
        is_relative = text.startswith(("./", "../"))
        return _target(text, _folder(page) if is_relative else [])
    if scope.group("project").lower() in _SCHEMES and not scope.group("workspace"):
        return None
    workspace, project = scope.group("workspace") or "", scope.group("project")
    if project == place.GLOBAL_PROJECT:
        names = (place.DEFAULT_WORKSPACE, project)
    else:
        names = (place.name_from(workspace), place.name_from(project))
    target = _target(scope.group("path"), [])
    if target is None or not names[1]:
        return None
    return _Target(path=target.path, heading=target.heading, workspace=names[0] or None, project=names[1])


def _markdown_target(found: re.Match[str], page: PagePath) -> _Target | None:
    pointed = found.group("pointed")
    text = html.unescape(_ESCAPED.sub(r"\1", found.group("bare") if pointed is None else pointed))
    if _SCHEME.match(text) or text.startswith("//"):
        return None
    return _target(text, [] if text.startswith("/") else _folder(page), is_encoded=True)


def _target(text: str, folder: list[str], *, is_encoded: bool = False) -> _Target | None:
    """The page that a path means, seen from `folder`; None for what is none."""
    before, _, heading = text.partition("#")
    path = before.partition("?")[0]
    if is_encoded:
        path, heading = unquote(path), unquote(heading)
    path = path.strip()
    parts = _walk(path.removeprefix("/"), folder)
    if not parts:
        return None
    name = parts[-1]
    if _SUFFIX.search(name) and not name.casefold().endswith(SUFFIX):
        return None
    try:
        return _Target(path=page_path("/".join(parts)), heading=heading.strip() or None)
    except Invalid:
        return None


def _walk(path: str, folder: list[str]) -> list[str]:
    """The parts of `path` seen from `folder`; none for a path that names no file or leaves the root."""
    if not path or path.endswith("/"):
        return []
    parts = list(folder)
    for part in path.split("/"):
        if part == "..":
            if not parts:
                return []
            parts.pop()
        elif part != ".":
            parts.append(part)
    return parts if path.rsplit("/", 1)[-1] not in (".", "..") else []


def _folder(page: PagePath) -> list[str]:
    return page.path.split("/")[:-1]
