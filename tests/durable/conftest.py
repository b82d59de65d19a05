from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.durable.agent import Agent, ok
from tests.durable.holder import Worker, worker
from tests.factories import Store, database
from tests.web.conftest import broker, house_factory
from tests.web.house import House

__all__ = ["broker", "house_factory"]


@pytest.fixture
def house(house_factory) -> Iterator[House]:
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
