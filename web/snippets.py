"""Snippets of hits for people: all of it is text, but for the marks around what was found."""

from __future__ import annotations

import re

from markupsafe import Markup

from memory_core.domain import recalled

_MARKED = re.compile("<mark>(.*?)</mark>")


def marked(snippet: str) -> Markup:
    """A fenced snippet as HTML: whatever is stored stays text."""
    text = " ".join(recalled.unfenced(snippet).split())
    pieces = enumerate(_MARKED.split(text))
    return Markup("").join(
        Markup("<mark>{}</mark>").format(piece) if index % 2 else piece for index, piece in pieces
    )
