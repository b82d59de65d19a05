"""Access tokens: given out and taken back by admins, named, never more than wanted, and never the last admin's."""

from __future__ import annotations

from typing import Any

import pytest

from memory_core import limits
from memory_core.commands.tokens import CreateToken, RevokeToken, create, revoke
from memory_core.domain.command import Refusal
from memory_core.domain.token import mint
from memory_core.store import audit, principals
from memory_core.store.writing import WriterConnection
from tests.store.databases import new_writer, with_transaction
from tests.writer.engines import envelope


@pytest.fixture
def connection(tmp_path) -> WriterConnection:
    made = new_writer(tmp_path)
    with_transaction(made, lambda tx: principals.ensure_owner(tx, "first000", bytes(32)))
    return made


def ask(connection, apply, body, scope: str = "admin") -> Any:
    def work(tx):
        tx.envelope, tx.wrote = envelope("asking", token_scope=scope), False
        answer = apply(body, tx)
        assert not (isinstance(answer, Refusal) and tx.wrote)
        return answer

    return with_transaction(connection, work)


def wanted(**more: Any) -> CreateToken:
    token = mint()
    values: dict[str, Any] = {
        "public_id": token.public_id,
        "digest": token.digest,
        "scope": "pool",
        "name": "a worker",
        "principal": "pool",
    }
    return CreateToken(**values | more)


def rows(connection) -> list[Any]:
    return with_transaction(connection, lambda tx: principals.listed(tx, limit=100))


def test_a_token_is_listed_without_its_digest_and_noted_in_the_audit_log(connection):
    body = wanted()

    answer = ask(connection, create, body)

    assert answer == {"id": body.public_id, "name": "a worker", "scope": "pool", "principal": "pool"}
    (row,) = [row for row in rows(connection) if row["public_id"] == body.public_id]
    assert "digest" not in row
    assert (row["scope"], row["principal"], row["revoked_at"]) == ("pool", "pool", None)
    (entry, *_) = with_transaction(connection, lambda tx: audit.newest(tx, count=1))
    assert entry["op"] == "token_created"
    assert body.digest.hex() not in repr(body) + str(dict(entry))


@pytest.mark.parametrize("scope", ["read", "write", "capture", "pool"])
def test_only_an_admin_may(connection, scope):
    for apply, body in ((create, wanted()), (revoke, RevokeToken(which="first000"))):
        answer = ask(connection, apply, body, scope)
        assert isinstance(answer, Refusal)
        assert answer.code == "forbidden"
    assert len(rows(connection)) == 1


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"scope": "root"}, "invalid"),
        ({"name": ""}, "invalid"),
        ({"name": "-x"}, "invalid"),
        ({"name": "x" * 65}, "invalid"),
        ({"name": "a\nb"}, "invalid"),
        ({"principal": "<b>"}, "invalid"),
        ({"expires_at": 1}, "invalid"),
        ({"name": "first"}, "conflict"),
        ({"public_id": "first000"}, "conflict"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(connection, more, code):
    answer = ask(connection, create, wanted(**more))

    assert isinstance(answer, Refusal)
    assert answer.code == code
    assert len(rows(connection)) == 1


def test_no_more_tokens_than_the_limit_are_kept(connection, monkeypatch):
    monkeypatch.setattr(limits, "TOKENS_MAX", 2)
    assert ask(connection, create, wanted())["name"] == "a worker"

    answer = ask(connection, create, wanted(name="one more"))

    assert isinstance(answer, Refusal)


@pytest.mark.parametrize("by", ["id", "name"])
def test_a_revoked_token_keeps_its_row_and_frees_its_name(connection, by):
    body = wanted()
    ask(connection, create, body)

    answer = ask(connection, revoke, RevokeToken(which=body.public_id if by == "id" else body.name))

    assert answer == {"id": body.public_id, "name": "a worker", "status": "revoked"}
    assert [row["public_id"] for row in rows(connection) if row["revoked_at"] is not None] == [body.public_id]
    again = ask(connection, create, wanted())
    assert again["name"] == "a worker"


def test_revoking_twice_is_the_same_as_once_and_keeps_the_time(connection):
    body = wanted()
    ask(connection, create, body)
    ask(connection, revoke, RevokeToken(which=body.public_id))
    first = rows(connection)

    answer = ask(connection, revoke, RevokeToken(which=body.public_id))

    assert answer["status"] == "revoked"
    assert rows(connection) == first


def test_what_is_not_there_cannot_be_revoked(connection):
    answer = ask(connection, revoke, RevokeToken(which="nobody"))

    assert isinstance(answer, Refusal)
    assert answer.code == "not_found"


def test_the_last_admin_token_stays(connection):
    answer = ask(connection, revoke, RevokeToken(which="first000"))
    assert isinstance(answer, Refusal)
    assert answer.code == "conflict"

    ask(connection, create, wanted(scope="admin", name="second", principal="owner"))
    assert ask(connection, revoke, RevokeToken(which="first000"))["status"] == "revoked"
    answer = ask(connection, revoke, RevokeToken(which="second"))
    assert isinstance(answer, Refusal)
