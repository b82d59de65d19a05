"""`/api/v1/wiki`: who may ask for a rebuild, and what the state says."""

from __future__ import annotations

import json
import secrets

import pytest

from memory_core.store.database import Database
from tests.web.house import House
from web.readiness import checks


def test_a_reindex_is_begun_once_and_its_state_is_told(house: House) -> None:
    house.start_writer()

    begun = house.post("/api/v1/wiki/reindex", {})
    again = house.post("/api/v1/wiki/reindex", {"force": True})
    state = house.get("/api/v1/wiki")

    assert begun.json["started"] is True
    assert "sessions" in begun.json["cannot_come_back"]
    assert (again.status_code, "under way" in again.json["error"]) == (409, True)
    assert state.json["task"]["kind"] == "reindex"
    assert state.json["task"]["finished_at"] is None
    assert state.json["pages_in_tables"] == 0


def test_a_body_that_is_not_understood_starts_nothing(house: House) -> None:
    house.start_writer()

    assert house.post("/api/v1/wiki/heal", {"everything": True}).status_code == 400
    assert house.post("/api/v1/wiki/heal", {"broken": "yes"}).status_code == 400
    assert house.get("/api/v1/wiki").json["task"] is None


def test_vanished_files_make_the_house_not_ready_and_say_what_to_do(house: House) -> None:
    held = [{"project": "default/p", "missing": 40, "pages": 50, "reason": "files vanished"}]
    now = house.parts.gate.clock.now_us()
    (house.settings.run_dir / "wiki.status.json").write_text(
        json.dumps({"status": "held", "held": held, "written_at": now})
    )
    parts = house.parts

    told = checks(
        parts.settings, parts.gate.clock, parts.line, Database(house.settings.database), parts.vitals._disk
    )["wiki"]()

    assert told is not None
    assert "40 of 50 pages of default/p" in told
    assert "memoryd heal" in told
    assert house.get("/api/v1/status").json["wiki"]["status"] == "held"


def test_the_status_names_what_is_left_alone_in_the_wiki(house: House) -> None:
    troubles = [{"file": f"default/p/{n}.md", "trouble": "a folder"} for n in range(40)]
    now = house.parts.gate.clock.now_us()
    (house.settings.run_dir / "wiki.status.json").write_text(
        json.dumps(
            {
                "status": "ok",
                "written_at": now,
                "troubles": troubles,
                "troubles_in_all": 40,
                "strangers": {"a/b": "no project"},
            }
        )
    )

    told = house.get("/api/v1/status").json["wiki"]

    assert told["troubles"] == troubles[:10]
    assert told["troubles_in_all"] == 40
    assert told["strangers"] == {"a/b": "no project"}


@pytest.mark.parametrize("where", ["notes/{}", "{}/x.md", "notes/of {} and more.md"])
def test_a_path_with_a_secret_in_it_is_refused_for_that_and_not_for_the_mark_in_its_place(
    house: House, where
):
    token = "ghp_" + secrets.token_hex(18)
    house.start_writer()
    answer = house.post(
        "/api/v1/tools/memory_write_page",
        {"workspace": "default", "project": "alpha", "path": where.format(token), "body": "text\n"},
    )

    assert answer.status_code == 400
    assert "the path holds a secret" in answer.text
    assert token not in answer.text
