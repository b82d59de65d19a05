"""`/api/v1/tokens` and `memoryd tokens`, through a real gate and writer; and the pool token of a start."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from memory_core import limits
from memory_core.clock import SystemClock
from memory_core.config import Settings
from memory_core.domain.token import mint, parse
from memory_core.ids import IdSource
from memory_core.store import principals
from memory_core.store.database import Database
from tests.web.served import ROOT, Served
from workers import data_dir
from workers.writer.startup import acquire

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module", autouse=True)
def writer(served: Served) -> None:
    served.house.start_writer()


def memoryd(served: Served, home: Path, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "client", *words],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(home),
            "MEMORYD_URL": served.url,
            "MEMORYD_TOKEN": served.house.token,
        },
        cwd=home,
        input=typed,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def status_of(served: Served, token: str, path: str = "/pool/about") -> int:
    headers = {"Authorization": f"Bearer {token}"}
    return served.house.client().get(path, headers=headers).status_code


def test_a_new_pool_token_may_ask_for_jobs_and_nothing_else_until_it_is_revoked(
    served: Served, tmp_path: Path
):
    made = memoryd(served, tmp_path, "tokens", "create", "--scope", "pool", "--name", "the other box")
    token = made.stdout.strip()
    assert made.returncode == 0, made.stderr
    assert parse(token)
    assert status_of(served, token) == 200
    assert status_of(served, token, "/api/v1/status") == 403
    assert status_of(served, token, "/api/v1/tokens") == 403

    refused = memoryd(served, tmp_path, "tokens", "revoke", "the other box", typed="n\n")
    assert refused.returncode != 0
    revoked = memoryd(served, tmp_path, "tokens", "revoke", "the other box", "--yes")
    assert revoked.stdout.strip() == "the other box: revoked", revoked.stderr

    served.house.parts.tokens._cache.clear()
    assert status_of(served, token) == 401


def test_the_list_shows_every_token_and_no_secret(served: Served, tmp_path: Path):
    memoryd(
        served, tmp_path, "tokens", "create", "--scope", "read", "--name", "reader", "--expires-days", "3"
    )

    said = memoryd(served, tmp_path, "tokens", "list", "--json")
    found = {t["name"]: t for t in json.loads(said.stdout)}

    assert found["first"]["state"] == "live"
    assert found["reader"]["expires_at"] is not None
    assert "mdt_" not in said.stdout
    assert "digest" not in said.stdout
    rows = memoryd(served, tmp_path, "tokens", "list").stdout.splitlines()
    assert any(row.split("\t")[1:5] == ["reader", "read", "owner", "live"] for row in rows)


def test_a_token_can_go_into_a_file_that_only_its_owner_reads(served: Served, tmp_path: Path):
    file = tmp_path / "pool.token"
    words = ("tokens", "create", "--scope", "pool", "--name", "to a file", "--out", str(file))

    made = memoryd(served, tmp_path, *words)

    assert made.returncode == 0, made.stderr
    assert "mdt_" not in made.stdout
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert status_of(served, file.read_text().strip()) == 200
    again = memoryd(served, tmp_path, *words)
    assert again.returncode != 0
    assert "File exists" in again.stderr
    taken = memoryd(served, tmp_path, *words[:-1], str(tmp_path / "other"))
    assert "already" in taken.stderr
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    "body",
    [
        [],
        {},
        {"scope": "pool"},
        {"scope": "pool", "name": 3},
        {"scope": "pool", "name": "x", "expires_days": 0},
        {"scope": "pool", "name": "x", "expires_days": True},
        {"scope": "pool", "name": "x", "expires_days": limits.TOKEN_DAYS_MAX + 1},
        {"scope": "pool", "name": "x", "colour": "red"},
        {"scope": "root", "name": "x"},
    ],
)
def test_a_body_that_does_not_fit_is_refused(served: Served, body: object):
    assert served.house.post("/api/v1/tokens", body).status_code == 400


def test_the_first_token_is_not_revoked_while_its_file_lets_it_in(served: Served):
    public_id, _ = parse(served.house.token)

    answer = served.house.post(f"/api/v1/tokens/{public_id}/revoke", {})

    assert answer.status_code == 409
    assert "restart memoryd" in answer.get_json()["error"]


def test_no_token_text_reaches_the_stream_the_database_or_a_log(served: Served, tmp_path: Path, caplog):
    made = served.house.post("/api/v1/tokens", {"scope": "pool", "name": "nowhere to be found"}).get_json()

    data = b"".join(path.read_bytes() for path in served.house.settings.data_dir.rglob("*") if path.is_file())
    broker = b"".join(
        path.read_bytes() for path in served.house.broker.directory.rglob("*") if path.is_file()
    )
    secret = made["token"].split("_")[2]
    assert made["id"].encode() in data
    assert secret.encode() not in data + broker
    assert secret not in caplog.text


def test_a_start_makes_a_pool_token_and_replaces_one_that_was_revoked(tmp_path: Path):
    settings = Settings(data_dir=tmp_path / "data")
    data_dir.prepare(settings)
    file = settings.local_pool_token_file
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    clock = SystemClock()

    def start() -> str:
        owned = acquire(settings, clock, IdSource(clock))
        owned.connection.close()
        return file.read_text().strip()

    first = start()
    assert start() == first
    assert _scope(settings, first) == ("pool", "pool", None)

    owned = acquire(settings, clock, IdSource(clock))
    with_tx(owned.connection, clock, lambda tx: principals.revoke(tx, parse(first)[0]))
    owned.connection.close()
    second = start()
    assert second != first
    assert _scope(settings, second) == ("pool", "pool", None)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    file.write_text("cut sho")
    third = start()
    assert _scope(settings, third) == ("pool", "pool", None)
    assert mint().text != third


def with_tx(connection, clock, work) -> None:
    from tests.store.databases import with_transaction

    with_transaction(connection, work, clock)


def _scope(settings: Settings, text: str) -> tuple[str, str, int | None]:
    with Database(settings.database).snapshot() as reading:
        row = principals.token_by_public_id(reading, parse(text)[0])
    assert row is not None
    return row["scope"], row["principal"], row["revoked_at"]
