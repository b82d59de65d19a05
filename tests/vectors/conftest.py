"""Pages and turns of several projects, and an embedder that needs no model."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from memory_core.commands.capture import RecordObservation
from memory_core.commands.pages import WritePage
from memory_core.store.nearest import Near
from tests.factories import Store, database, event
from tests.jobs.embedding_model import A, Maker
from tests.vectors.asking import asking


@pytest.fixture
def store(tmp_path: Path) -> Generator[Store]:
    made = database(tmp_path)
    yield made
    made.close()


@pytest.fixture
def maker(store: Store) -> Maker:
    made = Maker(store)
    made.bind(A)
    return made


def write(store: Store, path: str, body: str, project: str = "alpha", **more: Any) -> Any:
    return store.apply(WritePage(workspace="default", project=project, path=path, body=body, **more))


def say(store: Store, text: str, project: str = "alpha", principal: str = "ada", **more: Any) -> None:
    happened = event(body=text, session_key=f"{project}-{principal}", cwd=f"/srv/{project}", **more)
    store.apply(
        RecordObservation(event=happened, source="test", workspace="default", project=project),
        principal=principal,
    )


@pytest.fixture
def ask(store: Store) -> Generator[Callable[..., list[Near]]]:
    """Ask by vector; in the projects of these names, without a name in all."""
    with asking(store) as asked:
        yield asked


def texts(store: Store, found: list[Near]) -> list[str]:
    """What the units say, best first."""
    said: list[str] = []
    for one in found:
        if one.is_turn:
            (row,) = store.all("SELECT body AS text FROM observations WHERE seq = ?", one.number)
        else:
            (row,) = store.all(
                "SELECT substr(v.content, v.body_start + c.text_start + 1, c.text_end - c.text_start) AS text"
                " FROM page_chunks c JOIN pages p ON p.number = c.page_number JOIN page_versions v ON v.id = p.version_id"
                " WHERE c.number = ?",
                one.number,
            )
        said.append(row["text"])
    return said
