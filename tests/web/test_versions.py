"""The versions of a page: listed, read one by one, and shown in a browser."""

from __future__ import annotations

import re

import pytest

from tests.web.house import House

VERSIONS = "/api/v1/workspaces/default/projects/p/versions/fees.md"


@pytest.fixture
def wiki(house: House) -> House:
    house.start_writer()
    for text in ("half-even", "half-up <b>bold</b>", "towards zero"):
        given = {"path": "fees.md", "body": f"# Fees\n\n{text}\n", "project": "p", "workspace": "default"}
        assert house.post("/api/v1/tools/memory_write_page", given).status_code == 200
    return house


def test_versions_are_listed_newest_first_with_who_and_why(wiki: House) -> None:
    found = wiki.get(VERSIONS).json

    assert [row["state"] for row in found] == ["newest", "older", "older"]
    assert [(row["cause"], row["author"], row["path"]) for row in found] == [
        ("write", "owner", "fees.md")
    ] * 3
    assert [row["supersedes"] for row in found[:2]] == [row["version_id"] for row in found[1:]]
    assert found[0]["superseded_at"] is None
    assert wiki.get("/api/v1/pages/versions?path=fees&project=p").json == found


def test_a_long_list_of_versions_goes_on_where_its_link_header_says(wiki: House) -> None:
    whole, told = wiki.get(VERSIONS).json, []
    following = f"{VERSIONS}?limit=2"
    while following:
        part = wiki.get(following)
        told += part.json
        following = part.headers.get("Link", "").partition("<")[2].partition(">")[0]

    assert told == whole


def test_an_older_version_can_be_read(wiki: House) -> None:
    newest, _, oldest = wiki.get(VERSIONS).json

    read = wiki.get(f"{VERSIONS}?id={oldest['version_id']}").json

    assert read["body_markdown"] == "# Fees\n\nhalf-even\n"
    assert read["newest_version_id"] == newest["version_id"]


def test_versions_of_a_deleted_page_are_there_and_say_so(wiki: House) -> None:
    gone = {"path": "fees.md", "project": "p", "workspace": "default"}
    assert wiki.post("/api/v1/tools/memory_delete_page", gone).json["deleted"]

    found = wiki.get(VERSIONS).json

    assert [row["state"] for row in found] == ["deleted", "older", "older"]
    assert wiki.get(f"{VERSIONS}?id={found[0]['version_id']}").json["newest_version_id"] is None


def test_what_was_never_there_has_no_versions(wiki: House) -> None:
    other = "00000000-0000-7000-8000-000000000001"
    assert wiki.get(VERSIONS.replace("fees", "fines")).status_code == 404
    assert wiki.get(f"{VERSIONS}?id={other}").status_code == 404
    assert wiki.get(f"{VERSIONS}?id=nonsense").status_code == 400
    assert wiki.get(f"{VERSIONS}?id={other}&limit=3").status_code == 400
    assert wiki.get("/api/v1/pages/versions?project=p").status_code == 400


def test_a_page_in_the_browser_leads_to_its_older_versions(wiki: House) -> None:
    shown = wiki.get("/ui/projects/default/p/pages/fees.md").text
    addresses = re.findall(r'href="(/ui/projects/default/p/version/[^"]+)"', shown)

    assert len(addresses) == 2
    older = wiki.get(addresses[0])
    assert older.status_code == 200
    assert "half-up" in older.text
    assert "<b>bold</b>" not in older.text
    assert "a newer one" in older.text
    listed = wiki.get("/ui/projects/default/p/versions/fees.md?limit=2")
    assert "Older ones" in listed.text
    assert listed.text.count("/version/") == 2


def test_an_older_version_of_a_page_can_be_found_and_restored_by_its_id(wiki: House) -> None:
    oldest = wiki.get(VERSIONS).json[-1]["version_id"]
    given = {"workspace": "default", "project": "p", "path": "fees.md", "from": oldest}

    assert wiki.post("/api/v1/pages/restore", given).status_code == 200

    assert [row["cause"] for row in wiki.get(VERSIONS).json] == ["restore", "write", "write", "write"]
