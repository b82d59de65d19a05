"""A process that writes, deletes and installs pages until it is killed. Arguments: directory, seed."""

from __future__ import annotations

import random
import sys
from pathlib import Path

from memory_core.commands.files import clean_leftovers
from memory_core.commands.pages import DeletePage, WritePage
from memory_core.wiki.outbox import Installer
from tests.books import Books


def main(directory: Path, seed: int) -> None:
    chance = random.Random(seed)
    books = Books(directory)
    installer = Installer(books.wiki)
    books.transact(lambda tx: clean_leftovers(tx, installer))
    books.install(installer)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    number = 0
    while True:
        for _ in range(chance.randint(1, 4)):
            number += 1
            path = f"notes/{chance.randint(0, 5)}.md"
            if chance.random() < 0.2:
                books.apply(DeletePage(workspace="default", project="alpha", path=path))
            else:
                body = f"run {seed} number {number}\n" * chance.randint(1, 200)
                books.apply(WritePage(workspace="default", project="alpha", path=path, body=body))
        books.install(installer)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
