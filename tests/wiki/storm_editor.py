"""A person with many hands, as a process: edits, renames, moves, deletes and checks out until it is told to stop.

Arguments: the project's directory, the database, a ledger file, a seed. Each edit adds a line of its own to what the file
holds and is noted in the ledger once it is saved. What would take an edit away (a deletion, a checkout) waits until the
edit is in the books: an editor that deletes unseen text loses it by itself.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from memory_core.store.database import open_reader

#: Own to this process: what is written slowly into an open file has no other writer.
DRAFTS = "drafts"
_SEEN_SECONDS = 15.0


class Editor:
    def __init__(self, root: Path, database: Path, ledger: Path, seed: int) -> None:
        self._root = root
        self._database = database
        self._ledger = ledger.open("a", buffering=1)
        self._chance = random.Random(seed)
        self._number = 0
        self._last: dict[Path, str] = {}
        self.stopping = False

    def run(self) -> None:
        moves = (
            [self.save_in_place] * 5
            + [self.save_into_open_file] * 4
            + [self.save_by_rename] * 6
            + [self.create] * 3
            + [self.write_slowly] * 2
            + [self.rename] * 3
            + [self.move_folder, self.delete, self.delete, self.checkout]
        )
        while not self.stopping:
            with suppress(FileNotFoundError, NotADirectoryError):
                self._chance.choice(moves)()
            time.sleep(self._chance.uniform(0.01, 0.08))

    def _files(self) -> list[Path]:
        return [
            file
            for file in sorted(self._root.rglob("*.md"))
            if file.name not in ("_meta.md", "index.md")
            and not file.name.startswith("log-")
            and not any(part.startswith(".") for part in file.relative_to(self._root).parts)
        ]

    def _some_file(self) -> Path:
        files = self._files()
        if not files:
            raise FileNotFoundError
        return self._chance.choice(files)

    def _marker(self) -> str:
        self._number += 1
        return f"edit-{os.getpid()}-{self._number}-end"

    def _saved(self, file: Path, marker: str) -> None:
        self._last[file] = marker
        self._ledger.write(f"{marker}\n")

    def save_in_place(self) -> None:
        file, marker = self._some_file(), self._marker()
        with file.open("a") as opened:
            opened.write(f"{marker}\n")
        self._saved(file, marker)

    def save_into_open_file(self) -> None:
        """As programs do that open a file, think, and then write: the page may be exchanged for a newer one meanwhile."""
        file, marker = self._root / "notes" / f"{self._chance.randint(0, 9)}.md", self._marker()
        with file.open("r+") as opened:
            time.sleep(self._chance.uniform(0.0, 0.3))
            opened.seek(0, os.SEEK_END)
            opened.write(f"{marker}\n")
        self._saved(file, marker)

    def save_by_rename(self) -> None:
        file, marker = self._some_file(), self._marker()
        aside = file.with_name(f".{file.name}.swp")
        aside.write_text(f"{file.read_text()}{marker}\n")
        if not file.exists():
            aside.unlink()
            return
        aside.rename(file)
        self._saved(file, marker)

    def create(self) -> None:
        marker = self._marker()
        file = self._root / self._chance.choice(("notes", "ideas", "ideas/deep")) / f"new {self._number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x") as opened:
            opened.write(f"# {marker}\n")
        self._saved(file, marker)

    def write_slowly(self) -> None:
        file, marker = self._root / DRAFTS / f"{self._chance.randint(0, 3)}.md", self._marker()
        file.parent.mkdir(exist_ok=True)
        before = file.read_text() if file.exists() else ""
        if not self._is_seen(file):
            return
        with file.open("w") as opened:
            for part in (before, marker[:5], marker[5:] + "\n"):
                opened.write(part)
                opened.flush()
                time.sleep(self._chance.uniform(0.0, 0.5))
        self._saved(file, marker)

    def rename(self) -> None:
        file = self._some_file()
        new = file.with_name(f"renamed {self._chance.randint(0, 10**6)}.md")
        file.rename(new)
        if file in self._last:
            self._last[new] = self._last.pop(file)

    def move_folder(self) -> None:
        old = self._root / "ideas"
        new = self._root / f"ideas {self._chance.randint(0, 10**6)}"
        if self._chance.random() < 0.5:
            shutil.copytree(old, new)
            return
        old.rename(new)
        self._last = {
            new / file.relative_to(old) if file.is_relative_to(old) else file: marker
            for file, marker in self._last.items()
        }

    def delete(self) -> None:
        file = self._some_file()
        if self._is_seen(file) and self._holds_only_seen(file):
            file.unlink()

    def checkout(self) -> None:
        file = self._some_file()
        if not (self._is_seen(file) and self._holds_only_seen(file)):
            return
        wiki = self._root.parents[1]
        back = self._chance.randint(1, 3)
        subprocess.run(
            ["git", "-C", str(wiki), "checkout", "-q", f"HEAD~{back}", "--", str(file.relative_to(wiki))],
            check=False,
            capture_output=True,
        )

    def _is_seen(self, file: Path) -> bool:
        return file not in self._last or self._in_books(self._last[file])

    def _holds_only_seen(self, file: Path) -> bool:
        """Nobody else's edit hides in it either: copies and renames carry edits about."""
        lines = [line for line in file.read_text().splitlines() if "edit-" in line]
        return not lines or self._in_books(lines[-1])

    def _in_books(self, text: str) -> bool:
        deadline = time.monotonic() + _SEEN_SECONDS
        while time.monotonic() < deadline and not self.stopping:
            connection = open_reader(self._database)
            try:
                found = connection.execute(
                    "SELECT 1 FROM page_versions WHERE instr(content, ?) LIMIT 1", (text,)
                ).fetchone()
            finally:
                connection.close()
            if found:
                return True
            time.sleep(0.1)
        return False


def main() -> None:
    editor = Editor(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))

    def stop(*_: object) -> None:
        editor.stopping = True

    signal.signal(signal.SIGTERM, stop)
    editor.run()


if __name__ == "__main__":
    main()
