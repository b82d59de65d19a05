from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.client.durable.actors import HOST, Desk
from tests.client.durable.fake import FakeServer
from tests.client.durable.gate import Gate, GateServer, serving
from tests.client.prompt import Prompt
from tests.queue.broker import Broker
from tests.web.house import House

MakeDesk = Callable[..., Desk]


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    """All programs of a test run on one host, whose name they are told."""
    monkeypatch.setenv("MEMORYD_HOST_ID", HOST)


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    broker = Broker(tmp_path_factory.mktemp("broker"))
    broker.start()
    house = House(tmp_path_factory.mktemp("house"), broker)
    with serving(house) as found:
        yield found
    house.close()
    broker.close()


@pytest.fixture(params=["fake", "gate"])
def make(request: pytest.FixtureRequest) -> MakeDesk:
    """Makes a desk: once on the fake server, once on the real gate, writer and database."""

    def made(directory: Path, *tools: Any, **of_agent: Any) -> Desk:
        server = FakeServer() if request.param == "fake" else GateServer(request.getfixturevalue("gate"))
        return Desk(directory, *tools, server=server, **of_agent)

    return made


@pytest.fixture
def person(
    gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Prompt:
    """At a prompt in a directory of their own."""
    place = tmp_path / "shop"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MEMORYD_URL", gate.settings.url)
    monkeypatch.setenv("MEMORYD_TOKEN", gate.settings.token())
    for name in ("MEMORYD_TOKEN_FILE", "MEMORYD_CLIENT_CONFIG", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return Prompt(capsys)
