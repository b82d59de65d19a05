"""A page's Markdown as HTML for a browser. What is stored stays text: no HTML, no script, nothing is loaded from elsewhere.

Links lead to pages, or out by http, https and mailto; an image is a link to itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup

from memory_core import limits
from memory_core.domain.links import PageLink, links_in
from memory_core.domain.page import PagePath

_WIKILINK = re.compile(r"!?\[\[[^\[\]\n]{1,1000}\]\]")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_ALLOWED = ("http:", "https:", "mailto:")
_NOT_IN_ANCHOR = re.compile(r"[^\w]+")
#: A link out of the wiki tells the other side nothing.
_OUT = {"rel": "noopener noreferrer nofollow", "class": "out"}

#: The address of a page that a link means, and whether there is such a page.
Locate = Callable[[PageLink], tuple[str, bool]]


class Markdown:
    """The renderer; made once, used by all threads."""

    def __init__(self) -> None:
        parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
        parser.validateLink = _is_allowed  # type: ignore[method-assign]
        parser.inline.ruler.before("link", "wikilink", _wikilink)
        parser.core.ruler.push("addresses", _addresses)
        parser.add_render_rule("image", _image)
        self._parser = parser

    def html(self, text: str, page: PagePath, title: str, locate: Locate) -> Markup:
        """`text` is the page's body; a first heading that only says the title again is left out. A text that would
        take long to read as Markdown is shown as it is."""
        if len(text) > limits.MARKDOWN_MAX_CHARS or text.count("[") > limits.MARKDOWN_BRACKETS_MAX:
            return Markup('<pre class="text">{}</pre>').format(text)
        env = {"page": page, "locate": locate}
        tokens = _without_title(self._parser.parse(text, env), title)
        rendered = self._parser.renderer.render(tokens, self._parser.options, env)
        return Markup(rendered)  # noqa: S704 - the renderer escapes all text


def anchor(heading: str) -> str:
    """The id of a heading: its own space of names, so that no text takes another element's."""
    return "h-" + _NOT_IN_ANCHOR.sub("-", heading.casefold()).strip("-")


def _is_allowed(address: str) -> bool:
    scheme = _SCHEME.match(address.strip())
    if scheme is None:
        return not address.strip().startswith(("//", "\\", "/\\"))
    return scheme.group().lower() in _ALLOWED


def _wikilink(state: StateInline, silent: bool) -> bool:
    mark = _WIKILINK.match(state.src, state.pos, state.posMax)
    link = next(links_in(mark.group(), state.env["page"]), None) if mark else None
    if mark is None or link is None:
        return False
    if not silent:
        opening = state.push("link_open", "a", 1)
        opening.attrs = _to_page(link, state.env)
        opening.meta = {"is_done": True}
        state.push("text", "", 0).content = link.label or _name(link)
        state.push("link_close", "a", -1)
    state.pos = mark.end()
    return True


def _name(link: PageLink) -> str:
    project = f"{link.project}: " if link.project else ""
    heading = f" › {link.heading}" if link.heading else ""
    return f"{project}{link.target.path.removesuffix('.md')}{heading}"


def _to_page(link: PageLink, env: Any) -> dict[str, str | int | float]:
    address, is_there = env["locate"](link)
    if link.heading:
        address += f"#{anchor(link.heading)}"
    return (
        {"href": address} if is_there else {"href": address, "class": "missing", "title": "no such page yet"}
    )


def _addresses(state: StateCore) -> None:
    """Every link leads to a page, to a heading, or out; what leads nowhere is no link."""
    for block, following in pairwise(state.tokens):
        if block.type == "heading_open":
            block.attrSet("id", anchor(following.content))
    for block in state.tokens:
        for index, token in enumerate(block.children or []):
            if token.type == "link_open" and not token.meta.get("is_done"):
                _address(token, index, block.children or [], state.env)


def _address(token: Token, index: int, siblings: Sequence[Token], env: Any) -> None:
    href = str(token.attrs.get("href", ""))
    if _SCHEME.match(href):
        token.attrs = {"href": href, **_OUT}
        return
    if href.startswith("#"):
        token.attrs = {"href": f"#{anchor(href[1:])}"}
        return
    link = next(links_in(f"[x](<{href}>)", env["page"]), None)
    if link is not None:
        token.attrs = _to_page(link, env)
        return
    token.tag, token.attrs = "span", {}
    closing = next(
        other for other in siblings[index:] if other.type == "link_close" and other.level == token.level
    )
    closing.tag = "span"


def _image(_: Any, tokens: Sequence[Token], index: int, __: Any, ___: Any) -> str:
    """Not loaded: a picture from elsewhere would tell its server who reads."""
    token = tokens[index]
    source, said = str(token.attrs.get("src", "")), token.content or "image"
    if not source.lower().startswith(("http:", "https:")):
        return str(Markup("<span class='image'>{}</span>").format(said))
    return str(Markup("<a class='out image' rel='{}' href='{}'>{}</a>").format(_OUT["rel"], source, said))


def _without_title(tokens: list[Token], title: str) -> list[Token]:
    is_title = len(tokens) > 2 and tokens[0].tag == "h1" and tokens[1].content.strip() == title
    return tokens[3:] if is_title else tokens
