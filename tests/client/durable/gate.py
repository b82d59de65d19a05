"""The real gate, writer and database of one house, as a program reaches them over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from werkzeug.serving import make_server

from client.durable.port import Event, SessionPort
from client.durable.recovery import recover
from client.durable.routes import HttpSession
from client.durable.transport import Transport
from client.settings import ClientSettings
from memory_core.domain.directory import Directory
from memory_core.ids import id_bytes
from tests.client.durable.steps import Steps
from tests.web.house import House


class Gate:
    """A house that answers at `url`. One gate serves all tests of a module."""

    def __init__(self, house: House, url: str) -> None:
        self.house = house
        self.settings = ClientSettings(
            url=url, token=house.token, token_file="", redaction_key=b"0" * 32, state_dir="", config_file=""
        )

    def transport(self) -> Transport:
        return Transport(self.settings)

    def rows(self, sql: str, *parameters: Any) -> list[dict[str, Any]]:
        return self.house.rows(sql, *parameters)


@contextmanager
def serving(house: House) -> Iterator[Gate]:
    house.start_writer()
    server = make_server("127.0.0.1", 0, house.app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield Gate(house, f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        house.stop_writer()


class GateServer:
    """One session on a gate; what tests ask of a `FakeServer` they may ask of this one."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.steps = Steps()
        self.session_id = ""

    def begin(self, directory: Directory) -> None:
        made = HttpSession(self.gate.transport(), "", directory)
        made.create(title=None, model_reference="test:scripted", workspace=None, project="durable-client")
        self.session_id = made.session_id

    def port(self, directory: Directory) -> SessionPort:
        return self.steps.of(HttpSession(self.gate.transport(), self.session_id, directory))

    @property
    def events(self) -> Sequence[Event]:
        transport = self.gate.transport()
        head = transport.read(f"/durable-sessions/{self.session_id}")["last_sequence"]
        looking = HttpSession(
            transport, self.session_id, Directory(host="-", device="0", inode="0", path="/")
        )
        return list(looking.events_after(0, head))

    @property
    def snapshot(self) -> Any:
        return self.gate.transport().read(f"/durable-sessions/{self.session_id}")["snapshot"]

    @property
    def is_settled(self) -> bool:
        return self.gate.transport().read(f"/durable-sessions/{self.session_id}/journal")["turn"] is None

    @property
    def is_held(self) -> bool:
        return self.gate.transport().read(f"/durable-sessions/{self.session_id}")["is_held"]

    @property
    def distillations(self) -> int:
        (row,) = self.gate.rows(
            "SELECT count(*) AS n FROM distillations WHERE session_id = ?", id_bytes(self.session_id)
        )
        return row["n"]

    def expire(self) -> None:
        """The lease is over, and somebody cleared it."""
        self.gate.house.stop_writer()
        self.gate.rows(
            "UPDATE durable_sessions SET lease_hash = NULL, lease_until = NULL WHERE session_id = ?",
            id_bytes(self.session_id),
        )
        self.gate.house.start_writer()

    def result_of(self, call: int) -> str:
        journal = self.gate.transport().read(f"/durable-sessions/{self.session_id}/journal")
        return journal["batch"]["calls"][call]["output"]["content"]

    def accept_unknown_effects(self, directory: Directory) -> None:
        recover(self.session_id, directory.path, accept_unknown_effects=True, settings=self.gate.settings)
