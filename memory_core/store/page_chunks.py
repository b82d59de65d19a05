"""The parts by which pages are found, kept by who writes pages."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import bindparam, delete, insert, select, update

from memory_core.domain.chunk import chunks, digest_of, embedded_text
from memory_core.domain.search_words import further_words
from memory_core.store.fulltext import scope_token
from memory_core.store.statement import Row, Statement, text_statement
from memory_core.store.tables_fulltext import page_chunks
from memory_core.store.transaction import Transaction

_c = page_chunks.c
_OF_PAGE = Statement(
    select(_c.number, _c.ord, _c.text_start, _c.text_end, _c.digest)
    .where(_c.page_number == bindparam("page_number"))
    .order_by(_c.ord)
)
_ADD = Statement(
    insert(page_chunks).values(
        {column.name: bindparam(column.name) for column in _c if column.name != "number"}
    )
)
_THERE = text_statement(
    "SELECT c.number FROM json_each(:numbers) AS new CROSS JOIN page_chunks AS c ON c.number = new.value"
)
_PLACE = Statement(
    update(page_chunks)
    .where(_c.number == bindparam("chunk_number"))
    .values(ord=bindparam("new_ord"), text_start=bindparam("new_start"), text_end=bindparam("new_end"))
)
_DROP = Statement(delete(page_chunks).where(_c.number == bindparam("chunk_number")))
_DROP_ALL = Statement(delete(page_chunks).where(_c.page_number == bindparam("page_number")))
_INDEX = text_statement(
    "INSERT INTO chunks_fts(rowid, title, heading, body, path_search, scope)"
    " VALUES (:number, :title, :heading, :body, :words, :scope)"
)


def write(
    tx: Transaction, *, page_number: int, project_number: int, path: str, title: str, body: str
) -> None:
    """Make the parts of a page those of its text. A part that says what it said before keeps its number, wherever it stands now."""
    before: dict[bytes, list[Row]] = {}
    for row in reversed(tx.rows(_OF_PAGE, page_number=page_number)):
        before.setdefault(row["digest"], []).append(row)
    for chunk in chunks(body):
        text = body[chunk.start : chunk.end]
        digest = digest_of(embedded_text(title, chunk.heading, text))
        if same := before.get(digest):
            row = same.pop()
            if (row["ord"], row["text_start"], row["text_end"]) != (chunk.ord, chunk.start, chunk.end):
                tx.run(
                    _PLACE,
                    chunk_number=row["number"],
                    new_ord=chunk.ord,
                    new_start=chunk.start,
                    new_end=chunk.end,
                )
            continue
        number = tx.insert(
            _ADD,
            page_number=page_number,
            project_number=project_number,
            ord=chunk.ord,
            heading=chunk.heading,
            text_start=chunk.start,
            text_end=chunk.end,
            digest=digest,
        )
        tx.write_last(
            _index,
            {
                "number": number,
                "title": title,
                "heading": chunk.heading,
                "body": text,
                "words": further_words(path, title, text),
                "scope": scope_token(project_number),
            },
        )
    for row in (row for rows in before.values() for row in rows):
        tx.run(_DROP, chunk_number=row["number"])


def drop(tx: Transaction, page_number: int) -> None:
    """Let a page be found no longer, or be indexed anew by the next `write`."""
    tx.run(_DROP_ALL, page_number=page_number)


def _index(tx: Transaction, parts: list[dict[str, Any]]) -> None:
    """Index new parts at the end of the transaction that wrote them, but for those that went again in it.

    All at once, and nothing between them: the full-text index writes down what it gathered before each statement that may
    undo itself alone, and two such writings took as long as all that a page costs beside them.
    """
    numbers = json.dumps([part["number"] for part in parts])
    there = {row["number"] for row in tx.rows(_THERE, numbers=numbers)}
    tx.run_many(_INDEX, [part for part in parts if part["number"] in there])
