"""Whatever is sent to the routes of knowledge is answered with a value or refused by name, and what is known stays."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.durable.attacking import NO_IDS, WRONG, changed, is_sound, places
from tests.durable.working import HERE
from tests.web.conftest import broker, house_factory
from tests.web.house import House

__all__ = ["broker", "house_factory"]

ROOT = "/api/v1/knowledge"
ASKED = f"host={HERE['host']}&device={HERE['device']}&inode={HERE['inode']}"
BODIES: dict[str, Callable[[str], tuple[str, dict[str, Any]]]] = {
    "remember": lambda _: ("remember", {"directory": HERE, "key": "k", "content": "c", "pinned": False}),
    "activate": lambda entry: (f"{entry}/activate", {"directory": HERE, "version": 1}),
    "pin": lambda entry: (f"{entry}/pin", {"directory": HERE}),
    "forget in a project": lambda entry: (f"{entry}/forget", {"workspace": "default", "project": "repo"}),
}
QUERIES = (
    *("limit=0", "limit=99999999999999999999", "after=x", "after=1.99999999999999999999.00", "before=1e3"),
    *("confidence=nan", "confidence=1e999", "entries=1e3", "bytes=-1", "q=%00", "q=" + "x" * 300, "state=x"),
)


@pytest.fixture
def house(house_factory: Callable[..., House]) -> Iterator[House]:
    house = house_factory()
    house.start_writer()
    yield house
    house.stop_writer()


@pytest.fixture
def entry(house: House) -> str:
    """The id of what is known."""
    return house.post(f"{ROOT}/remember", {"directory": HERE, "key": "k", "content": "c"}).get_json()["id"]


@pytest.mark.parametrize("name", BODIES)
def test_a_value_of_another_kind_in_any_place_breaks_nothing(house: House, entry: str, name: str):
    route, body = BODIES[name](entry)

    answers = [
        house.post(f"{ROOT}/{route}", json.dumps(changed(body, at, wrong)).encode())
        for at in places(body)
        for wrong in WRONG
    ]
    unknown = house.post(f"{ROOT}/{route}", body | {"colour": "red"})

    assert [answer.get_data()[:200] for answer in answers if not is_sound(answer)] == []
    assert unknown.status_code == 400
    assert house.rows("SELECT * FROM dead_letters") == []
    assert house.get(f"{ROOT}/{entry}?{ASKED}").get_json()["content"] in ("c", "x", "../../etc/passwd")


def test_ids_and_queries_that_cannot_be_are_refused(house: House, entry: str):
    for text in NO_IDS:
        for path in (text, f"{text}/history"):
            assert house.get(f"{ROOT}/{path}?{ASKED}").status_code in (400, 404), path
        for path in (f"{text}/pin", f"{text}/forget"):
            answer = house.client().post(f"{ROOT}/{path}", json={"directory": HERE}, headers=house.bearer)
            assert answer.status_code in (308, 400, 404, 405), path
    for query in QUERIES:
        for path in ("", "/search", "/recall", f"/{entry}", f"/{entry}/history"):
            assert house.get(f"{ROOT}{path}?{query}&{ASKED}").status_code in (200, 400), (path, query)
