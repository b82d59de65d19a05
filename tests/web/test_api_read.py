"""The read side of `/api/v1`: what a browser or a program sees of the wiki."""

from __future__ import annotations

from typing import Any

import pytest

from memory_core import limits
from tests.web.house import House


def write(house: House, path: str, body: str, *, project: str = "p", workspace: str = "default") -> None:
    given = {"path": path, "body": body, "project": project, "workspace": workspace}
    assert house.post("/api/v1/tools/memory_write_page", given).status_code == 200


@pytest.fixture
def wiki(house: House) -> House:
    house.start_writer()
    write(house, "fees.md", "# Fees\n\nhalf-even, see [[rules/tax]] and [[default/q:plan]]")
    write(house, "rules/tax.md", "# Tax\n\nrounding <b>up</b>")
    write(house, "plan.md", "# Plan\n\nrounding later", project="q")
    write(house, "far.md", "# Far\n\nrounding elsewhere", project="r", workspace="other")
    return house


PAGES = "/api/v1/workspaces/default/projects/p/pages"


def test_workspaces_and_projects_are_bare_lists_with_their_counts(wiki: House) -> None:
    found = wiki.get("/api/v1/workspaces")
    assert [(row["workspace_name"], row["project_count"], row["page_count"]) for row in found.json] == [
        ("default", 2, 3),
        ("other", 1, 1),
    ]
    assert found.headers["Cache-Control"] == "private, max-age=30"
    listed = wiki.get("/api/v1/projects?workspace=default").json
    assert [(row["project_name"], row["page_count"]) for row in listed] == [("p", 2), ("q", 1)]


@pytest.mark.parametrize("address", ["/api/v1/workspaces", "/api/v1/projects", PAGES])
def test_a_list_goes_on_where_its_link_header_says(wiki: House, address: str) -> None:
    whole = wiki.get(address).json
    told: list[Any] = []
    following = f"{address}?limit=1"
    while following:
        part = wiki.get(following)
        told += part.json
        following = part.headers.get("Link", "").partition("<")[2].partition(">")[0]
    assert told == whole
    assert len(whole) > 1


def test_a_page_tells_its_text_its_front_matter_and_both_ends_of_its_links(wiki: House) -> None:
    page = wiki.get(f"{PAGES}/fees.md").json
    assert page["body_markdown"].startswith("# Fees")
    assert [(end["project"], end["path"], end["exists"]) for end in page["links"]] == [
        ("p", "rules/tax.md", True),
        ("q", "plan.md", True),
    ]
    assert [end["path"] for end in wiki.get(f"{PAGES}/rules/tax").json["backlinks"]] == ["fees.md"]
    assert wiki.get(f"{PAGES}/none.md").status_code == 404
    assert wiki.get(f"{PAGES}/../../etc/passwd").status_code in (400, 404)


def test_a_page_that_did_not_change_is_not_sent_again(wiki: House) -> None:
    first = wiki.get(f"{PAGES}/fees.md")
    tag = first.headers["ETag"]
    assert not tag.startswith("W/")
    again = wiki.get(f"{PAGES}/fees.md", **{"If-None-Match": f'"other", {tag}'})
    assert (again.status_code, again.data) == (304, b"")
    write(wiki, "fees.md", "# Fees\n\nhalf-up")
    changed = wiki.get(f"{PAGES}/fees.md", **{"If-None-Match": tag})
    assert (changed.status_code, changed.headers["ETag"] == tag) == (200, False)


def test_a_new_backlink_changes_the_tag_too(wiki: House) -> None:
    tag = wiki.get(f"{PAGES}/rules/tax.md").headers["ETag"]
    write(wiki, "more.md", "# More\n\n[[rules/tax]]")
    assert wiki.get(f"{PAGES}/rules/tax.md", **{"If-None-Match": tag}).status_code == 200


def test_a_search_looks_into_the_scopes_that_are_named(wiki: House) -> None:
    def places(found: Any) -> set[str]:
        return {hit["project"] for hit in found.json}

    assert places(wiki.get("/api/v1/search?q=rounding")) == {"p", "q", "r"}
    assert places(wiki.get("/api/v1/search?query=rounding&workspace=default&project=q")) == {"q"}
    assert places(wiki.get("/api/v1/search?q=rounding&scope=default/q,other/r")) == {"q", "r"}
    asked = {"q": "rounding", "scopes": ["default/p", "other/r"], "limit": 5}
    assert places(wiki.post("/api/v1/search", asked)) == {"p", "r"}


@pytest.mark.parametrize(
    "query",
    ["workspace=default", "project=p", "scope=default", "scope=/p", "limit=many"],
)
def test_half_a_scope_or_no_number_is_refused(wiki: House, query: str) -> None:
    assert wiki.get(f"/api/v1/search?q=x&{query}").status_code == 400


def test_an_unknown_scope_a_blank_question_and_too_many_scopes(wiki: House) -> None:
    assert wiki.get("/api/v1/search?q=x&scope=default/none").status_code == 404
    assert (wiki.get("/api/v1/search?q=").status_code, wiki.get("/api/v1/search?q=+").json) == (200, [])
    many = [f"default/p{number}" for number in range(limits.SCOPES_MAX + 1)]
    assert wiki.post("/api/v1/search", {"q": "x", "scopes": many}).status_code == 400
    assert wiki.post("/api/v1/search", {"q": "x", "scope": "default/p"}).status_code == 400
    assert wiki.post("/api/v1/search", {"q": 5}).status_code == 400


def test_a_snippet_is_markup_that_holds_nothing_but_its_marks(wiki: House) -> None:
    hit, *_linked = wiki.get("/api/v1/search?q=rounding&scope=default/p").json
    assert hit["snippet"] == "# Tax <mark>rounding</mark> &lt;b&gt;up&lt;/b&gt;"


def test_an_overview_shows_the_handoff_and_leaves_it_open(wiki: House) -> None:
    begun = wiki.post(
        "/api/v1/tools/memory_handoff_begin",
        {"summary": "half done", "project": "p", "workspace": "default"},
    )
    assert begun.status_code == 200
    for _ in range(2):
        told = wiki.get("/api/v1/workspaces/default/projects/p/overview")
        assert told.json["handoff"]["summary"] == "half done"
    assert told.headers["Cache-Control"] == "no-store"
    assert told.json["briefing"]["counts"]["pages"] == 2
    listed = wiki.get("/api/v1/workspaces/default/projects/p/handoffs?state=open").json
    assert [row["state"] for row in listed] == ["open"]


def test_health_names_orphans_twins_and_what_nobody_touched(wiki: House) -> None:
    write(wiki, "alone.md", "# Alone")
    write(wiki, "copy/alone.md", "# Alone")
    write(wiki, "sessions/old.md", "---\ntier: episodic\n---\n# Old\n\n[[fees]]")
    wiki.connection.raw.execute("UPDATE pages SET updated_at = 1 WHERE path = 'sessions/old.md'")
    state = wiki.get("/api/v1/workspaces/default/projects/p/overview").json["health"]
    assert (state["stale"], state["duplicates"], state["orphans"]) == (1, 1, 2)
    assert [page["path"] for page in state["stale_pages"]] == ["sessions/old.md"]
    assert {page["path"] for page in state["orphan_pages"]} == {"alone.md", "copy/alone.md"}


def test_recent_pages_come_newest_first(wiki: House) -> None:
    rows = wiki.get("/api/v1/workspaces/default/projects/p/recent?limit=1").json
    assert [row["path"] for row in rows] == ["rules/tax.md"]


@pytest.mark.parametrize("scope", ["capture", "pool"])
def test_a_token_that_may_not_read_sees_nothing(wiki: House, scope: str) -> None:
    bearer = {"Authorization": f"Bearer {wiki.add_token(scope)}"}
    for address in ("/api/v1/workspaces", f"{PAGES}/fees.md", "/api/v1/search?q=x"):
        assert wiki.client().get(address, headers=bearer).status_code == 403
        assert wiki.client().get(address).status_code == 401
