"""Beginning and resuming sessions against the real gate: what is set up, and what is left when that fails."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from client.durable import (
    Agent,
    AsyncDurableAgentSession,
    DurableAgentSession,
    ModelReply,
    SessionBusy,
    SnapshotMismatch,
    TextDelta,
    WorkspaceMismatch,
)
from client.durable.directory import identity_of
from client.durable.routes import HttpSession
from memory_core.errors import Invalid, NotFound, Unavailable
from tests.client.durable.actors import HOST, Script, says
from tests.client.durable.gate import Gate


def agent(*lines: Any, **more: Any) -> Agent:
    return Agent(**{"model": Script(*lines), "model_reference": "test:scripted"} | more)


def sessions_of(gate: Gate, directory: Path) -> list[dict[str, Any]]:
    """As the server lists them for that directory."""
    place = identity_of(directory, {"MEMORYD_HOST_ID": HOST})
    found = gate.transport().read(
        "/durable-sessions", host=place.host, device=place.device, inode=place.inode
    )
    return list(found)


def test_a_new_session_is_held_and_has_its_title_model_and_authority(gate: Gate, tmp_path: Path) -> None:
    session = DurableAgentSession.start(
        agent(says("hello"), system_prompt="be brief"), tmp_path, title="Notes", settings=gate.settings
    )
    (listed,) = sessions_of(gate, tmp_path)

    assert listed["id"] == session.session_id
    assert (listed["title"], listed["model_reference"], listed["is_held"]) == ("Notes", "test:scripted", True)
    snapshot = gate.transport().read(f"/durable-sessions/{session.session_id}")["snapshot"]
    assert snapshot["authority"]["system_prompt"] == "be brief"
    assert session.run("hi").text == "hello"
    session.close()
    (listed,) = sessions_of(gate, tmp_path)
    assert listed["closed_at"] is not None
    assert not listed["is_held"]


def test_failed_new_session_setup_removes_placeholder_session(
    gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise Unavailable("the broker is away")

    monkeypatch.setattr(HttpSession, "store_snapshot", fail)

    with pytest.raises(Unavailable):
        DurableAgentSession.start(agent(), tmp_path, settings=gate.settings)

    assert sessions_of(gate, tmp_path) == []


def test_an_agent_that_cannot_have_a_session_makes_none(gate: Gate, tmp_path: Path) -> None:
    with pytest.raises(Invalid):
        DurableAgentSession.start(
            agent(options={"temperature": float("inf")}), tmp_path, settings=gate.settings
        )
    with pytest.raises(Invalid):
        DurableAgentSession.start(agent(), tmp_path, title=" ", settings=gate.settings)

    assert sessions_of(gate, tmp_path) == []


def test_failed_resumed_session_setup_preserves_existing_session(gate: Gate, tmp_path: Path) -> None:
    session = DurableAgentSession.start(agent(says("hello")), tmp_path, settings=gate.settings)
    session.run("hi")
    session.release()

    with pytest.raises(SnapshotMismatch):
        DurableAgentSession.resume(
            agent(system_prompt="be cruel"), session.session_id, tmp_path, settings=gate.settings
        )

    (listed,) = sessions_of(gate, tmp_path)
    assert not listed["is_held"]
    again = DurableAgentSession.resume(agent(), session.session_id, tmp_path, settings=gate.settings)
    assert [message.text for message in again.history] == ["hi", "hello"]
    again.release()


def test_explicit_resume_rejects_foreign_workspace_before_setup(gate: Gate, tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    session = DurableAgentSession.start(agent(), here, settings=gate.settings)
    session.release()

    with pytest.raises(WorkspaceMismatch):
        DurableAgentSession.resume(agent(), session.session_id, elsewhere, settings=gate.settings)

    (listed,) = sessions_of(gate, here)
    assert not listed["is_held"]
    assert listed["directory"]["path"] == str(here)


def test_a_session_that_is_not_there_cannot_be_resumed(gate: Gate, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        DurableAgentSession.resume(
            agent(), "01890000-0000-7000-8000-00000000ffff", tmp_path, settings=gate.settings
        )


def test_title_update_uses_live_durable_claim(gate: Gate, tmp_path: Path) -> None:
    session = DurableAgentSession.start(agent(), tmp_path, settings=gate.settings)

    session.set_title("Notes of today")

    (listed,) = sessions_of(gate, tmp_path)
    assert listed["title"] == "Notes of today"
    with pytest.raises(SessionBusy):
        gate.transport().write("POST", f"/durable-sessions/{session.session_id}/title", {"title": "Mine"})
    session.release()


def test_an_asynchronous_session_is_begun_used_closed_and_resumed(gate: Gate, tmp_path: Path) -> None:
    async def model(request: Any) -> Any:
        await asyncio.sleep(0)
        yield TextDelta("hel")
        yield TextDelta("lo")
        yield ModelReply()

    async def work() -> None:
        scripted = agent(model=model)
        async with await AsyncDurableAgentSession.start(
            scripted, tmp_path, title="Notes", settings=gate.settings
        ) as session:
            assert (await session.run("hi")).text == "hello"
            await session.set_title("Notes of today")
        again = await AsyncDurableAgentSession.resume(
            scripted, session.session_id, tmp_path, settings=gate.settings
        )
        assert [message.text for message in again.history] == ["hi", "hello"]
        assert (await again.compact(100_000))["job"] is None
        await again.release()

    asyncio.run(asyncio.wait_for(work(), 50))
    (listed,) = sessions_of(gate, tmp_path)
    assert (listed["title"], listed["is_held"]) == ("Notes of today", False)
