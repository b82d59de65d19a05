"""What a person reads: sentences that say what to do, whole pages, ids that can be copied."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from client import output
from client.server import DIRECTORY_HEADER
from memory_core import config, limits
from memory_core.domain.recalled import fence
from memory_core.errors import Invalid
from tests.client.gate_server import Gate, answers
from tests.client.prompt import told
from workers.supervisor import run as supervisor

pytestmark = pytest.mark.usefixtures("at_gate")


def test_a_token_that_is_not_accepted_is_named_by_its_place(
    gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    gate.behaviour = answers(401)
    assert told(capsys, "search", "x")[0] == 4

    monkeypatch.delenv("MEMORYD_TOKEN")
    monkeypatch.setenv("MEMORYD_TOKEN_FILE", str(tmp_path / "nowhere"))
    code, _, said = told(capsys, "search", "x")
    assert code == 4
    assert str(tmp_path / "nowhere") in said
    assert "MEMORYD_TOKEN_FILE" in said


def test_what_is_no_memoryd_is_called_so_and_its_page_is_not_shown(
    gate: Gate, capsys: pytest.CaptureFixture[str]
):
    gate.behaviour = lambda _: (501, b"<html>nope</html>", {})
    code, _, said = told(capsys, "search", "x")
    assert (code, "html" in said, "not memoryd" in said) == (1, False, True)


def test_an_address_that_is_none_is_not_taken_for_a_server_that_is_down(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("MEMORYD_URL", "nonsense")
    code, _, said = told(capsys, "search", "x")
    assert (code, "MEMORYD_URL" in said, "memoryd up" in said) == (1, True, False)


def test_a_request_that_is_too_large_is_not_sent(gate: Gate, capsys: pytest.CaptureFixture[str]):
    code, _, said = told(capsys, "write-page", "a.md", "-b", "x" * limits.REQUEST_BODY_MAX_BYTES)
    assert (code, "10 MB" in said, gate.batches) == (1, True, [])


def test_a_long_page_is_printed_whole(gate: Gate, capsys: pytest.CaptureFixture[str]):
    text = "".join(f"line {n}\n" for n in range(40)) + "the end"
    where = {"path": "a.md", "workspace": "default", "project": "p", "version_id": "v"}

    def parts(asked: Any) -> tuple[int, Any, dict[str, str]]:
        start = asked.get("offset", 0)
        more = {"next_offset": start + 100} if start + 100 < len(text) else {}
        return 200, {**where, "body": fence(text[start : start + 100], "page"), **more}, {}

    gate.behaviour = parts
    assert told(capsys, "read-page", "a.md") == (0, text + "\n", "")


def test_a_page_that_was_not_there_is_not_called_deleted(gate: Gate, capsys: pytest.CaptureFixture[str]):
    gate.behaviour = lambda _: (200, {"path": "a.md", "deleted": True, "existed": False}, {})
    assert told(capsys, "delete-page", "-y", "a.md")[1] == "There is no page a.md; nothing to delete\n"


def test_it_is_said_where_a_page_was_written(gate: Gate, capsys: pytest.CaptureFixture[str]):
    gate.behaviour = lambda _: (200, {"path": "a.md", "workspace": "default", "project": "p"}, {})
    assert told(capsys, "write-page", "a.md", "-b", "x")[1] == "Wrote default/p:a.md\n"


def test_how_a_hit_was_found_is_explained_on_demand(gate: Gate, capsys: pytest.CaptureFixture[str]):
    details = {"fused": 0.7, "streams": {"lexical": {"rank": 2, "score": 0.5}}}
    hit = {"path": "a.md", "title": "A", "score": 1.5, "score_details": details}
    gate.behaviour = lambda _: (200, {"hits": [hit]}, {})

    said = told(capsys, "search", "x", "--explain")[1]

    assert "  score 1.5: fused 0.7\n    lexical: rank 2, score 0.5\n" in said


def test_a_turn_is_shown_with_who_said_it_and_where(gate: Gate, capsys: pytest.CaptureFixture[str]):
    turn = {
        "title": "we",
        "workspace": "default",
        "project": "p",
        "path": "",
        "session_id": "s-1",
        "speaker": "Ada",
    }
    paged = {**turn, "path": "sessions/s-1.md"}
    gate.behaviour = lambda _: (200, {"hits": [turn, paged]}, {})

    said = told(capsys, "search", "x")[1]

    assert "  default/p  session s-1  Ada" in said
    assert "  default/p:sessions/s-1.md  Ada" in said


def test_a_command_says_in_which_repository_it_was_given(
    gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    below = tmp_path / "my shop" / "src"
    (tmp_path / "my shop" / ".git").mkdir(parents=True)
    below.mkdir()
    monkeypatch.chdir(below)
    gate.behaviour = lambda _: (200, {"hits": []}, {})
    told(capsys, "search", "x")
    assert gate.headers[-1][DIRECTORY_HEADER].endswith("/my%20shop")


@pytest.mark.parametrize("width", [60, 100, 140])
def test_an_id_stays_in_one_piece_on_a_narrow_terminal(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(
        output, "Console", lambda: Console(force_terminal=True, width=width, color_system=None)
    )
    row = ("2031-05-01T12:00:00", "codex", "open", "[a] 題 " * 20, "01a22cdd-420f-7002-a074-4c148a70b1e1")
    columns = ("started", "agent", "state", "title", "id")
    output.table(columns, [row, row], empty="", cut="title")
    head, *lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert head.split() == list(columns)
    assert [[word for word in row if word in line] for line in lines] == [[*row[:3], row[4]]] * 2
    assert all("[a]" in line and "…" in line for line in lines)
    assert all(cell_len(line) <= max(width, 90) for line in lines)


def test_a_scope_that_is_unknown_is_answered_with_the_options_that_name_one(
    gate: Gate, capsys: pytest.CaptureFixture[str]
):
    error = {"code": "not_found", "error": "scope unknown: no session is open"}
    gate.behaviour = lambda _: (404, error, {})
    assert "--everywhere" in told(capsys, "search", "x")[2]


def test_no_option_is_declared_twice():
    for name in ("up", "search", "write_page", "read_page", "sessions"):
        command = __import__(f"client.commands.{name}", fromlist=["command"]).command
        options = [option for parameter in command.params for option in parameter.opts]
        assert len(options) == len(set(options)), name


def test_one_port_for_both_is_refused_before_anything_starts(tmp_path: Path):
    with pytest.raises(Invalid, match="--probe-port"):
        config.load({"port": 24_000, "probe_port": 24_000, "data_dir": tmp_path}, {})


def test_the_next_step_holds_for_another_directory_and_port_too(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    def announced(**given: Any) -> str:
        supervisor._announce(config.load(given), (), is_whole=True, as_json=False)
        return capsys.readouterr().out

    assert "another terminal: memoryd demo" in announced()
    said = announced(port=23_456, data_dir=tmp_path / "my data")
    assert (
        f"export MEMORYD_URL=http://127.0.0.1:23456 MEMORYD_TOKEN_FILE='{tmp_path}/my data/token'; " in said
    )


def test_a_token_file_that_holds_no_token_is_a_fault_of_the_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.delenv("MEMORYD_TOKEN")
    monkeypatch.setenv("MEMORYD_TOKEN_FILE", str(tmp_path / "token"))
    for text in ("one\ntwo\n", "one two", "tökén"):
        (tmp_path / "token").write_text(text, encoding="utf-8")
        code, _, said = told(capsys, "search", "x")

        assert code == 4
        assert f"what is in {tmp_path / 'token'} is no token" in said


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:99999",
        "http://127.0.0.1:port",
        "http://[::1",
        "ftp://x",
        "http://",
        "http://a..b",
        "http://a b",
    ],
)
def test_a_url_that_cannot_be_used_is_a_fault_of_the_request(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("MEMORYD_URL", url)
    code, _, said = told(capsys, "search", "x")

    assert code == 1
    assert "MEMORYD_URL" in said
    assert "is it running" not in said
