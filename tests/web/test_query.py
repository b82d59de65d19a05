"""What a route of `/api/v1` does not know is refused by name, and so is a cursor or a limit that makes no sense."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape

import pytest

from tests.queue.broker import Broker
from tests.web.house import House

PROJECT = "/api/v1/workspaces/default/projects/p"
LISTS = [
    "/api/v1/sessions",
    "/api/v1/handoffs",
    "/api/v1/dead",
    "/api/v1/jobs",
    "/api/v1/jobs/failed",
    "/api/v1/search",
    "/api/v1/workspaces",
    "/api/v1/projects",
    "/api/v1/checkpoints",
    f"{PROJECT}/pages",
    f"{PROJECT}/recent",
    f"{PROJECT}/briefing",
    f"{PROJECT}/overview",
    f"{PROJECT}/handoffs",
    f"{PROJECT}/versions/a.md",
]


@pytest.fixture(scope="module")
def wiki(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """One for all: they only ask."""
    house = House(tmp_path_factory.mktemp("wiki"), broker)
    house.start_writer()
    given = {"path": "a.md", "body": "# A\n", "project": "p", "workspace": "default"}
    assert house.post("/api/v1/tools/memory_write_page", given).status_code == 200
    house.stop_writer()
    yield house
    house.close()


@pytest.mark.parametrize("address", LISTS)
def test_a_parameter_that_nobody_knows_is_named_with_those_that_are_known(wiki: House, address: str) -> None:
    assert wiki.get(address).status_code == 200

    answer = wiki.get(f"{address}?limti=3")

    assert answer.status_code == 400
    assert "'limti'" in answer.json["error"]
    assert "did you mean limit?" in answer.json["error"]
    assert "known are: " in answer.json["error"]


@pytest.mark.parametrize("address", ["/api/v1/status", "/api/v1/wiki", "/api/v1/queues"])
def test_an_address_without_parameters_says_so(wiki: House, address: str) -> None:
    answer = wiki.get(f"{address}?verbose=1")

    assert (answer.status_code, answer.json["code"]) == (400, "invalid")
    assert "takes none" in answer.json["error"]


@pytest.mark.parametrize("address", LISTS)
@pytest.mark.parametrize("limit", ["0", "-1", "1e9", "1000000", "x", "٣"])
def test_a_limit_that_makes_no_sense_is_refused(wiki: House, address: str, limit: str) -> None:
    answer = wiki.get(f"{address}?limit={limit}")

    assert answer.status_code == 400
    assert "limit" in answer.json["error"]


@pytest.mark.parametrize(
    "asked",
    [
        "/api/v1/sessions?cursor=yesterday",
        "/api/v1/handoffs?before=-1",
        "/api/v1/dead?after=x",
        "/api/v1/jobs?before=x",
        "/api/v1/projects?after=half",
        f"{PROJECT}/versions/a.md?before=x",
        "/api/v1/jobs/failed?hours=99999999999",
        "/api/v1/sessions?limit=3&limit=4",
        "/api/v1/search?q=a&query=b",
    ],
)
def test_a_cursor_that_no_list_gave_is_refused(wiki: House, asked: str) -> None:
    answer = wiki.get(asked)

    assert answer.status_code == 400, answer.json
    assert answer.json["error"]


def test_several_scopes_are_one_question(wiki: House) -> None:
    assert wiki.get("/api/v1/search?q=A&scope=default/p&scope=default/p").status_code == 200


@pytest.mark.parametrize("said", ["2", "yes", ""])
def test_what_is_true_or_false_takes_no_other_word(wiki: House, said: str) -> None:
    answer = wiki.get(f"{PROJECT}/pages/a.md?include_expired={said}")

    assert answer.status_code == (400 if said else 200)


@pytest.mark.parametrize(
    ("address", "known"),
    [
        ("/ui/", "known are: limit, after"),
        ("/ui/projects/default/p", "known are: limit, after"),
        ("/ui/projects/default/p/pages/a.md", "known are: include_expired"),
        ("/ui/projects/default/p/versions/a.md", "known are: before, limit"),
        ("/ui/projects/default/p/knowledge", "known are: limit, state, after"),
        ("/ui/search", "known are: q, scope"),
        ("/ui/sessions", "known are: limit, cursor, workspace, project"),
        ("/ui/handoffs", "known are: limit, state, before, workspace, project"),
        ("/ui/jobs", "takes none"),
        ("/ui/sign-in", "known are: next"),
    ],
)
def test_a_page_of_the_browser_refuses_it_as_a_page(wiki: House, address: str, known: str) -> None:
    assert wiki.get(address).status_code == 200

    answer = wiki.get(f"{address}?x=1")

    assert (answer.status_code, answer.mimetype) == (400, "text/html")
    text = unescape(answer.get_data(as_text=True))
    assert "there is no parameter 'x' here" in text
    assert known in text


def test_mcp_and_the_pool_refuse_it_too(wiki: House) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}

    answer = wiki.post("/mcp?foo=1", asked)
    assert (answer.status_code, answer.json["code"]) == (400, "invalid")
    assert "there is no parameter 'foo' here; known are: flavor" in answer.json["error"]
    assert wiki.post("/mcp?flavor=moonshot&flavor=x", asked).status_code == 400
    assert wiki.post("/mcp?flavor=moonshot", asked).status_code == 200
    assert "takes none" in wiki.get("/pool/about?x=1").json["error"]


def test_an_address_that_is_not_there_is_not_there_whatever_it_is_asked(wiki: House) -> None:
    assert wiki.get("/ui/nowhere?x=1").status_code == 404
    assert wiki.get("/api/v1/nowhere?x=1").status_code == 404
