"""The gate against the protocol's own suite: each scenario comes out as it is expected to, no better and no worse."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.bearer import BearerProxy
from tests.conformance.expected import PAGE, load, outcome, page_with_table
from tests.conformance.suite import NotInstallable, Suite, installed
from tests.queue.broker import Broker
from tests.web.house import House
from tests.web.served import Served


@pytest.fixture(scope="module")
def suite() -> Suite:
    try:
        return installed()
    except NotInstallable as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"the conformance suite cannot be installed here: {error}")


@pytest.fixture(scope="module")
def address(suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    broker = Broker(tmp_path_factory.mktemp("broker"))
    broker.start()
    house = House(tmp_path_factory.mktemp("house"), broker)
    served = Served(house, "tests.conformance.fixture_app:create_app()")
    proxy = BearerProxy(served.port, house.token)
    yield f"http://127.0.0.1:{proxy.port}/mcp"
    proxy.close()
    served.close()
    house.close()
    broker.close()


@pytest.mark.stack
@pytest.mark.timeout(600)
@pytest.mark.parametrize("revision", load()["revisions"])
def test_every_scenario_comes_out_as_expected(
    suite: Suite, address: str, revision: str, tmp_path: Path
) -> None:
    found = {name: outcome(checks) for name, checks in suite.run(address, revision, tmp_path).items()}
    expected = {
        name: {key: value for key, value in entry.items() if key != "because"}
        for name, entry in load()["revisions"][revision].items()
    }
    assert found == expected


def test_what_does_not_pass_has_its_reason() -> None:
    expected = load()
    reasons = {
        entry.get("because")
        for found in expected["revisions"].values()
        for entry in found.values()
        if entry["outcome"] != "passes"
    }
    assert reasons == set(expected["because"])


def test_the_table_in_the_documentation_is_the_expectation() -> None:
    text = PAGE.read_text()
    assert text == page_with_table(text), "run: python -m tests.conformance.expected"
    assert load()["suite"] in text
