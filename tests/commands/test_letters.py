"""Looking after dead letters is for admins, and never touches what is not dead."""

from __future__ import annotations

import pytest

from memory_core.commands.letters import DiscardDeadLetter, RetryDeadLetter, discard, retry
from memory_core.domain.command import Refusal
from memory_core.ids import id_text
from memory_core.store import command_ids, letters
from memory_core.store.writing import WriterConnection
from tests.store.databases import new_writer, with_transaction
from tests.writer.engines import envelope


@pytest.fixture
def connection(tmp_path) -> WriterConnection:
    return new_writer(tmp_path)


def bury(connection, **more):
    letter = envelope("x", **more)
    with_transaction(
        connection, lambda tx: letters.bury(tx, letter, cause="exception", error="boom", attempts=3)
    )
    return letter


def ask(connection, apply, body, scope: str = "admin"):
    def work(tx):
        tx.envelope, tx.wrote = envelope("asking", token_scope=scope), False
        answer = apply(body, tx)
        assert not (isinstance(answer, Refusal) and tx.wrote)
        return answer

    return with_transaction(connection, work)


@pytest.mark.parametrize("scope", ["read", "write", "capture", "pool"])
def test_only_an_admin_may(connection, scope):
    letter = bury(connection)

    answer = ask(connection, retry, RetryDeadLetter(letter=id_text(letter.id)), scope)

    assert isinstance(answer, Refusal)
    assert answer.code == "forbidden"
    assert with_transaction(connection, letters.counts)["dead"] == 1


@pytest.mark.parametrize(
    ("letter", "code"), [("no id", "invalid"), ("00000000-0000-7000-8000-000000000000", "not_found")]
)
def test_what_is_not_dead_is_refused(connection, letter, code):
    answer = ask(connection, discard, DiscardDeadLetter(letter=letter))

    assert isinstance(answer, Refusal)
    assert answer.code == code


def test_a_retried_letter_waits_to_be_applied_and_its_id_is_free(connection):
    letter = bury(connection)

    answer = ask(connection, retry, RetryDeadLetter(letter=id_text(letter.id)))

    assert answer == {"id": id_text(letter.id), "name": letter.name, "status": "retrying"}
    assert with_transaction(connection, letters.counts) == {"dead": 0, "parked": 1}
    assert with_transaction(connection, lambda tx: command_ids.lookup(tx, "owner", letter.id)) is None


def test_a_discarded_letter_is_gone_and_its_id_stays_known(connection):
    letter = bury(connection)

    ask(connection, discard, DiscardDeadLetter(letter=id_text(letter.id)))

    assert with_transaction(connection, letters.counts) == {"dead": 0, "parked": 0}
    row = with_transaction(connection, lambda tx: command_ids.lookup(tx, "owner", letter.id))
    assert row["status"] == "dead"


def test_one_id_of_two_principals_asks_which(connection):
    letter = bury(connection)
    bury(connection, principal="another")

    unclear = ask(connection, discard, DiscardDeadLetter(letter=id_text(letter.id)))
    clear = ask(connection, discard, DiscardDeadLetter(letter=id_text(letter.id), principal="another"))

    assert isinstance(unclear, Refusal)
    assert unclear.code == "conflict"
    assert clear["status"] == "discarded"
    assert [x.envelope.principal for x in with_transaction(connection, letters.dead)] == ["owner"]
