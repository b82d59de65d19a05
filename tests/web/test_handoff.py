"""`GET /handoff`: given once, given again to who asked, and never an error."""

from __future__ import annotations

from typing import Any

from tests.web.house import House


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


def test_without_a_writer_the_session_starts_with_nothing(house: House) -> None:
    answer = ask(house, "c1")
    assert (answer.status_code, answer.text) == (200, "")


def test_an_offer_that_comes_too_late_ties_the_handoff_to_nobody(house: House) -> None:
    house.start_writer()
    session(house, "s1", "Round the fees half-even.")
    house.stop_writer()
    assert ask(house, "gone").text == ""
    house.start_writer()
    assert "half-even" in ask(house, "c2").text


def test_no_session_id_is_an_empty_answer(house: House) -> None:
    assert (house.get("/handoff?agent=codex").status_code, house.get("/handoff").text) == (200, "")
