"""No secret is journaled, and the history says what the journal says."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import pytest

from client.durable.redaction import redact_with, settled
from tests.client.durable.actors import KEY, Desk, Diary, allowing, says, wants
from tests.client.durable.conftest import MakeDesk
from tests.client.durable.gate import Gate, GateServer


def new_secret() -> str:
    """A token of the form that a well-known host of code gives out."""
    return "ghp_" + secrets.token_hex(18)


def test_a_secret_of_the_input_reaches_neither_journal_nor_model(make: MakeDesk, tmp_path: Path) -> None:
    secret = new_secret()
    desk = make(tmp_path)
    desk.model.then(says("I see"))

    desk.run(f"push with {secret} please")

    assert secret not in repr(desk.server.events)
    assert secret not in repr(desk.model.requests)
    assert "[REDACTED:" in desk.session.history[0].text
    assert desk.is_settled()


def test_a_tool_gets_the_arguments_as_the_model_gave_them_and_the_journal_does_not(
    make: MakeDesk, tmp_path: Path
) -> None:
    secret = new_secret()
    got: list[Any] = []
    desk = make(tmp_path, Diary().tool(does=lambda given, _: got.append(given["token"]) or f"sent {secret}"))
    desk.model.then(wants(("note", {"token": secret}), text=f"using {secret}"), says(f"{secret} was sent"))

    desk.run()

    assert got == [secret]
    assert secret not in repr(desk.server.events)
    assert secret not in repr(desk.session.history)
    assert secret not in repr(desk.events)
    assert desk.is_settled()


def test_what_the_server_redacts_further_is_read_back_into_the_history(tmp_path: Path) -> None:
    desk = Desk(tmp_path, Diary().tool(does=lambda *_: "the word is xyzzy-tool"))
    desk.server.secrets = ["xyzzy-input", "xyzzy-call", "xyzzy-end"]
    desk.model.then(wants(("note", {"word": "xyzzy-call"})), says("it is xyzzy-end"))

    result = desk.run("say xyzzy-input")

    assert "xyzzy-input" not in repr(desk.model.requests)
    assert "xyzzy-end" not in result.text
    assert "xyzzy-call" not in repr(desk.session.history)
    assert desk.is_settled()


def test_a_client_that_redacts_nothing_still_has_the_history_that_the_gate_keeps(
    gate: Gate, tmp_path: Path
) -> None:
    asked, called, found, said = (new_secret() for _ in range(4))
    got: list[Any] = []
    tool = Diary().tool(
        does=lambda given, _: got.append(given["token"]) or f"it says {found}", approval="it writes"
    )
    desk = Desk(tmp_path, tool, server=GateServer(gate))
    desk.session.release()
    blind = desk.another(redact=lambda value: value)
    blind.open()
    desk.model.then(wants(("note", {"token": called})), says(f"it was {said}"))

    result = blind.run(f"look at {asked}", approve=allowing)

    assert got == [called]
    assert asked not in repr(desk.model.requests)
    for secret in (asked, called, found, said):
        assert secret not in repr(blind.history) + repr(desk.server.events)
    assert result.text == blind.history[-1].text
    assert blind.last_sequence == len(desk.server.events)
    told = blind.history
    blind.release()
    again = desk.another()
    again.open()
    assert again.history == told
    again.release()


def test_a_secret_in_an_error_is_not_written_down(make: MakeDesk, tmp_path: Path) -> None:
    secret = new_secret()
    desk = make(tmp_path)
    desk.model.then(RuntimeError(f"401 for {secret}"))

    with pytest.raises(Exception, match="401"):
        desk.run()

    assert secret not in repr(desk.server.events)


def test_an_authority_with_a_secret_is_the_same_for_every_client_key(make: MakeDesk, tmp_path: Path) -> None:
    secret = new_secret()
    desk = make(tmp_path, system_prompt=f"log in with {secret}")
    assert desk.server.snapshot is not None
    assert secret not in repr(desk.server.snapshot)
    desk.session.release()

    desk.another(redact=redact_with(b"1" * 32)).open()


def test_settled_markers_do_not_depend_on_the_key() -> None:
    value = {"a": [f"{new_secret()} and {new_secret()}"], "n": 1}
    one, other = (settled(value, redact_with(key)) for key in (KEY, b"1" * 32))
    assert one == other
    assert one["a"][0].count(":0000]") == 2
