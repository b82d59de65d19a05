"""A writer killed at any moment, beside an editor that saves all the time."""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from memory_core.commands.files import clean_leftovers
from memory_core.wiki.exchange import directory, swap
from memory_core.wiki.outbox import Installer
from tests.books import Books
from tests.wiki.oracle import unexplained

logger = logging.getLogger(__name__)

KILLS = 8
ROOT = Path(__file__).parents[2]


def run_and_kill(data: Path, seed: int, editor: Editor | None, chance: random.Random) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.wiki.endless_writer", str(data), str(seed)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PYTHONPATH": str(ROOT), "PATH": os.defpath},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        deadline = time.monotonic() + chance.uniform(0.02, 0.4)
        while time.monotonic() < deadline:
            if editor is not None:
                editor.save()
            time.sleep(0.003)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@dataclass
class Editor:
    """Saves pages by an exchange, so that it knows what it replaced itself."""

    folder: Path
    chance: random.Random
    saved: set[str] = field(default_factory=set[str])
    replaced: set[str] = field(default_factory=set[str])

    def save(self) -> None:
        name = f"{self.chance.randint(0, 5)}.md"
        if not (self.folder / name).exists():
            return
        text = f"edit {len(self.saved)} {self.chance.random()}\n"
        (self.folder / "saving~").write_text(text)
        with directory(self.folder, [], create=False) as descriptor:
            try:
                swap("saving~", name, descriptor, "spare~")
            except FileNotFoundError:
                return
        self.saved.add(text)
        self.replaced.add((self.folder / "saving~").read_text())


@pytest.mark.kills
def test_after_every_kill_each_file_is_its_latest_version_or_explained(tmp_path: Path):
    seed = int.from_bytes(os.urandom(4), "big")
    logger.warning("seed %d", seed)
    chance = random.Random(seed)
    Books(tmp_path).close()
    in_flight = 0
    for kill in range(KILLS):
        run_and_kill(tmp_path, seed + kill, None, chance)
        books = Books(tmp_path)
        in_flight += len(books.query("SELECT 1 FROM file_outbox"))
        assert unexplained(books) == []
        assert books.query("PRAGMA integrity_check")[0]["integrity_check"] == "ok"
        books.close()
    books = Books(tmp_path)
    books.transact(lambda tx: clean_leftovers(tx, Installer(books.wiki)))
    books.install()

    assert in_flight > 0
    assert unexplained(books) == []
    assert books.query("SELECT * FROM file_outbox") == []
    assert [file for file in books.files() if "/." in file] == []
    books.close()


@pytest.mark.kills
def test_no_edit_is_lost_between_kills(tmp_path: Path):
    seed = int.from_bytes(os.urandom(4), "big")
    logger.warning("seed %d", seed)
    chance = random.Random(seed)
    Books(tmp_path).close()
    editor = Editor(folder=tmp_path / "wiki/default/alpha/notes", chance=chance)
    for kill in range(KILLS):
        run_and_kill(tmp_path, seed + kill, editor, chance)
    books = Books(tmp_path)
    books.transact(lambda tx: clean_leftovers(tx, Installer(books.wiki)))
    books.install()

    kept = {row["content"] for row in books.query("SELECT content FROM page_versions")}
    kept |= {content.decode() for content in books.files().values()}
    assert len(editor.saved) > KILLS
    assert editor.saved - editor.replaced - kept == set()
    books.close()
