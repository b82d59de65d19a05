"""`memoryd maintain` on a whole memoryd, whose pool does the job."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.client.prompt import Prompt
from tests.durable.working import HERE
from tests.e2e.running import Running

pytestmark = pytest.mark.stack


def test_maintenance_on_request_ends_and_says_what_it_came_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    with Running(tmp_path / "home", conditions=["patient"]) as memoryd:
        monkeypatch.setenv("MEMORYD_URL", memoryd.url)
        monkeypatch.setenv("MEMORYD_TOKEN", memoryd.token)
        person, sessions = Prompt(capsys), "/api/v1/durable-sessions"
        session_id = memoryd.request("POST", sessions, {"directory": HERE})[1]["id"]
        assert memoryd.request("POST", f"{sessions}/{session_id}/claim", {"directory": HERE})[0] == 200
        # As if five minutes had gone by.
        with closing(sqlite3.connect(memoryd.settings.database, timeout=60)) as outside, outside:
            outside.execute("UPDATE durable_sessions SET lease_until = 1 WHERE lease_until IS NOT NULL")

        assert "completed: leases cleared 1" in person.says("maintain")

        assert memoryd.request("GET", f"{sessions}/{session_id}")[1]["is_held"] is False
        assert "completed: nothing was to be done" in person.says("maintain", "--wait", "60")
        assert person.asks("maintain")["state"] == "completed"
