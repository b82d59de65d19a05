"""A labelled set: documents that were said in sessions, and questions with the documents that answer them.

`corpus.jsonl`: id, session, scope (one project each), ts (ISO, may be null), speaker (a name, `user` or `assistant`; may be
null), text. `queries.jsonl`: id, scope, category, text, rel_docs, rel_sessions.
"""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

#: The category of a question that is words out of a document.
QUOTATION = "quotation"
_QUOTED_WORDS = 5


@dataclass(frozen=True, kw_only=True)
class LabelledSet:
    name: str
    documents: list[dict[str, Any]]
    queries: list[dict[str, Any]]

    @property
    def sessions(self) -> dict[str, str]:
        """The session of each document."""
        return {document["id"]: document["session"] for document in self.documents}


def load(directory: Path) -> LabelledSet:
    """Raises `FileNotFoundError` that names the missing file."""
    return LabelledSet(
        name="/".join(directory.resolve().parts[-2:]),
        documents=_lines(directory / "corpus.jsonl"),
        queries=_lines(directory / "queries.jsonl"),
    )


def with_quotations(labelled: LabelledSet, count: int) -> LabelledSet:
    """`count` more questions, of category `QUOTATION`: some words in a row of a document, which answers, as does each that has them too.

    The same set gives the same questions.
    """
    chooser = random.Random(labelled.name)
    quoted = [one for one in labelled.documents if len(one["text"].split()) > _QUOTED_WORDS]
    added: list[dict[str, Any]] = []
    for number, document in enumerate(chooser.sample(quoted, min(count, len(quoted)))):
        words = document["text"].split()
        start = chooser.randrange(len(words) - _QUOTED_WORDS)
        text = " ".join(words[start : start + _QUOTED_WORDS])
        holding = [
            one
            for one in labelled.documents
            if one["scope"] == document["scope"] and text in " ".join(one["text"].split())
        ]
        added.append(
            {
                "id": f"quotation-{number}",
                "scope": document["scope"],
                "category": QUOTATION,
                "text": text,
                "rel_docs": [one["id"] for one in holding],
                "rel_sessions": sorted({one["session"] for one in holding}),
            }
        )
    return replace(labelled, queries=[*labelled.queries, *added])


def _lines(path: Path) -> list[dict[str, Any]]:
    packed = path.with_name(f"{path.name}.gz")
    text = path.read_text() if path.exists() else gzip.decompress(packed.read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines() if line.strip()]
