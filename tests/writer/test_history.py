"""The writer commits its pages to git: few commits, each whole, also when it is killed in between."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import time
from pathlib import Path

import pytest

from memory_core.clock import SystemClock
from memory_core.commands.pages import DeletePage, WritePage
from memory_core.commands.restoring import PageHistory
from memory_core.commands.wiki_tasks import StartHeal
from memory_core.domain.page import page_path
from memory_core.domain.project import Project
from memory_core.store import projects
from memory_core.store.database import Database
from tests.factories import envelope
from tests.stack.conftest import wait_until
from tests.wiki.histories import files_at, fsck, person
from tests.writer.conftest import RunningWriter

pytestmark = pytest.mark.stack


@pytest.fixture
def patient_writer(settings, start_broker, start_writer) -> RunningWriter:
    start_broker(settings)
    return start_writer()


@pytest.fixture
def writer(settings, start_broker, start_writer) -> RunningWriter:
    """It commits after a shorter silence, and looks at the wiki more often."""
    start_broker(settings)
    return start_writer(MEMORYD_TEST_LIMITS="GIT_QUIET_SECONDS=0.3,RECONCILE_SECONDS=3")


def page(name: str, text: str) -> object:
    return envelope(WritePage(workspace="default", project="alpha", path=f"notes/{name}.md", body=text))


def said(writer: RunningWriter) -> dict:
    return json.loads((writer.settings.run_dir / "history.json").read_bytes())


def is_committed(writer: RunningWriter) -> bool:
    """Whether nothing waits: no command, no file, no change, no batch."""
    return writer.waiting() == 0 and not any(
        writer.rows(f"SELECT 1 FROM {where}")
        for where in ("file_outbox", "git_changes", "git_batches WHERE commit_id IS NULL")
    )


def agree(writer: RunningWriter) -> None:
    """Work tree, HEAD and page table say the same, and git finds nothing wrong."""
    root = writer.settings.wiki
    table = {
        f"{row['folder']}/{row['path']}": row["sha256"]
        for row in writer.rows(
            "SELECT coalesce(j.folder, w.name || '/' || j.name) AS folder, p.path, v.sha256 FROM pages p"
            " JOIN page_versions v ON v.id = p.version_id JOIN projects j ON j.id = p.project_id"
            " JOIN workspaces w ON w.id = j.workspace_id WHERE p.tombstoned_at IS NULL"
        )
    }
    head = {file: hashlib.sha256(content).digest() for file, content in files_at(root).items()}
    assert {file: sha for file, sha in head.items() if not file.endswith("_meta.md")} == table
    assert person(root, "status", "--porcelain") == ""
    assert fsck(root) == ""


def test_a_thousand_writes_make_few_commits_that_hold_them_all(patient_writer):
    writer = patient_writer
    writer.append(*(page(f"p{n % 200}", f"# Page {n % 200}\n\nstate {n}\n") for n in range(1_000)))
    wait_until(lambda: is_committed(writer))

    commits = person(writer.settings.wiki, "rev-list", "HEAD").split()
    assert 1 <= len(commits) <= 10
    agree(writer)
    text = person(writer.settings.wiki, "log", "-1", "--format=%an <%ae>%n%B")
    assert text.startswith("memoryd <memoryd@localhost>\n")
    assert "Batch-Id: " in text
    assert "Epoch: 1" in text
    assert "write default/alpha/notes/" in text


def test_a_clean_stop_commits_what_is_open(patient_writer):
    writer = patient_writer
    writer.append(page("last", "# Last words\n"))
    writer.drained()
    wait_until(lambda: writer.rows("SELECT 1 FROM pages"))

    assert writer.stop() == 0

    agree(writer)
    assert is_written_down(writer)


def is_written_down(writer: RunningWriter) -> bool:
    return not any(
        writer.rows(f"SELECT 1 FROM {where}")
        for where in ("git_changes", "git_batches WHERE commit_id IS NULL")
    )


def test_a_deletion_is_two_commits_the_first_of_which_still_has_the_page(writer):
    writer.append(page("a", "# A\n"))
    writer.append(envelope(DeletePage(workspace="default", project="alpha", path="notes/a.md")))
    wait_until(lambda: is_committed(writer))

    root = writer.settings.wiki
    newest, before = person(root, "rev-list", "HEAD").split()[:2]
    assert "default/alpha/notes/a.md" in files_at(root, before)
    assert "default/alpha/notes/a.md" not in files_at(root, newest)


def in_folder(writer: RunningWriter, folder: str | None) -> bool:
    return {row["folder"] for row in writer.rows("SELECT folder FROM projects")} == {folder}


def test_the_history_follows_a_folder_that_is_renamed_and_renamed_back(writer):
    writer.append(page("a", "# A\n"), page("b", "# B\n"))
    wait_until(lambda: is_committed(writer))
    root = writer.settings.wiki
    before = person(root, "rev-parse", "HEAD").strip()

    (root / "default/alpha").rename(root / "default/elsewhere")
    wait_until(lambda: in_folder(writer, "default/elsewhere") and is_committed(writer))
    agree(writer)
    assert {file for file in files_at(root) if file.endswith("_meta.md")} == {"default/elsewhere/_meta.md"}
    writer.append(page("a", "# A\n\nwritten after\n"))
    wait_until(lambda: writer.waiting() == 0 and is_committed(writer))
    agree(writer)
    history = PageHistory(writer.settings, SystemClock())
    database = Database(writer.settings.database)
    with database.snapshot() as reading:
        project = Project.from_row(projects.named(reading, "default", "alpha") or {})
        found = history.find(reading, project, page_path("notes/a.md"), before)
    assert history.load(found).content.endswith("# A\n")
    assert len(history.checkpoints(9, project, page_path("notes/a.md"))) == 3
    database.close()

    (root / "default/elsewhere").rename(root / "default/alpha")
    wait_until(lambda: in_folder(writer, None) and is_committed(writer))
    agree(writer)


def test_no_history_is_begun_where_a_wiki_is_gone_and_the_old_one_goes_on_when_it_is_back(writer):
    writer.append(page("a", "# A\n"))
    wait_until(lambda: is_committed(writer))
    root, aside = writer.settings.wiki, writer.settings.data_dir / "unmounted"
    commit = person(root, "rev-parse", "HEAD").strip()
    root.rename(aside)
    root.mkdir()
    writer.append(page("a", "# A\n\nwritten meanwhile\n"))
    wait_until(lambda: said(writer)["status"] == "waiting")

    assert list(root.iterdir()) == []
    root.rmdir()
    aside.rename(root)
    wait_until(lambda: is_committed(writer), 90)
    agree(writer)
    assert person(root, "rev-parse", "HEAD~1").strip() == commit


def test_a_kill_at_any_moment_leaves_a_whole_history_that_catches_up(settings, start_broker, start_writer):
    seed = random.randrange(1 << 30)
    chance = random.Random(seed)
    start_broker(settings)
    in_flight = 0
    for kill in range(6):
        writer = start_writer()
        writer.append(*(page(f"p{chance.randrange(12)}", f"# P\n\n{kill} {n}\n") for n in range(20)))
        if kill % 2:  # a commit at once, so that some kills fall into it
            writer.append(envelope(DeletePage(workspace="default", project="alpha", path="notes/p1.md")))
            wait_until(lambda w=writer: w.rows("SELECT 1 FROM git_batches WHERE commit_id IS NULL"))
        time.sleep(chance.uniform(0, 0.5))
        writer.kill()
        in_flight += int(not is_written_down(writer))
    writer = start_writer()
    wait_until(lambda: is_committed(writer))

    assert in_flight > 0
    agree(writer)
    ids = person(settings.wiki, "log", "--format=%(trailers:key=Batch-Id,valueonly)").split()
    assert len(ids) == len(set(ids)), f"a batch was committed twice, seed {seed}"


def test_a_lock_that_a_killed_git_left_is_removed_and_the_commit_is_made(writer):
    writer.append(page("a", "# A\n"))
    wait_until(lambda: is_committed(writer) and person(writer.settings.wiki, "rev-list", "--all"))
    (writer.settings.wiki / ".git" / "index.lock").write_bytes(b"")

    writer.append(page("a", "# A\n\nmore\n"))
    wait_until(lambda: is_committed(writer))

    agree(writer)


def test_a_damaged_history_is_repaired_and_never_holds_the_writer_up(settings, start_broker, start_writer):
    start_broker(settings)
    writer = start_writer()
    writer.append(page("a", "# A\n"))
    wait_until(lambda: is_committed(writer) and person(settings.wiki, "rev-list", "--all"))
    writer.kill()
    for folder in (settings.wiki / ".git" / "objects").glob("??"):
        for file in folder.iterdir():
            file.chmod(0o600)
            file.write_bytes(b"")

    writer = start_writer()
    writer.append(page("b", "# B\n"))
    wait_until(lambda: len(writer.rows("SELECT 1 FROM pages")) == 2)
    wait_until(lambda: said(writer).get("note") and is_committed(writer))

    agree(writer)
    assert list(settings.history_aside.iterdir()) != []


def test_without_git_everything_else_works_and_the_state_says_so(
    settings, start_broker, start_writer, tmp_path: Path
):
    start_broker(settings)
    writer = start_writer(PATH=str(tmp_path))
    writer.append(page("a", "# A\n"), page("b", "# B\n"))
    writer.drained()
    wait_until(lambda: not writer.rows("SELECT 1 FROM file_outbox"))

    assert said(writer)["status"] == "missing"
    assert len(writer.rows("SELECT 1 FROM git_changes WHERE batch_seq = 0")) == 2
    writer.stop()

    writer = start_writer()
    wait_until(lambda: is_committed(writer))
    agree(writer)


def test_a_page_with_a_secret_that_a_person_wrote_into_its_file_is_held_back(writer):
    writer.append(page("a", "# A\n"))
    wait_until(lambda: is_committed(writer) and person(writer.settings.wiki, "rev-list", "--all"))
    secret = "ghp_" + "".join(random.choices("abcdefghijkmnpqrstuvwxyzABCDEFGH23456789", k=36))

    (writer.settings.wiki / "default/alpha/notes/a.md").write_text(f"# A\n\ntoken = {secret}\n")
    wait_until(lambda: said(writer).get("held_back") == ["default/alpha/notes/a.md"])
    wait_until(lambda: is_committed(writer))

    root = writer.settings.wiki
    assert all(secret.encode() not in content for content in files_at(root).values())
    assert secret in (root / "default/alpha/notes/a.md").read_text()


# --- the repository vanishes under the writer ---


def begun_anew(writer: RunningWriter, old: str) -> bool:
    """Whether there is a first commit that is not the old one's, with everything in the books."""
    root = writer.settings.wiki
    is_there = (root / ".git" / "refs" / "memoryd" / "batch").exists()
    return is_there and is_committed(writer) and person(root, "rev-parse", "HEAD", check=False).strip() != old


@pytest.mark.parametrize("way", ["removed", "an empty one made", "another one made", "another one in it"])
def test_a_repository_that_vanishes_under_the_writer_is_begun_anew_with_all_pages(writer, way: str):
    writer.append(*(page(name, f"# {name}\n") for name in "abc"))
    wait_until(lambda: is_committed(writer) and person(writer.settings.wiki, "rev-list", "--all"))
    root = writer.settings.wiki
    old = person(root, "rev-parse", "HEAD").strip()

    if way == "another one in it":  # as where the inode is given again
        person(root, "init", "-q", "../another")
        for entry in (root / ".git").iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        shutil.copytree(root.with_name("another") / ".git", root / ".git", dirs_exist_ok=True)
    else:
        shutil.rmtree(root / ".git")
    if way.endswith("made"):
        person(root, "init", "-q")
    if way == "another one made":
        person(root, "commit", "-q", "--allow-empty", "-m", "a person's own")
    wait_until(lambda: begun_anew(writer, old))
    agree(writer)
    assert said(writer)["status"] == "ok"

    writer.append(page("d", "# d\n"))
    wait_until(lambda: writer.rows("SELECT 1 FROM pages WHERE path = 'notes/d.md'") != [])
    wait_until(lambda: is_committed(writer))
    agree(writer)
    writer.process.terminate()
    assert "all pages are committed anew" in writer.ended()[1]


def test_a_wiki_that_was_exchanged_for_an_empty_one_and_healed_has_a_history_with_all_pages(writer):
    writer.append(page("a", "# A\n"), page("b", "# B\n"))
    wait_until(lambda: is_committed(writer) and person(writer.settings.wiki, "rev-list", "--all"))
    root = writer.settings.wiki
    old = person(root, "rev-parse", "HEAD").strip()
    root.rename(root.with_name("moved"))
    root.mkdir()
    wait_until(lambda: said(writer)["status"] == "waiting")
    assert "its history waits" in said(writer)["reason"]

    writer.append(envelope(StartHeal()))
    wait_until(lambda: begun_anew(writer, old), 90)
    agree(writer)


def test_an_older_repository_that_comes_back_in_place_of_the_new_one_gets_all_pages(writer):
    writer.append(page("a", "# A\n"))
    wait_until(lambda: is_committed(writer) and person(writer.settings.wiki, "rev-list", "--all"))
    root = writer.settings.wiki
    old = person(root, "rev-parse", "HEAD").strip()
    (root / ".git").rename(root.with_name("old.git"))
    writer.append(page("b", "# B\n"))
    wait_until(lambda: begun_anew(writer, old) and len(files_at(root)) == 3)

    (root / ".git").rename(root.with_name("new.git"))
    root.with_name("old.git").rename(root / ".git")
    wait_until(lambda: person(root, "rev-parse", "HEAD").strip() != old)

    wait_until(lambda: is_committed(writer))
    agree(writer)
    assert person(root, "rev-parse", "HEAD~1").strip() == old
