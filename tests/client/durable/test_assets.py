"""Files beside a session: taken in once, shown to the model, and read back exactly by whoever resumes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from client.durable import Message, Role
from client.durable.assets import Assets
from memory_core.domain.agent_message import AssetKind, AssetReference, Text
from memory_core.errors import Corrupt, Invalid
from tests.client.durable.actors import Desk, says
from tests.client.durable.conftest import MakeDesk
from tests.client.durable.gate import Gate, GateServer


def picture() -> bytes:
    """Bytes that are no text."""
    return b"\x89PNG\r\n\x1a\n\x00" + os.urandom(2_000)


def shown(reference: AssetReference) -> Message:
    return Message(role=Role.USER, content=(Text("what is this?"), reference))


def test_multimedia_message_round_trips_through_asset_reference(make: MakeDesk, tmp_path: Path) -> None:
    desk = make(tmp_path)
    data = picture()
    seen: list[bytes] = []
    reference = desk.session.attach(data, "image")

    def model(request: object) -> object:
        (asset,) = request.messages[-1].assets  # type: ignore[attr-defined]
        seen.append(request.read_asset(asset))  # type: ignore[attr-defined]
        return says("a picture")

    desk.model.then(model)
    desk.session.run(shown(reference))
    assert seen == [data]

    desk.session.release()
    again = desk.another()
    again.open()
    (asset,) = again.history[0].assets
    assert (asset, again.read_asset(asset)) == (reference, data)
    again.release()
    assert desk.is_settled()


def test_a_failed_turn_keeps_the_assets_of_its_input(make: MakeDesk, tmp_path: Path) -> None:
    desk = make(tmp_path)
    reference = desk.session.attach(picture(), "image")
    desk.model.then(RuntimeError("gone"))

    with pytest.raises(Exception, match="gone"):
        desk.session.run(shown(reference))

    assert [link["sha256"] for link in desk.server.events[-1].assets] == [reference.sha256]


def test_an_asset_that_was_never_taken_in_is_refused_and_the_session_stays_usable(
    gate: Gate, tmp_path: Path
) -> None:
    desk = Desk(tmp_path, server=GateServer(gate))
    unknown = AssetReference("0" * 64, 7, AssetKind.IMAGE)

    with pytest.raises(Invalid):
        desk.session.run(shown(unknown))

    assert desk.session.is_usable
    assert desk.is_settled()


def test_a_file_is_sent_by_its_path_and_read_from_the_server_once_it_changed(
    gate: Gate, tmp_path: Path
) -> None:
    desk = Desk(tmp_path, server=GateServer(gate))
    file, data = tmp_path / "picture.png", picture()
    file.write_bytes(data)
    reference = desk.session.attach(file, "image")
    assert desk.session.read_asset(reference) == data
    desk.model.then(says("a picture"))
    desk.session.run(shown(reference))

    file.write_bytes(b"another one")
    assert desk.session.read_asset(reference) == data
    file.unlink()
    assert desk.session.read_asset(reference) == data


def test_what_cannot_be_an_asset_is_refused_before_it_is_sent(gate: Gate, tmp_path: Path) -> None:
    assets = Assets(gate.transport(), lambda: "")
    with pytest.raises(Invalid, match="kind"):
        assets.take_in(b"x", "hologram")
    with pytest.raises(Invalid, match="cannot be read"):
        assets.take_in(tmp_path / "missing", "image")
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(129 * 1024 * 1024)
    with pytest.raises(Invalid, match="128 MiB"):
        assets.take_in(large, "image")


def test_bytes_that_are_not_those_of_the_digest_are_not_given_out() -> None:
    class Lying:
        def read(self, path: str) -> list[dict[str, object]]:
            return [{"sha256": "0" * 64, "event_id": "e", "ordinal": 0}]

        def download(self, path: str, max_bytes: int) -> bytes:
            return b"other bytes"

    assets = Assets(Lying(), lambda: "s")  # type: ignore[arg-type]
    with pytest.raises(Corrupt):
        assets.read(AssetReference("0" * 64, 11, AssetKind.IMAGE))
