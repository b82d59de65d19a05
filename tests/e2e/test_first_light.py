"""From a hook to memory and back, through every real process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.running import Running, wait_until

pytestmark = pytest.mark.stack

CWD = "/srv/tidal-ledger"


@pytest.fixture(scope="module")
def memoryd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    home = tmp_path_factory.mktemp("first light")
    with Running(home, data_dir=home / "data", conditions=["patient"]) as running:
        yield running


def claude_session(memoryd: Running, session: str, *, cwd: str, prompt: str) -> None:
    common = {"session_id": session, "cwd": cwd}
    memoryd.hook("SessionStart", **common, source="startup", model="claude-opus-5")
    memoryd.hook("UserPromptSubmit", **common, prompt=prompt)
    memoryd.hook("SessionEnd", **common, reason="prompt_input_exit")


def start_codex(memoryd: Running, session: str, *, cwd: str) -> str:
    status, text = memoryd.request("GET", f"/handoff?agent=codex&session_id={session}&cwd={cwd}")
    assert status == 200
    return str(text or "")


def open_handoffs(memoryd: Running, project: str) -> int:
    status, found = memoryd.request("GET", f"/api/v1/handoffs?state=open&project={project}")
    return len(found) if status == 200 else 0


def test_what_claude_code_leaves_is_handed_to_codex_once(memoryd: Running):
    claude_session(memoryd, "claude-1", cwd=f"{CWD}-one", prompt="Round the fees half-even.")
    wait_until(lambda: open_handoffs(memoryd, "tidal-ledger-one"), saying="the handoff is there")

    first = start_codex(memoryd, "codex-1", cwd=f"{CWD}-one")
    memoryd.hook("UserPromptSubmit", client="codex", session_id="codex-1", cwd=f"{CWD}-one", prompt="go on")
    wait_until(lambda: open_handoffs(memoryd, "tidal-ledger-one") == 0, saying="it is accepted")
    second = start_codex(memoryd, "codex-2", cwd=f"{CWD}-one")

    assert "Round the fees half-even." in first
    assert "claude-code" in first
    assert second == ""


def test_a_start_whose_answer_was_cut_is_given_the_handoff_again(memoryd: Running):
    claude_session(memoryd, "claude-3", cwd=f"{CWD}-cut", prompt="Name the retry policy.")
    wait_until(lambda: open_handoffs(memoryd, "tidal-ledger-cut"), saying="the handoff is there")

    cut = start_codex(memoryd, "codex-3", cwd=f"{CWD}-cut")
    again = start_codex(memoryd, "codex-3", cwd=f"{CWD}-cut")
    other = start_codex(memoryd, "codex-4", cwd=f"{CWD}-cut")

    assert "Name the retry policy." in cut
    assert "Name the retry policy." in again
    assert other == ""


def test_an_agent_that_is_opened_and_closed_eats_no_handoff(memoryd: Running):
    claude_session(memoryd, "claude-5", cwd=f"{CWD}-peek", prompt="Keep the baton.")
    wait_until(lambda: open_handoffs(memoryd, "tidal-ledger-peek"), saying="the handoff is there")

    assert "Keep the baton." in start_codex(memoryd, "codex-5", cwd=f"{CWD}-peek")
    memoryd.hook("SessionStart", client="codex", session_id="codex-5", cwd=f"{CWD}-peek", source="startup")
    memoryd.hook("SessionEnd", client="codex", session_id="codex-5", cwd=f"{CWD}-peek", reason="other")
    wait_until(lambda: open_handoffs(memoryd, "tidal-ledger-peek"), saying="it is open again")

    assert "Keep the baton." in start_codex(memoryd, "codex-6", cwd=f"{CWD}-peek")


def test_one_event_delivered_ten_times_in_parallel_is_stored_once(memoryd: Running):
    payload = {
        "session_id": "parallel",
        "cwd": f"{CWD}-parallel",
        "tool_name": "Bash",
        "tool_input": {"command": "pytest -q"},
        "tool_response": {"stdout": "3 passed"},
        "tool_use_id": "toolu_parallel_1",
    }
    answers: list[int] = []
    threads = [
        threading.Thread(target=lambda: answers.append(memoryd.hook("PostToolUse", **payload)[0]))
        for _ in range(10)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    memoryd.hook("UserPromptSubmit", session_id="parallel", cwd=f"{CWD}-parallel", prompt="continue")
    memoryd.hook("UserPromptSubmit", session_id="parallel", cwd=f"{CWD}-parallel", prompt="continue")

    assert set(answers) <= {200, 202}
    counted = wait_until(lambda: observations(memoryd, "tidal-ledger-parallel") == 3, saying="1 + 2 events")
    assert counted


def observations(memoryd: Running, project: str) -> int:
    status, found = memoryd.request("GET", f"/api/v1/sessions?project={project}")
    return sum(session["observation_count"] for session in found) if status == 200 else 0


def test_what_was_said_is_found_by_another_agent(memoryd: Running):
    claude_session(
        memoryd, "claude-7", cwd=f"{CWD}-find", prompt="The zanzibar flag switches the export off."
    )

    def hits() -> list[dict[str, str]]:
        status, answer = memoryd.request(
            "POST",
            "/api/v1/tools/memory_query",
            {"query": "what does zanzibar do?", "project": "tidal-ledger-find"},
        )
        # What was said is found before its page is.
        found = answer.get("hits", []) if status == 200 else []
        return [hit for hit in found if hit["path"].startswith("sessions/")]

    wait_until(hits, saying="the session page is found")
    file = wait_until(
        lambda: next((memoryd.data_dir / "wiki").rglob("tidal-ledger-find/sessions/*.md"), None),
        saying="its file follows",
    )
    assert "zanzibar" in file.read_text()


def test_a_page_written_is_a_file_and_gone_after_deletion(memoryd: Running):
    written = memoryd.tool(
        "memory_write_page", path="decisions/fees", body="# Fees\n\nHalf-even.", project="wiki"
    )
    file = memoryd.data_dir / "wiki" / "default" / "wiki" / written["path"]
    wait_until(file.is_file, saying="the file is there")

    memoryd.tool("memory_delete_page", path=written["path"], project="wiki")

    assert written["index_status"] == "indexed"
    wait_until(lambda: not file.exists(), saying="the file is gone")


def test_a_second_stack_on_the_same_data_is_refused_with_the_holder(memoryd: Running, tmp_path: Path):
    second = Running(tmp_path, environ={"MEMORYD_DATA_DIR": str(memoryd.data_dir)})
    second.start(ready=False)
    assert second.process is not None

    assert second.process.wait(60) != 0
    assert memoryd.process is not None
    assert str(memoryd.process.pid) in second.terminal()
    second.process = None
