"""What a transaction holds back: written before anybody could miss it, and never half."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import bindparam, func, insert, select

from memory_core import store as package
from memory_core.errors import CoreError, StorageFailed
from memory_core.store.statement import Statement
from memory_core.store.tables import audit_log, workspaces
from memory_core.store.transaction import Transaction
from tests.factories import Store, database

ADD = Statement(insert(workspaces))
RENAME = Statement(
    workspaces.update().where(workspaces.c.id == bindparam("id")).values(name=bindparam("name")),
    is_apart=True,
)
NAMES = Statement(select(workspaces.c.name).order_by(workspaces.c.created_at))
LOG = Statement(select(func.count()).select_from(audit_log), is_apart=True)
#: What is held back, and what rows of sessions are kept with while they are known.
HELD = {"observations", "command_ids", "sessions", "handoffs"}


@pytest.fixture
def store(tmp_path: Path) -> Generator[Store]:
    made = database(tmp_path)
    yield made
    made.close()


def workspace(name: str, at: int = 0) -> dict[str, object]:
    return {"id": name.encode().ljust(16), "name": name, "created_at": at}


def names(store: Store) -> list[str]:
    return [row["name"] for row in store.all("SELECT name FROM workspaces ORDER BY created_at")]


def run(store: Store, work: Callable[[Transaction], None]) -> None:
    """As the engine does: whatever ends the transaction, an error comes out as it was raised."""
    store.connection.execute("BEGIN IMMEDIATE")
    tx = Transaction(store.connection, store.ids)
    try:
        work(tx)
        tx.write_held()
        store.connection.execute("COMMIT")
    finally:
        if store.connection.in_transaction:
            store.connection.execute("ROLLBACK")


def test_a_row_is_inserted_before_anything_could_miss_it(store: Store):
    with store.transaction() as tx:
        tx.insert_later(ADD, workspace("one"))
        tx.rows(LOG)
        assert names(store) == []
        assert [row["name"] for row in tx.rows(NAMES)] == ["one"]


def test_what_is_held_back_is_written_before_many_rows_are(store: Store):
    with store.transaction() as tx:
        tx.insert_later(ADD, workspace("one"))
        tx.run_many(ADD, [workspace("two", 1)])
        assert names(store) == ["one", "two"]


def test_rows_come_in_the_order_in_which_they_were_given(store: Store):
    with store.transaction() as tx:
        for number in range(20):
            tx.insert_later(ADD, workspace(f"w{number}"))

    found = store.all("SELECT name FROM workspaces ORDER BY rowid")
    assert [row["name"] for row in found] == [f"w{number}" for number in range(20)]


def test_the_last_of_several_changes_is_written_and_known_until_then(store: Store):
    with store.transaction() as tx:
        tx.run(ADD, **workspace("one"))
        key = workspace("one")["id"]
        for name in ("two", "three"):
            tx.write_later(key, {**workspace("one"), "name": name}, RENAME)
        assert tx.known(key)["name"] == "three"
        assert names(store) == ["one"]
        tx.rows(NAMES)
        assert tx.known(key) is None

    assert names(store) == ["three"]


def test_what_was_held_back_goes_with_its_transaction(store: Store):
    def work(tx: Transaction) -> None:
        tx.insert_later(ADD, workspace("one"))
        tx.rows(NAMES)
        tx.insert_later(ADD, workspace("two"))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(store, work)

    assert names(store) == []


def test_holding_back_is_writing(store: Store):
    with store.transaction() as tx:
        tx.insert_later(ADD, workspace("one"))
        assert tx.wrote
        tx.wrote = False
        tx.write_later(workspace("one")["id"], workspace("one"), RENAME)
        assert tx.wrote


def test_a_question_that_writes_what_others_held_back_has_written_nothing_itself(store: Store):
    with store.transaction() as tx:
        tx.insert_later(ADD, workspace("one"))
        tx.wrote = False
        tx.rows(NAMES)
        assert not tx.wrote


def test_what_could_not_be_written_fails_the_commit_though_its_error_was_swallowed(store: Store):
    def work(tx: Transaction) -> None:
        tx.insert_later(ADD, workspace("one"))
        tx.insert_later(ADD, workspace("one"))
        with suppress(CoreError):
            tx.rows(NAMES)

    with pytest.raises(StorageFailed, match="UNIQUE"):
        run(store, work)

    assert names(store) == []


def test_nothing_is_written_once_the_transaction_was_ended(store: Store):
    def work(tx: Transaction) -> None:
        tx.insert_later(ADD, workspace("one"))
        store.connection.execute("ROLLBACK")
        with suppress(CoreError):
            tx.rows(NAMES)
        assert names(store) == []

    with pytest.raises(StorageFailed, match="was swallowed"):
        run(store, work)

    assert names(store) == []


# --- what is written last ------------------------------------------------------------------------


def add_all(tx: Transaction, rows: list[dict[str, object]]) -> None:
    tx.run_many(ADD, rows)


def test_what_is_written_last_comes_behind_everything_else_and_in_its_order(store: Store):
    with store.transaction() as tx:
        tx.write_last(add_all, workspace("last", 1))
        tx.write_last(add_all, workspace("behind it", 2))
        tx.insert_later(ADD, workspace("one"))
        assert [row["name"] for row in tx.rows(NAMES)] == ["one"]

    assert names(store) == ["one", "last", "behind it"]


def test_what_is_written_last_is_written_once(store: Store):
    with store.transaction() as tx:
        tx.write_last(add_all, workspace("last"))
        tx.write_held()
        tx.write_held()

    assert names(store) == ["last"]


def test_what_is_written_last_goes_with_its_transaction(store: Store):
    def work(tx: Transaction) -> None:
        tx.write_last(add_all, workspace("last"))
        tx.write_last(add_all, workspace("last"))

    with pytest.raises(StorageFailed, match="UNIQUE"):
        run(store, work)

    assert names(store) == []


def test_nothing_is_written_last_once_the_transaction_was_ended(store: Store):
    def work(tx: Transaction) -> None:
        tx.write_last(add_all, workspace("last"))
        store.connection.execute("ROLLBACK")

    with pytest.raises(StorageFailed, match="was swallowed"):
        run(store, work)

    assert names(store) == []


def test_a_row_that_is_inserted_tells_its_number(store: Store):
    record = Statement(
        insert(audit_log).values(at=bindparam("at"), op=bindparam("op"), principal="p", detail="{}")
    )
    with store.transaction() as tx:
        numbers = [tx.insert(record, at=at, op="did") for at in (5, 6)]

    assert numbers == [
        row["seq"] for row in store.all("SELECT seq FROM audit_log WHERE op = 'did' ORDER BY at")
    ]


def apart_statements() -> dict[str, Statement]:
    found: dict[str, Statement] = {}
    for module in pkgutil.iter_modules(package.__path__):
        if module.name == "migrations":
            continue
        for name, value in vars(importlib.import_module(f"{package.__name__}.{module.name}")).items():
            if isinstance(value, Statement) and value.is_apart:
                found[f"{module.name}.{name}"] = value
    return found


def test_statements_that_are_apart_touch_nothing_that_is_held_back(store: Store):
    touched: dict[str, set[str]] = {}
    for name, statement in apart_statements().items():
        tables: set[str] = set()

        def note(_action: int, table: str | None, *_: object, tables: set[str] = tables) -> int:
            tables.add(table or "")
            return 0

        store.connection.set_authorizer(note)
        store.connection.execute(f"EXPLAIN {statement.sql}", _anything(statement))
        store.connection.set_authorizer(None)
        touched[name] = tables & HELD

    # Each of these looks at what is held back itself: see where it is used.
    assert touched == {
        "observations._TWINS": {"observations"},
        "sessions._COUNT_EVENTS": {"sessions"},
        "sessions._CURRENT": {"sessions", "handoffs"},
    }


def _anything(statement: Statement) -> dict[str, object]:
    return dict.fromkeys(re.findall(r":(\w+)", statement.sql), 0)
