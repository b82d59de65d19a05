"""`GET /handoff`: given once, given again to who asked, and never an error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from memory_core import limits
from tests.web.house import House


@pytest.fixture(autouse=True)
def patient_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent's start waits for the writer a second; these tests wait until it has answered."""
    monkeypatch.setattr(limits, "HANDOFF_WAIT_SECONDS", 60.0)


def session(house: House, key: str, text: str, cwd: str = "/srv/repo") -> None:
    for event, more in (("SessionStart", {}), ("UserPromptSubmit", {"prompt": text}), ("SessionEnd", {})):
        body = {"session_id": key, "cwd": cwd, "hook_event_name": event, **more}
        assert house.post("/hook?agent=claude-code&wait=commit", body).status_code == 200


def ask(house: House, key: str, agent: str = "codex") -> Any:
    return house.get(f"/handoff?agent={agent}&cwd=/srv/repo&session_id={key}")


def test_what_one_agent_leaves_the_next_is_given_and_given_again(house: House) -> None:
    house.start_writer()
    session(house, "s1", "Round the fees half-even.")
    first, again, other = ask(house, "c1"), ask(house, "c1"), ask(house, "c2")
    assert first.mimetype == "text/markdown"
    assert "half-even" in first.text
    assert "half-even" in again.text
    assert (other.status_code, other.text) == (200, "")


@contextmanager
def no_writer(house: House) -> Iterator[None]:
    """Nobody answers, and nobody waits for it."""
    house.stop_writer()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "HANDOFF_WAIT_SECONDS", 0.05)
        yield


def test_without_a_writer_the_session_starts_with_nothing(house: House) -> None:
    with no_writer(house):
        answer = ask(house, "c1")
    assert (answer.status_code, answer.text) == (200, "")


def test_an_offer_that_comes_too_late_ties_the_handoff_to_nobody(house: House) -> None:
    house.start_writer()
    session(house, "s1", "Round the fees half-even.")
    with no_writer(house):
        assert ask(house, "gone").text == ""
    house.start_writer()
    assert "half-even" in ask(house, "c2").text


def test_no_session_id_is_an_empty_answer(house: House) -> None:
    assert (house.get("/handoff?agent=codex").status_code, house.get("/handoff").text) == (200, "")


def write(house: House, path: str, body: str, **more: Any) -> None:
    page = {"path": path, "body": body, "project": "repo", **more}
    assert house.post("/api/v1/tools/memory_write_page", page).status_code == 200


def brief(house: House, key: str = "c9", **query: Any) -> str:
    rest = "".join(f"&{name}={value}" for name, value in query.items())
    return house.get(f"/handoff?agent=codex&cwd=/srv/repo&session_id={key}&briefing=1{rest}").text


def test_a_brief_comes_behind_the_handoff_where_it_is_asked_for(house: House) -> None:
    house.start_writer()
    session(house, "s1", "Round the fees half-even.")
    write(house, "_rules/tests", "# Tests\n\nRun them before each commit.")
    both = brief(house, "c1")
    assert both.index("half-even") < both.index("before each commit")
    assert "before each commit" not in ask(house, "c1").text
    alone = brief(house, "c2")
    assert alone.startswith("<!-- memoryd:recalled")
    assert "Run them before each commit." in alone


def test_a_brief_keeps_to_its_budget_and_names_what_has_no_room(house: House) -> None:
    house.start_writer()
    for name in ("a", "b", "c"):
        write(house, f"_rules/{name}", f"# Rule {name}\n\n" + f"{name} must be. " * 200)
    write(house, "decisions/queue", "# Queue\n\nOne writer.", pinned=True)
    text = brief(house)
    assert len(text) <= 4_000
    assert text.index("One writer.") < text.index("Rule a")
    assert "memory_read_page has the rest" in text
    assert "- _rules/c.md" in text
    assert "c must be" not in text
    assert 500 < len(brief(house, briefing_budget=20_000)) <= 20_000
    assert "c must be" in brief(house, briefing_budget=20_000)
    assert len(brief(house, briefing_budget=1)) <= 500
    assert len(brief(house, briefing_budget="many")) <= 4_000


def test_a_brief_is_of_the_sessions_project_wherever_it_went(house: House) -> None:
    house.start_writer()
    write(house, "_rules/r", "# R\n\nof the repo")
    session(house, "s1", "hello")
    moved = house.get("/handoff?agent=claude-code&cwd=/srv/other&session_id=s1&briefing=1").text
    assert "of the repo" in moved
    other = house.get("/handoff?agent=claude-code&cwd=/srv/other&session_id=s2&briefing=1")
    assert (other.status_code, other.text) == (200, "")


def test_a_brief_needs_no_writer_and_a_token_that_may_read(house: House) -> None:
    house.start_writer()
    write(house, "_rules/r", "# R\n\nof the repo")
    bearer = {"Authorization": f"Bearer {house.add_token('capture')}"}
    path = "/handoff?agent=codex&cwd=/srv/repo&session_id=c9&briefing=1"
    with no_writer(house):
        assert "of the repo" in brief(house)
        assert "of the repo" not in house.client().get(path, headers=bearer).text
