"""`kill -9` of the writer at each named step of its work on the history: files, tables and git agree after the next start."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from memory_core.commands.pages import DeletePage, WritePage
from tests.factories import envelope
from tests.stack.conftest import wait_until
from tests.wiki.histories import files_at, person
from tests.writer.conftest import RunningWriter, WriterStart
from tests.writer.dying import MAKING, STEPS
from tests.writer.test_history import agree, is_committed

pytestmark = [pytest.mark.kills, pytest.mark.stack]

#: In these the writer has the index; its lock is left behind.
HOLDING_THE_INDEX = (
    "git is reading the commit",
    "the commit has no name that a person knows",
    "the index is ahead of HEAD",
)

#: A batch is closed as soon as nothing more comes for this long.
QUICK = {"MEMORYD_TEST_LIMITS": "GIT_QUIET_SECONDS=0.3"}


def page(name: str, text: str) -> object:
    return envelope(WritePage(workspace="default", project="alpha", path=f"notes/{name}.md", body=text))


def deletion(name: str) -> object:
    return envelope(DeletePage(workspace="default", project="alpha", path=f"notes/{name}.md"))


def recovered(start_writer: WriterStart) -> RunningWriter:
    writer = start_writer(**QUICK)
    wait_until(lambda: is_committed(writer))
    agree(writer)
    return writer


def batch_ids(writer: RunningWriter) -> list[str]:
    return person(writer.settings.wiki, "log", "--format=%(trailers:key=Batch-Id,valueonly)").split()


@pytest.fixture
def a_history(start_broker, start_writer, settings):
    """Two pages that are committed, and no writer."""
    start_broker(settings)
    writer = start_writer(**QUICK)
    writer.append(page("kept", "# Kept\n"), page("gone", "# Gone\n"))
    wait_until(lambda: is_committed(writer) and files_at(settings.wiki))
    writer.stop()
    return settings


@pytest.mark.timeout(900)
def test_a_writer_that_dies_at_any_step_of_the_history_leaves_what_the_next_one_finishes(
    a_history, start_writer
):
    for number, step in enumerate(STEPS):
        writer = start_writer(**QUICK, MEMORYD_TEST_DIES_AT=step)
        writer.append(page("kept", f"# Kept\n\nstate {number}\n"))
        if "checkpoint" in step:
            writer.append(deletion("gone"))
        assert writer.process.wait(60) == -signal.SIGKILL, step
        assert (a_history.wiki / ".git" / "index.lock").exists() == (step in HOLDING_THE_INDEX), step

        writer = recovered(start_writer)

        found = batch_ids(writer)
        assert len(found) == len(set(found)), f"committed twice: {step}"
        head = files_at(a_history.wiki)
        assert head["default/alpha/notes/kept.md"].endswith(f"state {number}\n".encode()), step
        writer.kill()
    assert "default/alpha/notes/gone.md" not in files_at(a_history.wiki)
    assert "default/alpha/notes/gone.md" in files_at(a_history.wiki, f"HEAD~{len(STEPS)}")


@pytest.mark.parametrize("step", MAKING)
def test_a_writer_that_dies_while_it_makes_the_repository_leaves_what_the_next_one_finishes(
    settings, start_broker, start_writer, step: str
):
    start_broker(settings)
    writer = start_writer(**QUICK, lives=False, MEMORYD_TEST_DIES_AT=step)
    assert writer.process.wait(60) == -signal.SIGKILL
    writer = start_writer(**QUICK)
    writer.append(page("kept", "# Kept\n"))
    wait_until(lambda: writer.rows("SELECT 1 FROM pages"))
    wait_until(lambda: is_committed(writer))

    index = settings.wiki / "default" / "alpha" / "index.md"
    wait_until(index.exists)

    agree(writer)  # also that a person's git sees no file that is nobody's to commit


def test_a_checkpoint_whose_writer_died_before_its_commit_is_the_state_before_the_deletion(
    a_history, start_writer
):
    writer = start_writer(**QUICK, MEMORYD_TEST_DIES_AT="a closed batch is about to be committed")
    writer.append(page("gone", "# Gone\n\nlast words\n"), deletion("gone"))
    assert writer.process.wait(60) == -signal.SIGKILL

    recovered(start_writer)

    newest, before = person(a_history.wiki, "rev-list", "HEAD").split()[:2]
    assert "default/alpha/notes/gone.md" not in files_at(a_history.wiki, newest)
    assert b"last words" in files_at(a_history.wiki, before)["default/alpha/notes/gone.md"]


def test_the_lock_of_a_person_s_git_that_was_killed_is_taken_away_and_one_of_a_living_git_is_waited_for(
    a_history, start_writer
):
    lock = a_history.wiki / ".git" / "index.lock"
    # A git that holds the index for as long as the editor of its message is open.
    living = subprocess.Popen(
        ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-a", "--allow-empty"],
        cwd=a_history.wiki,
        env={**os.environ, "GIT_EDITOR": "sleep 600 #", "GIT_CONFIG_GLOBAL": os.devnull},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lock.exists)
        writer = start_writer(**QUICK)
        writer.append(page("kept", "# Kept\n\nbeside a commit by hand\n"))
        wait_until(lambda: writer.rows("SELECT 1 FROM git_batches WHERE commit_id IS NULL"))
        assert lock.exists()
    finally:
        os.killpg(living.pid, signal.SIGKILL)
        living.wait()

    wait_until(lambda: is_committed(writer))

    agree(writer)
    assert not lock.exists()
