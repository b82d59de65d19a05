"""The writer commits its pages to git: few commits, each whole, also when it is killed in between."""

from __future__ import annotations

import hashlib
import json

import pytest

from memory_core.commands.pages import WritePage
from tests.factories import envelope
from tests.stack.conftest import wait_until
from tests.wiki.histories import files_at, fsck, person
from tests.writer.conftest import RunningWriter

pytestmark = pytest.mark.stack


@pytest.fixture
def writer(settings, start_broker, start_writer) -> RunningWriter:
    start_broker(settings)
    return start_writer()


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
        f"{row['workspace']}/{row['project']}/{row['path']}": row["sha256"]
        for row in writer.rows(
            "SELECT w.name AS workspace, j.name AS project, p.path, v.sha256 FROM pages p"
            " JOIN page_versions v ON v.id = p.version_id JOIN projects j ON j.id = p.project_id"
            " JOIN workspaces w ON w.id = j.workspace_id WHERE p.tombstoned_at IS NULL"
        )
    }
    head = {file: hashlib.sha256(content).digest() for file, content in files_at(root).items()}
    assert {file: sha for file, sha in head.items() if not file.endswith("_meta.md")} == table
    assert person(root, "status", "--porcelain") == ""
    assert fsck(root) == ""


def test_a_thousand_writes_make_few_commits_that_hold_them_all(writer):
    writer.append(*(page(f"p{n % 200}", f"# Page {n % 200}\n\nstate {n}\n") for n in range(1_000)))
    wait_until(lambda: is_committed(writer), 60)

    commits = person(writer.settings.wiki, "rev-list", "HEAD").split()
    assert 1 <= len(commits) <= 10
    agree(writer)
    text = person(writer.settings.wiki, "log", "-1", "--format=%an <%ae>%n%B")
    assert text.startswith("memoryd <memoryd@localhost>\n")
    assert "Batch-Id: " in text
    assert "Epoch: 1" in text
    assert "write default/alpha/notes/" in text
