"""`/ui`: pages for a browser that need no script, with nothing in them that could run."""

from __future__ import annotations

import base64
import re
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests import shelf
from tests.durable.working import Client, said
from tests.web.house import House
from tests.web.markup import Elements, dangers
from tests.web.test_markdown import ATTACKS

PROJECT = "/ui/projects/default/lighthouse"


def tool(house: House, name: str, **arguments: Any) -> Any:
    answer = house.post(f"/api/v1/tools/{name}", arguments)
    assert answer.status_code == 200, answer.json
    return answer.json


def hook(house: House, event: str, **body: Any) -> None:
    given = {"session_id": "s", "cwd": "/srv/lighthouse", **body}
    assert house.post(f"/hook?agent=claude-code&event={event}&wait=commit", given).status_code == 200


@pytest.fixture
def wiki(house: House) -> House:
    house.start_writer()
    shelf.fill(lambda name, **arguments: tool(house, name, **arguments))
    hook(house, "UserPromptSubmit", prompt="Why is the report off by three cents?")
    hook(house, "Stop", last_assistant_message="Rounding is done twice.")
    return house


def shown(house: House, address: str) -> Elements:
    answer = house.get(address)
    assert answer.status_code == 200, answer.text
    assert dangers(answer.text) == []
    return Elements(answer.text)


def test_every_link_of_every_page_leads_somewhere(wiki: House) -> None:
    seen: set[str] = set()
    waiting = ["/ui/"]
    while waiting:
        address = waiting.pop()
        page = shown(wiki, address)
        for href in [
            attrs["href"] for tag, attrs in page.found if tag == "a" and attrs.get("class") != "missing"
        ]:
            where = urlsplit(href)
            target = where.path + (f"?{where.query}" if where.query else "")
            if target.startswith("/ui") and target not in seen:
                seen.add(target)
                waiting.append(target)
    assert f"{PROJECT}/pages/decisions/rounding.md" in seen
    assert any(address.startswith("/ui/sessions/") for address in seen)


def test_a_page_shows_its_text_and_both_ends_of_its_links(wiki: House) -> None:
    page = shown(wiki, f"{PROJECT}/pages/decisions/rounding.md")
    assert "Every amount is a whole number of minor units" in page.text
    assert page.text.count("Test plan for invoices") == 2
    assert {"class": "missing", "title": "no such page yet"}.items() <= next(
        attrs for tag, attrs in page.found if tag == "a" and "old-invoices" in attrs["href"]
    ).items()


def test_a_shortened_link_leads_to_its_page(wiki: House) -> None:
    tool(
        wiki,
        "memory_write_page",
        path="notes/short.md",
        body="# Short\n\n[[rounding]]\n",
        project="lighthouse",
    )

    page = shown(wiki, f"{PROJECT}/pages/notes/short.md")

    ends = [
        attrs for tag, attrs in page.found if tag == "a" and attrs["href"].endswith("decisions/rounding.md")
    ]
    assert len(ends) == 2
    assert all(attrs.get("class") != "missing" for attrs in ends)


def test_a_search_marks_what_it_found_and_keeps_its_scope(wiki: House) -> None:
    page = shown(wiki, "/ui/search?q=rounding&scope=default/lighthouse")
    assert "mark" in [tag for tag, _ in page.found]
    assert "Only in default/lighthouse" in page.text
    assert "Nothing was found" in shown(wiki, "/ui/search?q=zebra").text


def test_a_session_is_read_event_by_event_in_parts(wiki: House) -> None:
    lists = shown(wiki, "/ui/sessions")
    address = next(
        attrs["href"] for tag, attrs in lists.found if attrs.get("href", "").startswith("/ui/sessions/")
    )
    assert "Rounding is done twice." in shown(wiki, address).text
    first = shown(wiki, f"{address}?limit=1")
    assert "Why is the report off" in first.text
    assert "Rounding is done twice." not in first.text
    following = next(attrs["href"] for tag, attrs in first.found if attrs.get("class") == "more")
    assert "Rounding is done twice." in shown(wiki, following).text


def test_another_persons_session_is_as_good_as_none(wiki: House) -> None:
    address = re.search(r"/ui/sessions/[0-9a-f-]+", wiki.get("/ui/sessions").text)
    assert address is not None
    other = {"Authorization": f"Bearer {wiki.add_token('read', 'somebody')}"}
    wiki.connection.raw.execute("UPDATE sessions SET owner = 'owner'")
    assert wiki.client().get(address.group(), headers=other).status_code == 404
    assert address.group() not in wiki.client().get("/ui/sessions", headers=other).text


def test_looking_at_a_handoff_leaves_it_open(wiki: House) -> None:
    for _ in range(2):
        assert "Do credit notes round the same way?" in shown(wiki, "/ui/handoffs?state=open").text
    assert wiki.get("/ui/handoffs?state=none").status_code == 400


def test_what_is_stored_is_text_wherever_it_is_shown(house: House) -> None:
    house.start_writer()
    for number, attack in enumerate(ATTACKS):
        body = f"---\nnote: {attack!r}\ntags: ['<b>']\n---\n# {attack.splitlines()[0]}\n\nneedle {attack}"
        tool(house, "memory_write_page", path=f"a{number}.md", body=body, project="p", workspace="default")
    attack = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    tool(house, "memory_handoff_begin", summary=attack, next_steps=[attack], project="p", workspace="default")
    hook(house, "UserPromptSubmit", prompt=attack, model=attack)
    project = shown(house, "/ui/projects/default/p")
    for href in [attrs["href"] for tag, attrs in project.found if "/pages/" in attrs.get("href", "")]:
        shown(house, href)
    session = re.search(r"/ui/sessions/[0-9a-f-]+", house.get("/ui/sessions").text)
    assert session is not None
    assert attack in shown(house, session.group()).text
    for address in (
        "/ui/",
        "/ui/search?q=needle",
        "/ui/search?q=script",
        f"/ui/search?q={attack}",
        "/ui/handoffs",
    ):
        shown(house, address)
    assert house.get(f"/ui/sessions/{attack}").status_code in (400, 404)
    assert dangers(house.get(f"/ui/{attack}").text) == []


def test_headers_let_nothing_run_or_be_framed_or_be_kept(wiki: House) -> None:
    headers = wiki.get("/ui/").headers
    policy = headers["Content-Security-Policy"]
    for rule in ("default-src 'none'", "style-src 'self'", "frame-ancestors 'none'", "form-action 'self'"):
        assert rule in policy
    assert "script-src" not in policy
    assert (headers["X-Content-Type-Options"], headers["Referrer-Policy"]) == ("nosniff", "no-referrer")
    assert headers["Cache-Control"] == "no-store"


def test_a_stranger_is_led_to_the_sign_in_page_and_back(wiki: House) -> None:
    browser = wiki.client()
    asked = browser.get(f"{PROJECT}?limit=5")
    assert asked.status_code == 303
    form = browser.get(asked.headers["Location"])
    assert (form.status_code, form.headers["Referrer-Policy"]) == (200, "same-origin")
    fields = {
        attrs["name"]: attrs.get("value", "") for tag, attrs in Elements(form.text).found if tag == "input"
    }
    signed = browser.post("/ui/sign-in", data=fields | {"token": wiki.token})
    assert (signed.status_code, signed.headers["Location"]) == (303, f"{PROJECT}?limit=5")
    cookie = signed.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert browser.get(f"{PROJECT}?limit=5").status_code == 200
    assert browser.post("/ui/sign-out").status_code == 303
    assert browser.get(PROJECT).status_code == 303


@pytest.mark.parametrize(
    "following", ["//evil.example", "https://evil.example", "/ui\\evil", "/api/v1", "/ui/\r\nx: y"]
)
def test_a_sign_in_leads_nowhere_else(house: House, following: str) -> None:
    signed = house.client().post("/ui/sign-in", data={"token": house.token, "next": following})
    assert signed.headers["Location"] == "/ui/"


def test_a_wrong_or_weak_token_or_the_form_of_another_site_signs_nobody_in(house: House) -> None:
    browser = house.client()
    for token, status in (("nothing", 401), ("", 401), (house.add_token("capture"), 403)):
        answer = browser.post("/ui/sign-in", data={"token": token})
        assert (answer.status_code, "Set-Cookie" in answer.headers) == (status, False)
    good = {"token": house.token}
    crossed = browser.post("/ui/sign-in", data=good, headers={"Sec-Fetch-Site": "cross-site"})
    assert (crossed.status_code, "Set-Cookie" in crossed.headers) == (403, False)
    assert (
        browser.post("/ui/sign-in", data=good, headers={"Origin": "http://evil.example"}).status_code == 403
    )
    assert browser.post("/ui/sign-in", data={"token": "x" * 10_000}).status_code == 413


def test_basic_works_for_a_get(wiki: House) -> None:
    basic = base64.b64encode(f"me:{wiki.token}".encode()).decode()
    assert wiki.client().get(PROJECT, headers={"Authorization": f"Basic {basic}"}).status_code == 200


def test_the_front_door_and_the_style_sheet_are_open_to_all(house: House) -> None:
    assert "/ui" in house.client().get("/").text
    sheet = house.client().get("/ui/static/ui.css")
    assert (sheet.status_code, sheet.mimetype) == (200, "text/css")
    assert house.client().get("/ui/static/../ui.py").status_code == 404


def test_what_is_not_there_is_a_page_too(wiki: House) -> None:
    for address in ("/ui/none", f"{PROJECT}/pages/none.md", "/ui/projects/default/none"):
        answer = wiki.get(address)
        assert (answer.status_code, answer.mimetype) == (404, "text/html")


def test_a_durable_session_is_shown_with_its_events_counted(house: House) -> None:
    house.start_writer()
    session = Client(house, title="Mend the uploader")
    session.claim()
    session.append(said("one"), said("two"))

    assert "2 events" in house.get("/ui/sessions").text
    page = house.get(f"/ui/sessions/{session.id}").text
    assert "2 events" in page
    assert f"memoryd sessions export {session.id}" in page


def test_an_address_that_is_not_there_is_named_in_its_answer(house: House) -> None:
    answer = house.get("/api/v1/nothing-here")

    assert answer.status_code == 404
    assert (
        answer.json["error"] == "there is nothing at /api/v1/nothing-here; docs/http.md lists what there is"
    )
