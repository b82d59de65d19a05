"""`memoryd sessions`, against the real gate."""

from __future__ import annotations

import io
import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from client.durable.directory import identity_of
from client.durable.routes import HttpSession
from memory_core import limits
from memory_core.clock import SystemClock
from memory_core.domain.agent_message import Message, Role, ToolCall, read_message
from memory_core.domain.audit_event import (
    TOOL_CALLS,
    CallPlanned,
    ModelCompleted,
    ModelStarted,
    TurnStarted,
)
from memory_core.ids import IdSource, id_text
from tests.client.durable.gate import Gate
from tests.client.prompt import Prompt
from tests.durable.working import Client, message, said


@pytest.fixture
def session(person: Prompt, gate: Gate) -> Client:
    """A session in this directory, of two turns, that nobody holds."""
    directory = asdict(identity_of(".", os.environ))
    client = Client(gate.house, directory=directory, title="Mend the\u202euploader", project="mending")
    client.claim()
    client.append(said("one"), said("two"))
    client.append(said("three"))
    client.post("release", {"directory": directory})
    return client


def test_durable_sessions_are_listed_and_shown(person: Prompt, session: Client):
    assert session.id in [s["id"] for s in person.asks("sessions", "list", "--durable")]
    assert session.id in [s["id"] for s in person.asks("sessions", "list", "--project", "mending")]
    (listed,) = person.asks("sessions", "list", "--project", "default/mending")
    assert listed["event_count"] == 3
    assert "\t3\t" in person.says("sessions", "list", "--project", "mending")
    shown = person.says("sessions", "list", "--durable", "--project", "mending")
    assert "Mend the\\u202euploader" in shown
    assert person.asks("sessions", "show", session.id)["last_sequence"] == 3
    assert "\u202e" not in person.says("sessions", "show", session.id)
    person.says("sessions", "list", "--durable", "--open", code=2)


@pytest.mark.parametrize("durable", [["--durable"], []])
def test_a_list_of_sessions_goes_on_where_a_page_ends(
    person: Prompt, gate: Gate, monkeypatch: pytest.MonkeyPatch, durable: list[str]
):
    project = f"many-{len(durable)}"
    place = asdict(identity_of(".", os.environ))
    made = [Client(gate.house, directory=place, project=project).id for _ in range(5)]
    monkeypatch.setattr(limits, "DURABLE_SESSIONS_PAGE_MAX", 2)
    monkeypatch.setattr(limits, "LIST_MAX", 2)

    def listed(*words: str) -> list[str]:
        found = person.asks("sessions", "list", "--project", project, *durable, *words)
        return [session["id"] for session in found]

    assert listed() == made[::-1]
    assert listed("-n", "3") == made[:1:-1]
    assert listed("--all") == made[::-1]


def test_a_session_gets_another_title_unless_somebody_holds_it(person: Prompt, session: Client):
    assert "A better one" in person.says("sessions", "title", session.id, "A better one")
    assert person.asks("sessions", "show", session.id)["title"] == "A better one"

    session.claim()
    person.says("sessions", "title", session.id, "A third one", code=1)
    assert person.asks("sessions", "show", session.id)["title"] == "A better one"


def test_a_session_is_compacted_up_to_an_event_or_by_plan(person: Prompt, session: Client):
    person.says("sessions", "compact", session.id, code=2)
    assert "Nothing to sum up" in person.says("sessions", "compact", session.id, "--context-window", "100000")

    person.says("sessions", "compact", session.id, "--through", "1", code=1)
    assert "the turn ends with event 2" in person.err
    assert "memoryd jobs show" in person.says("sessions", "compact", session.id, "--through", "2")


def test_knowledge_is_drawn_from_a_session_only_in_its_directory(
    person: Prompt, session: Client, tmp_path: Path
):
    person.says("sessions", "distill", session.id, "-C", str(tmp_path), code=1)

    job = person.asks("sessions", "distill", session.id)["job"]

    assert person.asks("jobs", "show", job)["kind"] == "distillation"
    assert person.asks("sessions", "show", session.id)["is_held"] is False


def test_a_session_is_exported_whole_and_replaces_no_file(person: Prompt, session: Client, tmp_path: Path):
    file = tmp_path / "session.json"

    assert str(file) in person.says("sessions", "export", session.id, "--output", str(file))

    written = json.loads(file.read_text())
    assert list(written) == ["session", "snapshot", "events", "assets"]
    assert [e["payload"]["content"][0]["data"] for e in written["events"]] == ["one", "two", "three"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(person.says("sessions", "export", session.id)) == written
    before = file.read_bytes()
    person.says("sessions", "export", session.id, "--output", str(file), code=1)
    assert "is there already" in person.err
    assert (file.read_bytes(), [f.name for f in tmp_path.glob("*.part")]) == (before, [])


def test_an_export_of_what_is_not_there_leaves_no_file(person: Prompt, tmp_path: Path):
    unknown = "01a22cdd-420f-7002-a074-4c148a70b1e1"
    person.says("sessions", "export", unknown, "-o", str(tmp_path / "a.json"), code=1)
    assert [file.name for file in tmp_path.iterdir() if "json" in file.name] == []


def test_there_is_nothing_to_recover_in_a_whole_session(person: Prompt, session: Client):
    person.says("sessions", "recover", session.id, code=1)
    assert person.asks("sessions", "show", session.id)["is_held"] is False


def test_an_interrupted_turn_is_recovered_once(person: Prompt, session: Client, gate: Gate):
    port = HttpSession(gate.transport(), session.id, identity_of(".", os.environ))
    port.claim()
    port.confirm_replay(port.replay())
    port.begin_turn(id_text(IdSource(SystemClock()).new()), read_message(message("and then?"), "input"))
    port.release()
    assert person.asks("sessions", "show", session.id)["has_journal"] is True

    person.says("sessions", "recover", session.id, "--accept-unknown-effects")

    shown = person.asks("sessions", "show", session.id)
    assert (shown["has_journal"], shown["is_held"]) == (False, False)
    person.says("sessions", "recover", session.id, code=1)


def test_a_deletion_says_what_stays_and_asks(
    person: Prompt, session: Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    person.says("sessions", "delete", session.id, code=1)
    for words in ("3 events", "in git", "backup", "free pages", "no secure erasure", "from 3 events yet"):
        assert words in person.err
    assert person.asks("sessions", "show", session.id)["last_sequence"] == 3

    assert person.asks("sessions", "delete", session.id, "--yes", "--with-pages")["deleted"] is True

    person.says("sessions", "show", session.id, code=1)


def test_no_durable_session_is_said_of_the_project(person: Prompt):
    person.says("knowledge", "remember", "a", "-b", "b", "--project", "bare")
    assert person.says("sessions", "list", "--durable", "--project", "bare") == (
        "No durable session in the project bare.\n"
    )


def interrupted(session: Client, gate: Gate, state: str) -> ToolCall:
    """The session has a turn under way, whose one call is planned or started; its program is gone."""
    port = HttpSession(gate.transport(), session.id, identity_of(".", os.environ))
    ids = IdSource(SystemClock())
    turn_id, call = id_text(ids.new()), ToolCall(id_text(ids.new()), "shell", {"command": "make deploy"})
    port.claim()
    port.confirm_replay(port.replay())
    port.begin_turn(turn_id, read_message(message("deploy it"), "input"))
    asked = Message(role=Role.ASSISTANT, tool_calls=(call,))
    audit = [
        TurnStarted(turn_id=turn_id),
        ModelStarted(turn_id=turn_id, round=1),
        CallPlanned(turn_id=turn_id, round=1, call=call),
        ModelCompleted(turn_id=turn_id, round=1, finish_reason=TOOL_CALLS),
    ]
    port.open_batch(turn_id, asked, audit)
    if state == "started":
        port.start_call(call)
    port.release()
    return call


def test_a_recovery_that_is_refused_names_the_calls_and_what_to_say(
    person: Prompt, session: Client, gate: Gate
):
    call = interrupted(session, gate, "started")

    person.says("sessions", "recover", session.id, code=1)

    for words in (f"shell ({call.id})", f"memoryd sessions recover {session.id} --accept-unknown-effects"):
        assert words in person.err
    person.says("sessions", "recover", session.id, "--json", code=1)
    assert json.loads(person.err)["error"]["code"] == "uncertain_calls"
    shown = person.asks("sessions", "show", session.id)
    assert (shown["has_journal"], shown["is_held"]) == (True, False)
    report = person.asks("sessions", "recover", session.id, "--accept-unknown-effects")
    assert report["uncertain_results"] == 1


def test_a_call_that_was_not_started_needs_no_word(person: Prompt, session: Client, gate: Gate):
    interrupted(session, gate, "planned")
    assert "not_executed_results" in person.says("sessions", "recover", session.id)


def test_a_session_is_recovered_in_its_directory_and_only_when_it_is_free(
    person: Prompt, session: Client, gate: Gate, tmp_path: Path
):
    interrupted(session, gate, "planned")
    for command in ("recover", "distill"):
        person.says("sessions", command, session.id, "-C", str(tmp_path), code=1)
        assert f"which was {Path.cwd()} when" in person.err
    session.claim()
    person.says("sessions", "recover", session.id, code=1)
    assert "somebody else works on this session" in person.err
    assert person.asks("sessions", "show", session.id)["has_journal"] is True


def test_a_session_that_somebody_works_on_is_not_deleted(
    person: Prompt, session: Client, monkeypatch: pytest.MonkeyPatch
):
    session.claim()
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))

    person.says("sessions", "delete", session.id, code=1)

    assert "is worked on until" in person.err
    assert "Delete it?" not in person.err
    person.says("sessions", "delete", session.id, "--yes", code=1)
    assert "it is worked on, at most until 20" in person.err
    assert person.asks("sessions", "show", session.id)["last_sequence"] == 3
    session.post("release", {"directory": session.directory})
    assert person.asks("sessions", "delete", session.id, "--yes")["deleted"] is True


def test_an_unfinished_turn_is_told_before_it_is_deleted(
    person: Prompt, session: Client, gate: Gate, monkeypatch: pytest.MonkeyPatch
):
    interrupted(session, gate, "started")
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    person.says("sessions", "delete", session.id, code=1)
    assert "unfinished and would be lost" in person.err


def test_a_deletion_names_the_page_that_stays_or_goes(
    person: Prompt, session: Client, monkeypatch: pytest.MonkeyPatch
):
    session.claim()
    session.resume()
    session.post("close", {"directory": session.directory})
    [page] = [page for page in person.asks("sessions", "list") if page["id"] == session.id]
    assert page["ended_at"]
    monkeypatch.setattr("sys.stdin", io.StringIO("n\nn\n"))

    person.says("sessions", "delete", session.id, code=1)
    assert "stays: its page in the wiki, sessions/" in person.err
    person.says("sessions", "delete", session.id, "--with-pages", code=1)

    assert "goes too: its page in the wiki, sessions/" in person.err
    assert "stays: its page" not in person.err
