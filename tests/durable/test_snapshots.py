"""With what a session works is said once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.durable.working import HERE, Client, lines_of, nested, said
from tests.web.house import House


def snapshot(**authority: Any) -> dict[str, Any]:
    place = {"workspace_root": "/srv/repo", "workspace_device": 1, "workspace_inode": 2}
    return {
        "directory": HERE,
        "schema_version": 1,
        "config": {"files": True},
        "authority": place | {"tools": ["read"]} | authority,
    }


def put(client: Client, body: dict[str, Any]) -> Any:
    return client.house.client().put(
        f"{client.root}/snapshot", json=body, headers=client.house.bearer | {"Memoryd-Lease": client.lease}
    )


def test_a_snapshot_is_said_once_and_stays(house: House):
    client = Client(house)
    client.claim()

    assert put(client, snapshot()).get_json() == {"revision": 1, "changed": True}
    assert put(client, snapshot()).get_json() == {"revision": 1, "changed": False}
    for other in (
        snapshot(tools=["read", "shell"]),
        snapshot(workspace_inode=3),
        snapshot() | {"config": {}},
    ):
        answer = put(client, other)
        assert (answer.status_code, answer.get_json()["code"]) == (409, "snapshot_mismatch")
    assert lines_of(client.replay())[0]["head"]["snapshot"]["authority"] == snapshot()["authority"]


def test_durable_authority_migrates_only_workspace_path_after_same_inode_rename(house: House):
    client = Client(house)
    client.claim()
    put(client, snapshot())

    assert put(client, snapshot(workspace_root="/srv/renamed")).get_json()["changed"] is True
    stored = house.get(client.root).get_json()["snapshot"]
    assert stored["authority"]["workspace_root"] == "/srv/renamed"
    assert stored["revision"] == 1


def test_resume_rejects_existing_history_without_immutable_snapshot(house: House):
    client = Client(house)
    client.claim()
    client.append(said("one"))

    assert put(client, snapshot()).get_json()["code"] == "snapshot_mismatch"


def test_authority_snapshot_rejects_deep_tool_schema_before_serialization(house: House):
    client = Client(house)
    client.claim()

    answer = put(client, snapshot(tools=nested(64)))

    assert (answer.status_code, answer.get_json()["code"]) == (400, "invalid")
    assert "authority nests deeper" in answer.get_json()["error"]


@pytest.mark.parametrize("version", [-1, 0, 2**63, 2**64, 2**70])
def test_a_version_that_the_database_cannot_hold_is_refused_before_it_is_written(house: House, version: int):
    client = Client(house)
    client.claim()

    answer = put(client, snapshot() | {"schema_version": version})

    assert (answer.status_code, answer.get_json()["code"]) == (400, "invalid")
    assert "schema_version" in answer.get_json()["error"]
    assert house.rows("SELECT * FROM dead_letters") == []
    assert put(client, snapshot()).get_json()["changed"] is True
