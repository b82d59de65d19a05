"""Another embedding model, and an embedder that fails in every way, while pages are written and searched."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.embedding import LivingEmbedder, Repeated, command, state
from tests.e2e.running import Running, wait_until

pytestmark = pytest.mark.stack

PAGES = 150
#: Waiting for an embedding is at most 1.5 s (`QUERY_EMBED_SECONDS`); the rest is a crowded machine's.
ANSWER_SECONDS = 10.0
WHERE = {"project": "harbour", "workspace": "default"}
QUICK = "JOB_PROVIDER_BUSY_SECONDS=0.5,JOB_BACKOFF_SECONDS=0.2,POOL_LOOK_SECONDS=1"


@pytest.fixture(scope="module")
def embedder() -> Iterator[LivingEmbedder]:
    with LivingEmbedder(former=64, present=96) as made:
        yield made


@pytest.fixture(scope="module")
def memoryd(tmp_path_factory: pytest.TempPathFactory, embedder: LivingEmbedder) -> Iterator[Running]:
    """One whose pages all have vectors of the model `former`."""
    environ = {
        **embedder.settings("former"),
        "MEMORYD_MODELS__TIMEOUT_SECONDS": "2",
        "POOL_QUICK": QUICK,
    }
    with Running(
        tmp_path_factory.mktemp("load"), environ=environ, conditions=["quick_jobs", "quick_pool"]
    ) as made:
        write(made, "notes/cat.md", "# Pets\nThe cat sleeps.")
        for number in range(PAGES):
            write(
                made,
                f"notes/ship{number}.md",
                f"# Ship {number}\nThe vessel number{number} lies at its berth.",
            )
        until_all_have_vectors(made)
        yield made


def write(memoryd: Running, path: str, body: str) -> None:
    memoryd.tool("memory_write_page", path=path, body=body, **WHERE)


def query(memoryd: Running, text: str) -> dict[str, Any]:
    return memoryd.tool("memory_query", query=text, explain=True, **WHERE)


def until_all_have_vectors(memoryd: Running) -> dict[str, Any]:
    def whole() -> dict[str, Any] | None:
        found = state(memoryd)
        return found if found["state"] == "complete" and found["done"] else None

    return wait_until(whole, seconds=90, saying="all have vectors")


def by_meaning(answer: dict[str, Any]) -> list[str]:
    """Paths of the hits that were found by their vectors, best first."""
    return [hit["path"] for hit in answer["hits"] if "vector" in hit["score_details"]["streams"]]


def has_all_streams(answer: dict[str, Any]) -> dict[str, Any] | None:
    """The first question after a start may be too late for its embedding: its client is loaded then."""
    return answer if not answer.get("streams_failed", []) else None


def is_found_by_its_meaning(memoryd: Running) -> None:
    found = wait_until(lambda: has_all_streams(query(memoryd, "feline naps")))
    assert by_meaning(found)[:1] == ["notes/cat.md"]


class Load:
    """Pages are written and searched beside the test; each search must answer by words, in time."""

    def __init__(self, memoryd: Running, name: str) -> None:
        self.memoryd = memoryd
        self.name = name
        self.failed: list[list[str]] = []
        self._writing = Repeated(self._write)
        self._searching = Repeated(self._search)

    def _write(self, number: int) -> None:
        write(self.memoryd, f"load/{self.name}{number}.md", f"# Log\nEntry {self.name}{number} of the pilot.")

    def _search(self, number: int) -> None:
        begun = time.monotonic()
        # Another question each time: a known one has its embedding already.
        answer = query(self.memoryd, f"number{number % PAGES} {self.name}x{number}")
        assert time.monotonic() - begun < ANSWER_SECONDS
        assert f"notes/ship{number % PAGES}.md" in [hit["path"] for hit in answer["hits"]]
        self.failed.append(answer.get("streams_failed", []))

    def __enter__(self) -> Load:
        self._writing.__enter__()
        self._searching.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            self._searching.__exit__()
        finally:
            self._writing.__exit__()

    def goes_on(self, searches: int, pages: int) -> bool:
        return self._searching.count >= searches and self._writing.count >= pages


def test_another_model_is_made_in_the_background_and_words_answer_meanwhile(
    memoryd: Running, embedder: LivingEmbedder
):
    is_found_by_its_meaning(memoryd)
    embedder.fails("busy")
    memoryd.stop()
    memoryd.environ |= embedder.settings("present")
    memoryd.start()

    with Load(memoryd, "change") as load:
        wait_until(lambda: state(memoryd).get("model") == "present", saying="the new model is bound")
        wait_until(lambda: load.goes_on(searches=10, pages=5))
        before = state(memoryd)
        assert (before["done"], before["former_models"]) == (0, 1)
        assert before["total"] > PAGES
        # The question has its embedding, and vectors of the former model are still there: they are not compared.
        asked = wait_until(lambda: has_all_streams(query(memoryd, "feline naps")))
        assert state(memoryd)["done"] == 0
        assert by_meaning(asked) == []
        embedder.is_mended()
        seen = [before["done"]]
        wait_until(lambda: seen.append(state(memoryd)["done"]) or seen[-1] > PAGES, seconds=90)
    found = until_all_have_vectors(memoryd)

    assert seen == sorted(seen)
    assert load.failed[-1] == []
    assert (found["failed"], found["done"]) == (0, found["total"])
    is_found_by_its_meaning(memoryd)


@pytest.mark.parametrize("fault", ["dead", "error"])
def test_an_embedder_that_is_away_costs_vectors_and_nothing_else(
    memoryd: Running, embedder: LivingEmbedder, fault: str
):
    until_all_have_vectors(memoryd)
    embedder.fails(fault)
    with Load(memoryd, fault) as load:
        wait_until(lambda: ["vector"] in load.failed)
        # The job was tried, and waits: it does not fail for good, however long that lasts.
        waits = wait_until(lambda: [job for job in jobs(memoryd, "pending") if job["waits_for"]])
        assert [job["waits_for"] for job in waits] == ["provider_busy"]
        tries = waits[0]["claims"]
        wait_until(lambda: [job for job in jobs(memoryd, "pending") if job["claims"] >= tries + 3])
        wait_until(lambda: load.goes_on(searches=20, pages=20))
    told = command(memoryd, "embed", "--dry-run")
    assert told["would_embed"] >= 20
    assert command(memoryd, "embed", "--wait", "1", expect=1)["error"]["code"] == "still_going"

    embedder.is_mended()

    found = until_all_have_vectors(memoryd)
    assert (found["failed"], jobs(memoryd, "failed")) == (0, [])
    assert all(failed in ([], ["vector"]) for failed in load.failed)
    assert load.failed[-1] == ["vector"]


def jobs(memoryd: Running, state: str) -> list[dict[str, Any]]:
    status, found = memoryd.request("GET", f"/api/v1/jobs?kind=embedding&state={state}")
    assert status == 200
    return found


@pytest.mark.parametrize("fault", ["hang", "garbage", "short"])
def test_an_embedder_that_answers_nonsense_fails_its_command_until_it_is_mended(
    memoryd: Running, embedder: LivingEmbedder, fault: str
):
    until_all_have_vectors(memoryd)
    embedder.fails(fault)
    with Load(memoryd, fault) as load:
        wait_until(lambda: ["vector"] in load.failed)
        wait_until(lambda: load.goes_on(searches=20, pages=5))
        if fault != "hang":  # a job waits for its provider for minutes
            said = command(memoryd, "embed", expect=1)
            assert (said["job"]["state"], said["job"]["last_error"]) == (
                "failed",
                "the model provider failed",
            )
    assert load.failed[-1] == ["vector"]

    embedder.is_mended()

    done = command(memoryd, "embed")
    assert (done["state"], done["failed"], done["pending"]) == ("complete", 0, 0)
