from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_core import limits
from tests.durable.agent import Agent, ok
from tests.durable.holder import Worker, worker
from tests.factories import Store, database
from tests.web.conftest import broker, house_factory
from tests.web.house import House
from web.gate import Gate

__all__ = ["broker", "house_factory"]


@pytest.fixture
def house(house_factory, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    # On a busy machine a command takes its time, and "pending" is no answer that these tests are about.
    monkeypatch.setattr(limits, "REPLY_WAIT_SECONDS", 60.0)
    for waits in (Gate.submit, Gate.send):
        monkeypatch.setitem(waits.__kwdefaults__ or {}, "valid_seconds", 60.0)
    house = house_factory()
    house.start_writer()
    yield house
    house.stop_writer()


@pytest.fixture
def agent(house: House) -> Agent:
    """A client that holds a new session."""
    made = Agent(house)
    ok(made.claim())
    return made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = database(tmp_path)
    yield made
    made.close()


@pytest.fixture
def ada(store: Store) -> Worker:
    """Somebody who holds a new session of that database."""
    return worker(store)
