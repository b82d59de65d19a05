"""The pages of `/ui` in a real Chromium, scripts switched off."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import shelf
from tests.browser import Browser, chromium
from tests.web.served import Served
from tests.web.test_markdown import ATTACKS
from tests.web.test_ui import tool

pytestmark = [
    pytest.mark.stack,
    pytest.mark.skipif(chromium() is None, reason="no Chromium on this machine"),
]


@pytest.fixture
def browser() -> Iterator[Browser]:
    browser = Browser()
    yield browser
    browser.close()


def test_a_person_signs_in_looks_around_and_nothing_runs(served: Served, browser: Browser) -> None:
    house = served.house
    house.start_writer()
    shelf.fill(lambda name, **arguments: tool(house, name, **arguments))
    attack = "\n\n".join(ATTACKS)
    tool(house, "memory_write_page", path="attack.md", body=f"# Attack\n\n{attack}", **shelf.PROJECT)
    house.stop_writer()
    # What the test itself evaluates still works.
    browser.tell("Emulation.setScriptExecutionDisabled", value=True)
    browser.go(f"{served.url}/ui/projects/default/lighthouse")
    assert browser.ask("document.title") == "Sign in · memoryd"
    browser.write("#token", house.token)
    browser.click("main button")
    assert browser.ask("location.pathname") == "/ui/projects/default/lighthouse"
    assert browser.complaints() == []
    browser.click(".folder a[href$='style.md']")
    assert browser.ask("document.querySelector('h1').textContent") == "Names say the unit"
    # With scripts allowed the policy and the renderer are all that stands in the way.
    browser.tell("Emulation.setScriptExecutionDisabled", value=False)
    browser.go(f"{served.url}/ui/projects/default/lighthouse/pages/attack.md")
    assert "onerror=alert(1)" in browser.ask("document.querySelector('article').textContent")
    assert {address.removeprefix(served.url) for address in browser.requested()} <= {
        "/ui/projects/default/lighthouse/pages/attack.md",
        "/ui/static/ui.css",
        "/ui/static/icon.svg",
    }
    assert browser.complaints() == []


def test_no_page_is_wider_than_a_phone(served: Served, browser: Browser) -> None:
    house = served.house
    house.start_writer()
    shelf.fill(lambda name, **arguments: tool(house, name, **arguments))
    long = "# A\n\n" + "x" * 300 + "\n\n| " + " | ".join(["wide column"] * 12) + " |\n" + "|---" * 12 + "|\n"
    tool(house, "memory_write_page", path="wide.md", body=long, **shelf.PROJECT)
    house.stop_writer()
    browser.size(360, 700)
    browser.go(f"{served.url}/ui/sign-in")
    browser.write("#token", house.token)
    browser.click("main button")
    house.start_writer()
    assert house.post("/api/v1/queues/lint/pause", {}).status_code == 200
    assert house.post("/api/v1/schedules/idle_sessions/run", {}).status_code == 200
    house.stop_writer()
    project = "projects/default/lighthouse"
    for address in (project, f"{project}/pages/wide.md", f"{project}/pages/decisions/rounding.md", "jobs"):
        browser.go(f"{served.url}/ui/{address}")
        assert browser.ask("document.documentElement.scrollWidth") <= 360, address
