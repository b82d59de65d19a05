"""What schemas 4 to 6 brought: provenance, tombstones, jobs that failed, snapshots, assets, the journal of a turn under way."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

import pytest

from memory_core import limits
from memory_core.ids import id_bytes
from tests.client.durable.gate import Gate
from tests.client.prompt import Prompt
from tests.emelex.conftest import MakeEmelex
from tests.emelex.databases import Emelex, message, said
from tests.emelex.test_import import replay, run, texts


def drawn(emelex: Emelex, session_id: str, through: int, job_id: str, index: int) -> dict[str, Any]:
    return {
        "provenance_session_id": session_id,
        "source_first_sequence": 1,
        "source_last_sequence": through,
        "source_sha256": emelex.source(session_id, through)["source_sha256"],
        "distillation_job_id": job_id,
        "candidate_index": index,
    }


def distilled(emelex: Emelex, session_id: str, **entry: Any) -> tuple[str, str]:
    """A completed distillation that said one thing: the job and the entry."""
    job_id = emelex.job("distillation", session_id, 1, "completed")
    entry_id = emelex.knowledge(Path.cwd(), "build", active=1, **entry)
    emelex.version_of(
        entry_id,
        1,
        "make",
        confidence=0.8,
        source_session_id=session_id,
        **drawn(emelex, session_id, 1, job_id, 0),
    )
    emelex.add(
        "distillation_results",
        job_id=job_id,
        candidate_index=0,
        knowledge_id=entry_id,
        knowledge_version=1,
        created_at=emelex.now(),
    )
    return job_id, entry_id


@pytest.mark.parametrize("version", [4, 5, 6])
def test_what_was_distilled_says_from_which_events_and_outlives_its_session(
    person: Prompt, gate: Gate, make: MakeEmelex, version: int
):
    emelex = make(version)
    session_id = emelex.session(Path.cwd(), (said("we build with make"),), (said("bye"),))
    job_id, entry_id = distilled(emelex, session_id)

    run(person, emelex)

    shown = person.asks("knowledge", "show", entry_id)
    assert (shown["confidence"], shown["origin"], shown["content"]) == (0.8, "distillation", "make")
    assert shown["source"]["session"] == session_id
    # Here it is this database's digest of the events that it names.
    (event,) = gate.rows(
        "SELECT digest FROM session_events WHERE session_id = ? AND sequence = 1", id_bytes(session_id)
    )
    assert shown["source"]["sha256"] == event["digest"].hex()
    (result,) = gate.rows("SELECT * FROM distillation_results WHERE job_id = ?", id_bytes(job_id))
    assert (result["knowledge_id"], result["action"]) == (id_bytes(entry_id), "upserted")
    assert person.asks("jobs", "show", job_id)["state"] == "completed"
    person.says("sessions", "delete", session_id, "--yes")
    assert person.asks("knowledge", "show", entry_id)["source"]["session"] == session_id


def test_what_was_forgotten_stays_forgotten_with_its_tombstones(person: Prompt, make: MakeEmelex):
    emelex = make(6)
    session_id = emelex.session(Path.cwd(), (said("we build with make"),))
    gone = emelex.now()
    job_id, entry_id = distilled(emelex, session_id, tombstoned=1, tombstoned_at=gone, pinned=0)
    by_hand = emelex.id()
    common = {"knowledge_id": entry_id, "created_at": gone}
    emelex.add("knowledge_tombstones", id=by_hand, confidence=1.0, origin="manual", **common)
    tombstone = drawn(emelex, session_id, 1, job_id, 1)
    emelex.add(
        "knowledge_tombstones", id=emelex.id(), confidence=0.7, origin="distillation", **common, **tombstone
    )

    run(person, emelex)

    assert person.asks("knowledge", "list") == []
    assert [e["id"] for e in person.asks("knowledge", "list", "--forgotten")] == [entry_id]
    shown = person.asks("knowledge", "show", entry_id)
    assert {t["origin"] for t in shown["tombstones"]} == {"manual", "distillation"}
    revived = person.asks("knowledge", "activate", entry_id, "1")
    assert "make" in person.says("read-page", revived["path"], "--project", revived["project"])


@pytest.mark.parametrize("version", [5, 6])
def test_a_job_that_failed_stays_failed_and_can_be_retried(person: Prompt, make: MakeEmelex, version: int):
    emelex = make(version)
    session_id = emelex.session(Path.cwd(), (said("one"),), (said("two"),))
    failed = emelex.job("compaction", session_id, 1, "failed")
    waiting = emelex.job(
        "distillation", session_id, 2, "pending", failure_count=1, last_error="the model gave no answer"
    )

    run(person, emelex)

    shown = person.asks("jobs", "show", failed)
    assert (shown["state"], shown["failures"], shown["last_error"]) == (
        "failed",
        3,
        "the model gave no answer",
    )
    assert person.asks("jobs", "show", waiting)["failures"] == 1
    person.says("jobs", "retry", failed)
    assert person.asks("jobs", "show", failed)["state"] == "pending"


@pytest.mark.parametrize("version", [4, 5, 6])
def test_a_snapshot_comes_under_whatever_name_its_schema_has(person: Prompt, make: MakeEmelex, version: int):
    emelex = make(version)
    session_id = emelex.session(Path.cwd(), (said("one"),))
    authority = json.dumps({"tools": ["shell"], "workspace_root": str(Path.cwd())})
    at = emelex.now()
    emelex.add(
        "session_snapshots",
        session_id=session_id,
        schema_version=1,
        config_json='{"files":true}',
        tools_json=authority,
        authority_json=authority,
        created_at=at,
        updated_at=at,
    )

    run(person, emelex)

    snapshot = person.asks("sessions", "show", session_id)["snapshot"]
    assert (snapshot["config"], snapshot["authority"]["tools"]) == ({"files": True}, ["shell"])


def pictured(emelex: Emelex, data: bytes) -> tuple[str, dict[str, Any]]:
    """A session whose first message shows a picture."""
    reference = emelex.asset(data)
    content = [{"type": "text", "data": "look"}, {"type": "asset", "data": reference}]
    session_id = emelex.session(Path.cwd())
    (event_id,) = emelex.turn(session_id, ("user_message", message("user", "", content=content)))
    emelex.link(session_id, event_id, reference)
    return session_id, reference


def test_assets_come_with_the_events_that_refer_to_them(person: Prompt, gate: Gate, make: MakeEmelex):
    emelex = make(6, "mine.db")
    data = b"\x89PNG\x00" + secrets.token_bytes(200_000)
    session_id, reference = pictured(emelex, data)

    told = run(person, emelex)

    assert (told["found"]["assets"], told["found"]["asset_bytes"]) == (1, len(data))
    assert told["imported"]["assets"] == 1
    exported = json.loads(person.says("sessions", "export", session_id))
    (link,) = exported["assets"]
    assert (link["sha256"], link["kind"]) == (reference["sha256"], "image")
    place = f"/durable-sessions/{session_id}/events/{link['event_id']}/assets/0"
    assert gate.transport().download(place, len(data)) == data
    replay(gate, session_id)


def test_an_asset_that_is_a_text_is_redacted_and_named_as_it_is_kept(
    person: Prompt, gate: Gate, make: MakeEmelex
):
    secret = "ghp_" + secrets.token_hex(18)
    emelex = make(6)
    session_id, reference = pictured(emelex, f"token {secret}\n".encode())

    run(person, emelex)

    exported = json.loads(person.says("sessions", "export", session_id))
    (link,) = exported["assets"]
    assert link["sha256"] != reference["sha256"]
    assert exported["events"][0]["payload"]["content"][1]["data"]["sha256"] == link["sha256"]
    place = f"/durable-sessions/{session_id}/events/{link['event_id']}/assets/0"
    assert secret.encode() not in gate.transport().download(place, 10_000)


@pytest.mark.parametrize("harm", ["gone", "changed", "a link"])
def test_an_asset_that_cannot_be_had_refuses_the_import_unless_it_may_be_left_out(
    person: Prompt, gate: Gate, make: MakeEmelex, harm: str
):
    emelex = make(6)
    session_id, reference = pictured(emelex, secrets.token_bytes(100))
    file = emelex.assets / reference["sha256"]
    if harm == "changed":
        file.write_bytes(b"other")
    else:
        file.unlink()
    if harm == "a link":
        file.symlink_to("/etc/hostname")

    told = run(person, emelex, code=1)

    assert [(p["kind"], p["what"]) for p in told["problems"]] == [("asset", f"asset {reference['sha256']}")]
    assert "imported" not in told
    person.says("sessions", "show", session_id, code=1)
    run(person, emelex, "--skip-damaged")
    look, note = texts(person, session_id), json.loads(person.says("sessions", "export", session_id))
    assert note["assets"] == []
    assert look == ["look"]
    assert "was not imported" in note["events"][0]["payload"]["content"][1]["data"]
    replay(gate, session_id)


def under_way(emelex: Emelex, *states: str) -> str:
    """A session with a turn under way, whose calls are in these states."""
    session_id, turn_id, at = emelex.session(Path.cwd(), (said("before"),)), emelex.id(), emelex.now()
    asked = message("user", "run them")
    calls = [
        {"id": emelex.id(), "name": "shell", "arguments": {"command": f"step {n}"}}
        for n in range(len(states))
    ]
    planned = message("assistant", "", content=[], tool_calls=calls)
    events: list[dict[str, Any]] = [
        {"type": "turn_started", "turn_id": turn_id},
        {"type": "model_started", "turn_id": turn_id, "round": 1},
        *({"type": "tool_call", "turn_id": turn_id, "round": 1, "call": call} for call in calls),
        {
            "type": "model_completed",
            "turn_id": turn_id,
            "round": 1,
            "finish_reason": "tool_calls",
            "usage": {},
        },
    ]
    for call, state in zip(calls, states, strict=True):
        events += _happened(emelex, call, state)
    audit = [
        {"record": "agent_event", "version": 1, "ordinal": n, "event": event}
        for n, event in enumerate(events)
    ]
    common = {"session_id": session_id, "turn_id": turn_id, "created_at": at, "updated_at": at}
    emelex.add("active_agent_turns", input_json=json.dumps(asked), checkpoint_count=0, **common)
    if states:
        texts_ = {"messages_json": json.dumps([asked, planned]), "audit_json": json.dumps(audit)}
        emelex.add("pending_tool_batches", **texts_, **common)
    for ordinal, (call, state) in enumerate(zip(calls, states, strict=True)):
        is_done = state == "completed"
        result = message("tool", "it worked", tool_call_id=call["id"])
        emelex.add(
            "pending_tool_invocations",
            session_id=session_id,
            call_id=call["id"],
            ordinal=ordinal,
            tool_name=call["name"],
            arguments_json=json.dumps(call["arguments"]),
            state=state,
            result_json=json.dumps(result) if is_done else None,
            result_origin="tool" if is_done else None,
            result_is_error=0 if is_done else None,
            updated_at=at,
        )
    return session_id


def _happened(emelex: Emelex, call: dict[str, Any], state: str) -> list[dict[str, Any]]:
    if state == "planned":
        return []
    named = {"call_id": call["id"], "tool_name": call["name"]}
    place = emelex.identity(Path.cwd()) | {"workspace_root": str(Path.cwd())}
    context = {**named, "arguments": call["arguments"], **place, "reason": "it writes"}
    found: list[dict[str, Any]] = [
        {"type": "approval_requested", "context": context},
        {"type": "approval_resolved", "call_id": call["id"], "decision": {"type": "allow_once"}},
        {"type": "tool_started", **named},
    ]
    if state == "completed":
        found.append(
            {"type": "tool_completed", **named, "output": {"content": "it worked", "is_error": False}}
        )
    return found


def test_a_turn_under_way_comes_with_its_calls_and_is_recovered_here(person: Prompt, make: MakeEmelex):
    emelex = make(6)
    session_id = under_way(emelex, "completed", "started", "planned")

    told = run(person, emelex)

    assert told["found"]["unfinished_turns"] == 1
    assert person.asks("sessions", "show", session_id)["has_journal"] is True
    person.says("sessions", "recover", session_id, code=1)
    assert "shell" in person.err
    assert "--accept-unknown-effects" in person.err
    report = person.asks("sessions", "recover", session_id, "--accept-unknown-effects")
    assert [report[f"{what}_results"] for what in ("exact", "uncertain", "not_executed")] == [1, 1, 1]
    assert person.asks("sessions", "show", session_id)["has_journal"] is False
    assert "it worked" in person.says("sessions", "export", session_id)


def test_a_turn_without_calls_is_closed_as_interrupted(person: Prompt, make: MakeEmelex):
    emelex = make(6)
    session_id = under_way(emelex)
    run(person, emelex)
    assert person.asks("sessions", "recover", session_id)["interrupted_turn"] is True


def test_a_long_session_comes_in_slices_and_whole(
    person: Prompt, gate: Gate, make: MakeEmelex, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(limits, "TURN_SLICE_EVENTS_MAX", 7)
    monkeypatch.setattr(limits, "IMPORT_JOBS_PER_COMMAND", 2)
    emelex = make(6)
    turn = [said(f"{number} {'x' * 300}") for number in range(40)]
    session_id = emelex.session(Path.cwd(), turn, turn, (said("end"),))
    for through in (40, 80, 81):
        emelex.job("distillation", session_id, through, "pending")

    told = run(person, emelex)

    assert (told["imported"]["events"], told["imported"]["jobs"]) == (81, 3)
    assert len(replay(gate, session_id)) == 81


def test_an_entry_of_many_long_versions_comes_in_parts_and_whole(
    person: Prompt, make: MakeEmelex, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(limits, "IMPORT_PARTS_PER_COMMAND", 3)
    emelex = make(6)
    entry_id = emelex.knowledge(Path.cwd(), "build", *(f"version {n}" for n in range(1, 12)), active=4)

    told = run(person, emelex)

    assert told["imported"]["versions"] == 11
    history = person.asks("knowledge", "history", entry_id)
    assert [v["version"] for v in history] == list(range(11, 0, -1))
    assert person.asks("knowledge", "show", entry_id)["content"] == "version 4"


def test_a_text_that_is_longer_than_memoryd_keeps_is_cut_and_named(person: Prompt, make: MakeEmelex):
    emelex = make(6)
    entry_id = emelex.knowledge(Path.cwd(), "build", "word " * 60_000)

    told = run(person, emelex)

    assert told["cut"] == [entry_id]
    content = person.asks("knowledge", "show", entry_id)["content"]
    assert len(content.encode()) <= limits.KNOWLEDGE_CONTENT_MAX_BYTES
    assert "cut by the import: it had 300000 bytes" in content
