"""A lease is given back when a program is done with its session, and nobody waits for a server that cannot take it back now."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from client.durable.directory import identity_of
from client.durable.routes import HttpSession
from client.durable.transport import Transport
from memory_core import errors, limits
from tests.client.durable.actors import HOST, Desk
from tests.client.durable.conftest import MakeDesk
from tests.client.durable.gate import Gate, GateServer
from tests.client.durable.test_transport import settings
from tests.queue.broker import until


@pytest.fixture(autouse=True)
def patience_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every request: one that should not be waited for would be waited for until the test is stopped."""
    monkeypatch.setattr(Gate, "transport", lambda self: Transport(self.settings, patience_seconds=3_600.0))


def test_drop_releases_session_lease(make: MakeDesk, tmp_path: Path) -> None:
    desk = make(tmp_path)

    with pytest.raises(KeyError), desk.session:
        raise KeyError

    assert not desk.server.is_held
    other = desk.another()
    other.open()
    assert other.is_usable


def test_session_lease_drop_does_not_wait_for_database_lock(gate: Gate, tmp_path: Path) -> None:
    """Nothing is written meanwhile: the writer stands still, as it does before a locked database."""
    desk = Desk(tmp_path, server=GateServer(gate))
    gate.house.stop_writer()
    try:
        with pytest.raises(KeyError), desk.session:
            raise KeyError
        assert not desk.session.is_usable
        assert desk.server.is_held
    finally:
        gate.house.start_writer()

    until(lambda: not desk.server.is_held)


def test_a_server_that_never_answers_holds_up_no_program_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "DURABLE_LET_GO_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        asks = Transport(settings(f"http://127.0.0.1:{mute.getsockname()[1]}"), patience_seconds=3_600.0)
        session = HttpSession(asks, "s", identity_of(tmp_path, {"MEMORYD_HOST_ID": HOST}))
        session._lease = "l3ase"

        with pytest.raises((errors.OutcomeUnknown, errors.Unavailable)):
            session.release(is_patient=False)

    assert not session.has_lease
    session.release()  # of nothing
