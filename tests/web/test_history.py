"""Checkpoints and restoring over HTTP, with the person's preview before."""

from __future__ import annotations

from typing import Any

from memory_core.clock import SystemClock
from memory_core.store import git_batches
from memory_core.wiki.git import Git
from memory_core.wiki.git_batch import BatchFiles, batch_message
from memory_core.wiki.git_repository import Repository
from tests.store.databases import with_transaction
from tests.web.house import House

SCOPE = {"workspace": "default", "project": "alpha"}


def write(house: House, text: str) -> Any:
    answer = house.post("/api/v1/tools/memory_write_page", {**SCOPE, "path": "notes/a.md", "body": text})
    assert answer.status_code == 200, answer.json
    return answer.json


def commit_all(house: House) -> None:
    """What the history's thread does with closed batches."""
    settings = house.settings
    repository = Repository(Git(settings.wiki, settings.tmp_dir), SystemClock())
    repository.create()
    files = BatchFiles(house.parts.database, settings.wiki, lambda _file: None)
    with house.parts.database.snapshot() as reading:
        batches = git_batches.waiting(reading, 100)
        changes = {batch.id: git_batches.changes_of(reading, batch) for batch in batches}
    for batch in batches:
        message = batch_message([batch], changes[batch.id], 1)
        made = repository.commit(files.of(changes[batch.id]), message)
        with_transaction(
            house.connection,
            lambda tx, batch=batch, made=made: git_batches.mark_committed(
                tx, batch.id, made.commit_id, files=made.files
            ),
            SystemClock(),
        )


def test_a_checkpoint_is_pending_first_and_a_commit_then(house: House) -> None:
    house.start_writer()
    write(house, "# A\n\nfirst\n")

    made = house.post("/api/v1/checkpoints", {"message": "before the big change"}).json
    before = house.get("/api/v1/checkpoints").json
    commit_all(house)
    house.stop_writer()
    after = house.get("/api/v1/checkpoints?limit=1").json

    assert (made["commit"], made["changed"]) == (None, True)
    assert [(c["pending"], c["commit"], c["checkpoints"]) for c in before] == [
        (True, None, [made["checkpoint"]])
    ]
    assert [(c["pending"], c["checkpoints"], c["message"]) for c in after] == [
        (False, [made["checkpoint"]], "before the big change")
    ]


def test_a_checkpoint_whose_pages_another_commit_held_already_is_found_at_that_commit(house: House) -> None:
    house.start_writer()
    write(house, "# A\n\nfirst\n")
    first = house.post("/api/v1/checkpoints", {"message": "one"}).json["checkpoint"]
    write(house, "# A\n\nsecond\n")
    write(house, "# A\n\nfirst\n")
    second = house.post("/api/v1/checkpoints", {"message": "two"}).json["checkpoint"]
    commit_all(house)
    house.stop_writer()

    (entry,) = house.get("/api/v1/checkpoints").json
    assert entry["checkpoints"] == [first, second]


def test_a_page_is_looked_at_and_restored_from_checkpoint_commit_and_version(house: House) -> None:
    house.start_writer()
    first = write(house, "# A\n\nfirst\n")
    made = house.post("/api/v1/commit", {}).json
    house.stop_writer()
    commit_all(house)
    house.start_writer()
    write(house, "# A\n\nsecond\n")
    (entry,) = house.get("/api/v1/checkpoints?workspace=default&project=alpha&path=notes/a.md").json

    for source in (first["version_id"], made["checkpoint"], entry["commit"], entry["commit"][:10]):
        query = f"workspace=default&project=alpha&path=notes/a&from={source}"
        seen = house.get(f"/api/v1/pages/restore?{query}").json
        assert "first" in seen["content"]
        assert "first" not in seen["current"]

    body = {**SCOPE, "path": "notes/a.md", "from": made["checkpoint"]}
    stale = house.post("/api/v1/pages/restore", body | {"base_version": first["version_id"]})
    done = house.post("/api/v1/pages/restore", body | {"base_version": seen["base_version"]})
    read = house.post("/api/v1/tools/memory_read_page", {**SCOPE, "path": "notes/a.md"}).json

    assert stale.status_code == 409
    assert (done.status_code, done.json["changed"]) == (200, True)
    assert done.json["pre_checkpoint"] != done.json["checkpoint"]
    assert "first" in read["body"]


def test_nonsense_is_refused_by_name(house: House) -> None:
    house.start_writer()
    write(house, "# A\n")
    query = "/api/v1/pages/restore?workspace=default&project=alpha&path=notes/a.md"

    assert house.get(query).status_code == 400
    for source in ("HEAD", "--help", "main~1", "00000000-zzzz"):
        assert house.get(f"{query}&from={source}").status_code == 400
    assert house.get(f"{query}&from=00000000").status_code == 404
    assert house.get("/api/v1/checkpoints?limit=x").status_code == 400
    assert house.get("/api/v1/checkpoints").json == []
    assert house.post("/api/v1/checkpoints", {"message": 3}).status_code == 400


def test_a_token_that_may_only_read_commits_and_restores_nothing(house: House) -> None:
    bearer = {"Authorization": f"Bearer {house.add_token('read')}"}

    for path in ("/api/v1/checkpoints", "/api/v1/commit", "/api/v1/pages/restore"):
        assert house.client().post(path, json={}, headers=bearer).status_code == 403
    assert house.client().get("/api/v1/checkpoints", headers=bearer).status_code == 200
