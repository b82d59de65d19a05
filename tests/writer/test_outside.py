"""A real writer beside people who edit its wiki."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from memory_core.clock import SystemClock
from memory_core.commands.pages import WritePage
from memory_core.commands.wiki_tasks import StartHeal, StartReindex
from memory_core.config import Settings
from memory_core.ids import IdSource
from tests.factories import envelope as command_envelope
from tests.stack.conftest import wait_until
from tests.writer.conftest import RunningWriter


@pytest.fixture
def writer(settings, start_broker, start_writer) -> RunningWriter:
    """It looks at everything every three seconds, not every thirty."""
    start_broker(settings)
    return start_writer(MEMORYD_TEST_LIMITS="RECONCILE_SECONDS=3")


@pytest.fixture
def slow_writer(settings, start_broker, start_writer) -> RunningWriter:
    start_broker(settings)
    return start_writer()


def write(writer: RunningWriter, path: str, body: str) -> None:
    page = WritePage(workspace="default", project="alpha", path=path, body=body)
    writer.append(command_envelope(page, token_scope="write", id=IdSource(SystemClock()).new()))
    writer.drained()
    wait_until(lambda: not writer.rows("SELECT 1 AS x FROM file_outbox"))


def file_of(settings: Settings, path: str) -> Path:
    return settings.wiki / "default" / "alpha" / path


def status(settings: Settings) -> dict:
    try:
        return json.loads((settings.run_dir / "wiki.status.json").read_text())
    except (FileNotFoundError, ValueError):
        return {}


def troubles(settings: Settings) -> dict[str, str]:
    """By file, what the status last said is in its way."""
    return {row["file"]: row["trouble"] for row in status(settings).get("troubles", [])}


def latest(writer: RunningWriter) -> dict[str, str]:
    rows = writer.rows(
        "SELECT p.path AS path, v.content AS content FROM pages p JOIN page_versions v ON v.id = p.version_id"
        " WHERE p.tombstoned_at IS NULL"
    )
    return {row["path"]: row["content"] for row in rows}


@pytest.mark.parametrize("leaves", ["nothing", "an empty directory"])
def test_a_wiki_that_is_gone_is_told_and_healed(writer, settings, leaves: str):
    for number in range(25):
        write(writer, f"notes/{number}.md", f"text {number}\n")
    wait_until(lambda: status(settings).get("files") == 25)
    # What no look has entered yet could still be made anew; and a list of contents that comes now would fill the empty directory.
    wait_until(lambda: writer.rows("SELECT 1 AS x FROM wiki_files"))
    wait_until(
        lambda: file_of(settings, "index.md").exists() and not writer.rows("SELECT 1 AS x FROM file_outbox")
    )
    settings.wiki.rename(settings.data_dir / "unmounted")
    if leaves == "an empty directory":
        settings.wiki.mkdir()
    page = WritePage(workspace="default", project="alpha", path="notes/new.md", body="meanwhile\n")
    writer.append(command_envelope(page, token_scope="write", id=IdSource(SystemClock()).new()))
    writer.drained()

    # Which of the two is told first depends on which look comes first.
    wait_until(
        lambda: status(settings).get("held") and str(settings.wiki) in status(settings).get("away", "")
    )
    assert status(settings)["held"][0]["missing"] == 25
    writer.append(command_envelope(StartHeal(), token_scope="admin", id=IdSource(SystemClock()).new()))
    wait_until(lambda: writer.rows("SELECT 1 FROM wiki_tasks WHERE finished_at IS NOT NULL"), 90)

    wait_until(lambda: not writer.rows("SELECT 1 FROM file_outbox"))
    assert len(list(settings.wiki.rglob("notes/*.md"))) == 26
    wait_until(lambda: status(settings)["status"] == "ok")


def test_an_edit_is_told_at_once_and_redacted(slow_writer, settings):
    writer = slow_writer
    write(writer, "notes/a.md", "one\n")
    wait_until(lambda: status(settings).get("watcher", {}).get("state") == "watching")
    file_of(settings, "notes/a.md").write_text("edited by hand, AKIA" + "Q3EGRIXMV5TDPZJW" + "\n")

    # Long before the look that comes every 30 seconds.
    wait_until(lambda: "edited by hand" in latest(writer)["notes/a.md"])

    assert "AKIA" not in latest(writer)["notes/a.md"]
    assert "AKIA" in file_of(settings, "notes/a.md").read_text()


def test_a_database_that_is_lost_comes_back_from_the_wiki(writer, settings, start_writer):
    for number in range(5):
        write(writer, f"notes/{number}.md", f"text {number}\n")
    before = latest(writer)
    install = settings.install_file.read_text()
    writer.kill()
    shutil.rmtree(settings.database.parent)
    settings.database.parent.mkdir(mode=0o700)

    refused = start_writer(lives=False)
    code, said = refused.ended()
    assert (code, "--new-database" in said) == (78, True)

    anew = start_writer(MEMORYD_NEW_DATABASE="true")
    anew.append(command_envelope(StartReindex(), token_scope="admin"))
    wait_until(lambda: anew.rows("SELECT 1 AS x FROM wiki_tasks WHERE finished_at IS NOT NULL"))

    assert latest(anew) == before
    assert settings.install_file.read_text() == install
    assert anew.stop() == 0


def test_what_stands_in_the_way_is_named_and_the_page_comes_when_it_is_gone(writer, settings):
    taken = file_of(settings, "notes/taken.md")
    taken.mkdir(parents=True)
    own = file_of(settings, "_meta.md")
    own.mkdir()
    for path in ("notes/taken.md", "notes/a.md"):
        page = WritePage(workspace="default", project="alpha", path=path, body="one\n")
        writer.append(command_envelope(page, token_scope="write", id=IdSource(SystemClock()).new()))
    writer.drained()

    assert list(latest(writer)) == ["notes/a.md"]  # the other one was refused
    # The folder stays in the way of any page of that name, so it is told as long as it is there.
    wait_until(
        lambda: {"default/alpha/notes/a.md", "default/alpha/notes/taken.md"} <= troubles(settings).keys()
    )
    assert "_meta.md" in troubles(settings)["default/alpha/notes/a.md"]
    assert not file_of(settings, "notes/a.md").exists()

    own.rmdir()
    wait_until(lambda: file_of(settings, "notes/a.md").exists())
    wait_until(lambda: list(troubles(settings)) == ["default/alpha/notes/taken.md"])
    taken.rmdir()
    wait_until(lambda: not troubles(settings))
    assert writer.rows("SELECT 1 AS x FROM file_outbox") == []
