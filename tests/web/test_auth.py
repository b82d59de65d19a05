"""Tokens: who is let in, by which way, and for how long."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memory_core import limits
from memory_core.clock import FakeClock
from memory_core.domain.token import Token, mint
from memory_core.errors import StorageStopped
from tests.web.house import House
from web.auth import TokenRecord, Tokens, file_token, first_of

RecordFactory = Callable[..., TokenRecord]


@pytest.fixture
def token() -> Token:
    return mint()


@pytest.fixture
def record_factory(token: Token) -> RecordFactory:
    def make(**overrides: Any) -> TokenRecord:
        values: dict[str, Any] = {
            "public_id": token.public_id,
            "principal": "owner",
            "scope": "admin",
            "digest": token.digest,
        }
        return TokenRecord(**{**values, **overrides})

    return make


def test_a_stored_token_names_its_caller(token: Token, record_factory: RecordFactory) -> None:
    caller = Tokens(lambda _: record_factory(scope="read"), FakeClock()).caller(token.text)
    assert caller is not None
    assert (caller.principal, caller.scope) == ("owner", "read")


@pytest.mark.parametrize("text", ["", " ", "mdt_", "x" * 10_000, "mdt_aaaaaaaa_" + "A" * 43 + "_000000", "ü"])
def test_what_is_no_token_is_nobody(record_factory: RecordFactory, text: str) -> None:
    assert Tokens(lambda _: record_factory(), FakeClock()).caller(text) is None


def test_half_a_token_and_another_secret_under_the_same_id_are_nobody(
    token: Token, record_factory: RecordFactory
) -> None:
    tokens = Tokens(lambda _: record_factory(), FakeClock())
    assert tokens.caller(token.text[: len(token.text) // 2]) is None
    assert tokens.caller(mint().text) is None


@pytest.mark.parametrize(
    "overrides", [{"revoked_at": 1}, {"expires_at": 1}, {"expires_at": 1_780_000_000_000_000}]
)
def test_a_revoked_or_expired_token_is_nobody(
    token: Token, record_factory: RecordFactory, overrides: dict[str, int]
) -> None:
    assert Tokens(lambda _: record_factory(**overrides), FakeClock()).caller(token.text) is None


def test_revocation_bites_within_seconds(token: Token, record_factory: RecordFactory) -> None:
    clock, stored = FakeClock(), [record_factory()]
    tokens = Tokens(lambda _: stored[0], clock)
    assert tokens.caller(token.text) is not None
    stored[0] = record_factory(revoked_at=1)
    clock.advance(limits.TOKEN_CACHE_SECONDS + 0.01)
    assert tokens.caller(token.text) is None


def test_while_the_database_is_away_known_tokens_go_on(token: Token, record_factory: RecordFactory) -> None:
    clock, is_away = FakeClock(), [False]

    def find(_: str) -> TokenRecord:
        if is_away[0]:
            raise StorageStopped
        return record_factory()

    tokens = Tokens(find, clock)
    assert tokens.caller(token.text) is not None
    is_away[0] = True
    clock.advance(3600)
    assert tokens.caller(token.text) is not None
    assert tokens.caller(mint().text) is None


def test_guessed_ids_do_not_fill_the_memory(record_factory: RecordFactory) -> None:
    tokens = Tokens(lambda _: None, FakeClock())
    for _ in range(limits.TOKENS_CACHED_MAX + 10):
        tokens.caller(mint().text)
    assert len(tokens._cache) <= limits.TOKENS_CACHED_MAX


@pytest.mark.parametrize(
    "path", ["/hook", "/hook/batch", "/mcp", "/api/v1/tools/memory_query", "/api/v1/dead/x/retry"]
)
def test_every_post_route_needs_a_token(house: House, path: str) -> None:
    for headers in (
        {},
        {"Authorization": "Bearer "},
        {"Authorization": f"Bearer {mint().text}"},
        {"Authorization": "Bearer"},
    ):
        answer = house.client().post(path, data=b"{}", headers=headers)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert "advice" in answer.json


@pytest.mark.parametrize(
    "path", ["/handoff", "/metrics", "/api/v1/status", "/api/v1/sessions", "/api/v1/dead"]
)
def test_every_get_route_needs_a_token_and_offers_a_browser_to_ask(house: House, path: str) -> None:
    answer = house.client().get(path)
    assert answer.status_code == 401
    assert any(value.startswith("Basic") for value in answer.headers.getlist("WWW-Authenticate"))


def test_a_token_in_the_query_is_not_one(house: House) -> None:
    assert house.client().post(f"/hook?token={house.token}", data=b"{}").status_code == 401


def test_basic_signs_a_browser_in_for_get_and_the_cookie_does_no_more(house: House) -> None:
    basic = base64.b64encode(f"anyone:{house.token}".encode()).decode()
    client = house.client()
    answer = client.get("/api/v1/status", headers={"Authorization": f"Basic {basic}"})
    assert answer.status_code == 200
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert client.get("/api/v1/status").status_code == 200
    assert client.get("/api/v1/status", headers={"Sec-Fetch-Site": "same-site"}).status_code == 401
    assert client.post("/hook", data=b"{}").status_code == 401
    assert client.post("/hook", data=b"{}", headers={"Authorization": f"Basic {basic}"}).status_code == 401


@pytest.mark.parametrize(
    ("scope", "may", "may_not"),
    [
        (
            "capture",
            ["/handoff?session_id=s"],
            ["/metrics", "/api/v1/status", "/api/v1/sessions", "/api/v1/dead"],
        ),
        ("read", ["/metrics", "/api/v1/status", "/api/v1/sessions"], ["/handoff", "/api/v1/dead"]),
        ("write", ["/api/v1/status"], ["/api/v1/dead"]),
        ("pool", [], ["/handoff", "/metrics", "/api/v1/status"]),
    ],
)
def test_a_token_may_do_what_its_scope_says(
    house: House, scope: str, may: list[str], may_not: list[str]
) -> None:
    bearer = {"Authorization": f"Bearer {house.add_token(scope)}"}
    for path in may:
        assert house.client().get(path, headers=bearer).status_code == 200, path
    for path in may_not:
        assert house.client().get(path, headers=bearer).status_code == 403, path


def test_the_scrapers_token_reads_metrics_and_nothing_else(house: House) -> None:
    bearer = {"Authorization": f"Bearer {house.settings.metrics_token_file.read_text().strip()}"}
    client = house.client()

    assert client.get("/metrics", headers=bearer).status_code == 200
    for path in ("/api/v1/status", "/api/v1/sessions", "/handoff?session_id=s", "/api/v1/dead"):
        assert client.get(path, headers=bearer).status_code == 403, path


def test_a_token_that_stands_in_a_file_ends_with_it_and_stored_ones_go_on(
    token: Token, record_factory: RecordFactory, tmp_path: Path
) -> None:
    clock, file, scrapers = FakeClock(), tmp_path / "metrics.token", mint()
    file.write_text(scrapers.text + "\n")
    of_file = file_token(file.read_text, principal="metrics", scope="metrics")
    tokens = Tokens(
        first_of(of_file, lambda name: record_factory() if name == token.public_id else None), clock
    )
    found = tokens.caller(scrapers.text)
    assert found is not None
    assert (found.principal, found.scope) == ("metrics", "metrics")

    file.unlink()
    clock.advance(limits.TOKEN_CACHE_SECONDS + 0.01)

    assert tokens.caller(scrapers.text) is None
    assert tokens.caller(token.text) is not None


def test_a_token_that_only_reads_writes_no_page_and_captures_nothing(house: House) -> None:
    bearer = {"Authorization": f"Bearer {house.add_token('read')}"}
    assert house.client().post("/hook", data=b"{}", headers=bearer).status_code == 403
    answer = house.client().post(
        "/api/v1/tools/memory_write_page",
        json={"path": "a.md", "body": "# A", "project": "p"},
        headers=bearer,
    )
    assert answer.status_code == 403
    assert house.waiting() == 0


def test_ids_are_of_their_principal(house: House) -> None:
    key = uuid.uuid4().hex
    bearer = {"Authorization": f"Bearer {house.add_token('capture', principal='bea')}"}
    url = f"/hook?agent=claude-code&ingest_key={key}"
    assert house.post(url, {"session_id": "s1", "prompt": "mine"}).status_code == 202
    house.drain_all()
    answer = house.client().post(url, json={"session_id": "s2", "prompt": "another's"}, headers=bearer)
    assert answer.status_code == 202


@pytest.mark.parametrize("path", ["/", "/hook", "/mcp", "/nothing", "/metrics"])
def test_foreign_names_are_refused_on_every_route_before_anything_else(house: House, path: str) -> None:
    client = house.client()
    assert client.get(path, headers={"Host": "evil.test"}).status_code == 403
    assert client.get(path, headers=house.bearer | {"Origin": "https://evil.test"}).status_code == 403
    assert client.post(path, headers=house.bearer | {"Origin": "null"}).status_code == 403


def test_no_answer_lets_a_foreign_page_read_it(house: House) -> None:
    answer = house.client().options(
        "/hook", headers={"Origin": "https://evil.test", "Access-Control-Request-Method": "POST"}
    )
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert "Access-Control-Allow-Origin" not in house.get("/api/v1/status").headers
