from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.web.conftest import broker, house_factory
from tests.web.house import House

__all__ = ["broker", "house_factory"]


@pytest.fixture
def house(house_factory) -> Iterator[House]:
    house = house_factory()
    house.start_writer()
    yield house
    house.stop_writer()
