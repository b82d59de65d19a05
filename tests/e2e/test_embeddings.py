"""The local embedder in a whole stack: on by itself, found in other words, changed, killed, and taken away."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.embedding import command, state
from tests.e2e.running import Running, send, wait_until

pytestmark = pytest.mark.stack

PAGES = {
    "notes/uploads.md": "# Uploads\nThe uploader tries three times before it gives up.",
    "notes/lamps.md": "# Lamps\nThe lighthouse lamps are replaced each spring.",
    "notes/birds.md": "# Birds\nHerons nest behind the harbour wall.",
}


@pytest.fixture(scope="module")
def memoryd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    home = tmp_path_factory.mktemp("embeddings")
    # As nobody said anything about an embedder.
    with Running(home, environ={"MEMORYD_MODELS__EMBED_PROVIDER": ""}, conditions=["patient"]) as running:
        for path, body in PAGES.items():
            call(running, "memory_write_page", path=path, body=body, project="harbour", workspace="default")
        yield running


def call(memoryd: Running, name: str, **arguments: Any) -> Any:
    status, answer = memoryd.request("POST", f"/api/v1/tools/{name}", arguments)
    assert status == 200, answer
    return answer


def embedder_pids(memoryd: Running) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"memory_core.models.local_process" in words and os.fsencode(memoryd.data_dir) in b" ".join(words):
            found.append(int(entry.name))
    return found


def test_what_is_written_gets_its_vectors_by_itself(memoryd: Running):
    wait_until(lambda: state(memoryd).get("done") == len(PAGES), seconds=90, saying="all have vectors")

    found = state(memoryd)
    assert (found["state"], found["provider"], found["dimensions"]) == ("complete", "local", 384)
    assert found["index"] == "table"
    assert len(embedder_pids(memoryd)) == 1
    vectors = call(memoryd, "memory_status")["health"]["vectors"]
    assert vectors["progress"] == f"{len(PAGES)} of {len(PAGES)}"


def test_the_command_line_makes_all_anew_and_says_what_it_did(memoryd: Running):
    wait_until(lambda: state(memoryd).get("done") == len(PAGES), seconds=90, saying="all have vectors")
    told = command(memoryd, "embed", "--dry-run")
    assert (told["would_embed"], told["state"]) == (0, "complete")

    done = command(memoryd, "embed", "--force", "--all-projects", "--yes")

    assert done["job"]["result"]["embedded"] == len(PAGES)
    assert (done["done"], done["failed"]) == (len(PAGES), 0)


@pytest.mark.kills
def test_an_embedder_that_is_killed_costs_nothing_that_lasts(memoryd: Running):
    wait_until(lambda: state(memoryd).get("done") == len(PAGES), seconds=90, saying="all have vectors")
    send(embedder_pids(memoryd), signal.SIGKILL)
    call(
        memoryd,
        "memory_write_page",
        path="notes/new.md",
        body="# New\nSeals sleep here.",
        project="harbour",
        workspace="default",
    )

    wait_until(
        lambda: state(memoryd).get("done") == len(PAGES) + 1, seconds=90, saying="the new page has its vector"
    )


def test_the_model_in_use_is_listed_whole_and_is_not_removed(memoryd: Running):
    (model,) = command(memoryd, "models", "list")["models"]
    assert (model["name"], model["built_in"]) == ("all-minilm-l6-v2", True)
    assert "it is the embedder of this install" in model["in_use"]
    assert command(memoryd, "models", "verify")["models"][0]["faults"] == []
    refused = command(memoryd, "models", "remove", "all-minilm-l6-v2", "--yes", expect=1)
    assert "memoryd[local]" in refused["error"]["message"]
