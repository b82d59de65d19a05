"""A labelled set: documents that were said in sessions, and questions with the documents that answer them.

`corpus.jsonl`: id, session, scope (one project each), ts (ISO, may be null), speaker (a name, `user` or `assistant`; may be
null), text. `queries.jsonl`: id, scope, category, text, rel_docs, rel_sessions.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


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


def _lines(path: Path) -> list[dict[str, Any]]:
    packed = path.with_name(f"{path.name}.gz")
    text = path.read_text() if path.exists() else gzip.decompress(packed.read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines() if line.strip()]
