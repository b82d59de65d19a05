from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.queue.broker import Broker
from tests.web.house import House
from tests.web.served import Served


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = Broker(tmp_path_factory.mktemp("broker"))
    broker.start()
    yield broker
    broker.close()


@pytest.fixture
def house_factory(broker: Broker, tmp_path: Path) -> Iterator[Callable[..., House]]:
    houses: list[House] = []

    def make(**settings: Any) -> House:
        houses.append(House(tmp_path / str(len(houses)), broker, **settings))
        return houses[-1]

    yield make
    for house in houses:
        house.close()


@pytest.fixture
def house(house_factory: Callable[..., House]) -> House:
    return house_factory()


@pytest.fixture(scope="module")
def served(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    house = House(tmp_path_factory.mktemp("served"), broker)
    served = Served(house)
    yield served
    served.close()
    house.close()
