"""Statements as they are compiled: what is bound, and what is written out."""

from __future__ import annotations

from sqlalchemy import bindparam, select

from memory_core.store.statement import Statement
from memory_core.store.tables import observations

_o = observations.c


def test_an_expressions_own_numbers_are_written_out():
    statement = Statement(select(_o.id).where(_o.importance == 7, _o.kind == "stop").limit(8))

    assert "importance = 7" in statement.sql
    assert "LIMIT 8" in statement.sql
    assert statement.parameters({}) == {"kind_1": "stop"}


def test_a_number_that_begins_another_numbers_name_is_left_whole():
    many = Statement(select(_o.id).where(*(_o.seq != number for number in range(12))))

    assert [f"seq != {number}" in many.sql for number in range(12)] == [True] * 12
    assert many.parameters({}) == {}


def test_what_is_given_is_bound():
    statement = Statement(select(_o.id).where(_o.seq > bindparam("after")).limit(bindparam("limit")))

    assert ":after" in statement.sql
    assert "LIMIT :limit + 0" in statement.sql
    assert statement.parameters({"after": 1, "limit": 2}) == {"after": 1, "limit": 2}
