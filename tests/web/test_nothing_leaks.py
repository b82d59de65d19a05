"""Whoever asks about one project gets nothing of another one, nothing expired, deleted or overwritten, and nothing that is
somebody else's: over every route that reads, every tool that reads, and the commands of the command line.

Each thing that must stay hidden holds a word of its own, and all of them hold what is asked for.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from werkzeug.serving import make_server

from client.main import main
from memory_core.commands.capture import RecordObservation
from memory_core.commands.handoffs import BeginHandoff
from memory_core.commands.knowledge import Remember, Where
from memory_core.commands.pages import DeletePage, WritePage
from memory_core.ids import id_text, session_id_from
from memory_core.tools import tools
from tests.factories import bash, envelope, event, said, used_tool
from tests.queue.broker import Broker
from tests.web.house import House

ASKED = "quokka"
#: What must not come out → the words that only it holds.
HIDDEN = {
    "of another project": ("zqbetapage", "zqbetatitle", "zqbetaturn", "zqbetahandoff", "zqbetaknown"),
    "expired": ("zqexpiredbody", "zqexpiredtitle"),
    "deleted": ("zqdeletedbody", "zqdeletedtitle"),
    "overwritten": ("zqoldbody", "zqoldtitle"),
    "somebody else's": ("zqbobprompt", "zqbobtitle", "zqbobanswer", "zqboboutput", "zqbobhandoff"),
}
PATH = "notes/shown.md"


class World:
    def __init__(self, house: House) -> None:
        self.house = house
        self.ada = house.add_token("read", "ada")
        self._write(
            "alpha",
            PATH,
            "# Zqshown\n\nThe quokka is shown. [[notes/expired]] [[notes/deleted]] [[beta:notes/b]]",
        )
        self._write("alpha", "notes/points.md", "# Points\n\n[[notes/shown]]")
        self._write(
            "alpha",
            "notes/expired.md",
            "# Zqexpiredtitle\n\nquokka zqexpiredbody [[notes/shown]]",
            expires_at="2001-01-01",
        )
        self._write("alpha", "notes/deleted.md", "# Zqdeletedtitle\n\nquokka zqdeletedbody [[notes/shown]]")
        self._apply(DeletePage(workspace="default", project="alpha", path="notes/deleted.md"))
        self._write("alpha", "notes/rewritten.md", "# Zqoldtitle\n\nquokka zqoldbody [[notes/shown]]")
        self._write(
            "alpha", "notes/rewritten.md", "# New title\n\nquokka new [[notes/shown]]", title="New title"
        )
        self._write("beta", "notes/b.md", "# Zqbetatitle\n\nquokka zqbetapage [[alpha:notes/shown]]")
        self._talk("ada", "mine", "alpha", "the quokka of ada zqmine", "zqmine said")
        self._talk(
            "bob", "bobs", "alpha", "quokka zqbobprompt", "quokka zqbobanswer", title="quokka zqbobtitle"
        )
        self._apply(
            RecordObservation(
                event=used_tool(bash("ls", "quokka zqboboutput"), session_key="bobs", cwd="/srv/alpha"),
                source="test",
            ),
            principal="bob",
        )
        self._talk("ada", "theirs", "beta", "quokka zqbetaturn", "quokka zqbetaturn")
        for principal, project, word in (("bob", "alpha", "zqbobhandoff"), ("ada", "beta", "zqbetahandoff")):
            self._apply(
                BeginHandoff(
                    summary=f"quokka {word}", next_steps=(word,), workspace="default", project=project
                ),
                principal=principal,
            )
        for inode, project, word in (("1", "alpha", "zqalphaknown"), ("2", "beta", "zqbetaknown")):
            where = Where(
                host="laptop",
                device="2049",
                inode=inode,
                path=f"/srv/{project}",
                workspace="default",
                project=project,
            )
            self._apply(Remember(where=where, key="quokka", content=f"quokka {word}"))

    def _write(self, project: str, path: str, body: str, **more: Any) -> None:
        self._apply(WritePage(workspace="default", project=project, path=path, body=body, **more))

    def _talk(self, principal: str, key: str, project: str, prompt: str, answer: str, **more: Any) -> None:
        place = {"session_key": key, "cwd": f"/srv/{project}"}
        for one in (event(body=prompt, **place, **more), said(answer, **place)):
            self._apply(
                RecordObservation(event=one, source="test"), principal=principal, token_scope="capture"
            )

    def _apply(self, command: Any, **of_envelope: Any) -> None:
        sent = envelope(command, **{"token_scope": "write", **of_envelope})
        (outcome,) = self.house.engine.apply_batch([sent], until="").outcomes
        assert outcome.fate == "committed", outcome

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.ada}"}


@pytest.fixture(scope="module")
def world(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    house = House(tmp_path_factory.mktemp("leaks"), broker)
    yield World(house)
    house.close()


def leaks(text: str, *allowed: str) -> list[str]:
    """What came out that must not, by kind."""
    said = text.lower()
    return [
        f"{kind}: {word}"
        for kind, words in HIDDEN.items()
        if kind not in allowed
        for word in words
        if word in said
    ]


# --- routes --------------------------------------------------------------------------------------


def routes(world: World) -> list[str]:
    """Every path that answers GET for a reader, with its places filled."""
    session = id_text(session_id_from("mine"))
    fillings = {
        "workspace": "default",
        "project": "alpha",
        "path": PATH,
        "text": session,
        "name": "memory_query",
    }
    found: list[str] = []
    for rule in world.house.app.url_map.iter_rules():
        if "GET" not in (rule.methods or ()) or not rule.rule.startswith(("/api/v1", "/ui", "/handoff")):
            continue
        path = rule.rule
        for place in rule.arguments:
            path = re.sub(rf"<(?:\w+:)?{place}>", str(fillings.get(place, "0")), path)
        found.append(path)
    return sorted(found)


def allowed_at(path: str, query: dict[str, str]) -> list[str]:
    allowed: list[str] = []
    if "alpha" not in path and "alpha" not in str(query):
        allowed.append("of another project")
    if "versions/" in path:
        allowed.append("overwritten")
    if "/pages/" in path:
        # It names the pages of other projects that it is linked with.
        allowed.append("of another project")
    return allowed


def test_no_route_tells_what_is_hidden(world: World):
    client = world.house.client()
    found: list[str] = []
    answered = 0
    for path in routes(world):
        scoped = (
            {"scope": "default/alpha"}
            if path.endswith("/search")
            else {"workspace": "default", "project": "alpha"}
        )
        for query in ({**scoped, "q": ASKED}, scoped, {"q": ASKED}, {}):
            answer = client.get(path, query_string=query, headers=world.headers)
            assert answer.status_code < 500, (path, answer.text)
            if answer.status_code == 200:
                answered += 1
                found += [f"{path} {query}: {leak}" for leak in leaks(answer.text, *allowed_at(path, query))]
    assert found == []
    assert answered > 40


def test_the_routes_do_tell_what_is_shown(world: World):
    client = world.house.client()

    for path in ("/api/v1/search?q=quokka&workspace=default&project=alpha", "/ui/search?q=quokka"):
        assert "zqshown" in client.get(path, headers=world.headers).text.lower()
    assert (
        "zqmine"
        in client.get("/api/v1/sessions", headers=world.headers).text
        + client.get(f"/ui/sessions/{id_text(session_id_from('mine'))}", headers=world.headers).text
    )


@pytest.mark.parametrize("path", ["notes/expired.md", "notes/deleted.md"])
def test_a_hidden_page_is_not_there_at_any_address(world: World, path: str):
    client = world.house.client()
    for address in (
        f"/api/v1/workspaces/default/projects/alpha/pages/{path}",
        f"/ui/projects/default/alpha/pages/{path}",
    ):
        answer = client.get(address, headers=world.headers)
        assert (answer.status_code, leaks(answer.text)) == (404, [])
        answer = client.get(f"{address}?include_expired=true", headers=world.headers)
        assert answer.status_code == (200 if "expired" in path else 404)


def test_a_session_of_somebody_else_is_not_there_at_any_address(world: World):
    client = world.house.client()
    bobs = id_text(session_id_from("bobs"))
    for rule in world.house.app.url_map.iter_rules():
        if "GET" in (rule.methods or ()) and set(rule.arguments) == {"text"}:
            address = re.sub("<(?:[a-z]+:)?text>", bobs, rule.rule)
            answer = client.get(address, headers=world.headers)
            assert leaks(answer.text) == [], address
            assert answer.status_code < 500


# --- tools ---------------------------------------------------------------------------------------

#: Arguments with which each tool that reads is asked beside its scope.
ASKING: dict[str, list[dict[str, Any]]] = {
    "memory_briefing": [{}],
    "memory_explore": [{}, {"focus": ASKED}],
    "memory_query": [
        {"query": ASKED}, {"query": "zqexpiredbody zqbetapage zqbobprompt"}, {"query": ASKED, "explain": True, "limit": 100},
        {"query": "notes/expired notes/deleted notes/b"}, {"query": "zqboboutput"},
    ],
    "memory_read_page": [{"path": PATH}, {"query": ASKED}, {"path": "notes/rewritten.md"}],
    "memory_read_session_observations": [{"session_id": id_text(session_id_from("mine"))}],
    "memory_recent": [{}, {"limit": 100}],
    "memory_status": [{}],
}  # fmt: skip


def test_every_tool_that_reads_is_asked():
    assert set(ASKING) == {name for name, tool in tools if tool.is_read_only}


@pytest.mark.parametrize("name", sorted(ASKING))
def test_no_tool_tells_what_is_hidden(world: World, name: str):
    for arguments in ASKING[name]:
        for scope in (
            {"workspace": "default", "project": "alpha"},
            {"scopes": [{"workspace": "default", "project": "alpha"}]},
        ):
            if "scopes" in scope and name != "memory_query":
                continue
            answer = world.house.client().post(
                f"/api/v1/tools/{name}", data=json.dumps(arguments | scope), headers=world.headers
            )
            assert answer.status_code == 200, answer.text
            assert leaks(answer.text) == [], (arguments, scope)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("memory_read_page", {"path": "notes/expired.md"}),
        ("memory_read_page", {"path": "notes/deleted.md"}),
        ("memory_read_page", {"path": "notes/b.md"}),
        ("memory_read_session_observations", {"session_id": id_text(session_id_from("bobs"))}),
        ("memory_read_session_observations", {"session_id": id_text(session_id_from("theirs"))}),
    ],
)
def test_what_is_hidden_is_not_told_when_it_is_named(world: World, tool: str, arguments: dict[str, Any]):
    scope = {"workspace": "default", "project": "alpha"}
    answer = world.house.client().post(
        f"/api/v1/tools/{tool}", data=json.dumps(arguments | scope), headers=world.headers
    )

    assert (answer.status_code, leaks(answer.text)) == (404, [])


def test_all_projects_together_hide_all_but_the_projects(world: World):
    answer = world.house.client().post(
        "/api/v1/tools/memory_query",
        data=json.dumps({"query": ASKED, "everywhere": True, "limit": 100}),
        headers=world.headers,
    )

    assert leaks(answer.text, "of another project") == []
    assert "zqbetatitle" in answer.text.lower()


# --- the command line ----------------------------------------------------------------------------


@pytest.fixture
def command_line(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server = make_server("127.0.0.1", 0, world.house.app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MEMORYD_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("MEMORYD_TOKEN", world.ada)
    for name in ("MEMORYD_TOKEN_FILE", "MEMORYD_CLIENT_CONFIG", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    yield
    server.shutdown()
    thread.join(60)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("search", ASKED), "zqshown"),
        (("search", "zqexpiredbody", "zqbobprompt"), ""),
        (("read-page", PATH), "zqshown"),
        (("read-page", ASKED), ""),
        (("briefing",), "zqshown"),
        (("sessions", "list"), ""),
        (("handoffs",), ""),
        (("versions", PATH), ""),
        (("knowledge", "list"), "zqalphaknown"),
        (("knowledge", "search", ASKED), "zqalphaknown"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_no_command_tells_what_is_hidden(
    command_line: None, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], shown: str, as_json: bool
):
    with pytest.raises(SystemExit):
        main([*words, "--workspace", "default", "--project", "alpha", *(["--json"] if as_json else [])])
    printed = capsys.readouterr()

    assert leaks(printed.out + printed.err) == []
    assert shown in printed.out.lower()
    assert "No such" not in printed.err, printed.err
