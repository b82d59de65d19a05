"""`memoryd explore`, `embed` and `models` as a person or a program calls them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from memory_core.domain.recalled import NOTICE, fence
from memory_core.models import local_files
from memory_core.models.local_files import MODEL_FILE, VOCABULARY_FILE
from tests.client.gate_server import Gate
from tests.client.prompt import told

HIT = {
    "title": "Retries",
    "path": "notes/retries.md",
    "workspace": "default",
    "project": "alpha",
    "date": "2031-05-01",
    "snippet": fence("it <mark>retries</mark>", "notes/retries.md", with_notice=False),
}
STATE = {
    "state": "working",
    "provider": "local",
    "model": "m",
    "progress": "3 of 5, 2 s left",
    "total": 5,
    "pending": 2,
    "failed": 1,
}
JOB = {
    "state": "completed",
    "finished_at": "2031-05-01T12:00:00Z",
    "waits_for": None,
    "last_error": None,
    "result": {"embedded": 2},
}


@pytest.fixture(autouse=True)
def environment(at_gate: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())  # nobody is there to answer


# --- explore ---------------------------------------------------------------------------------------


def explored(**more: Any) -> dict[str, Any]:
    prose = fence("default/alpha holds 1 page.", "overview", with_notice=False)
    return {"prose": prose, "gap": {"bucket": "today"}, "hits": [], "notice": NOTICE, "briefing": {}, **more}


def test_a_project_is_told_in_sentences_without_their_fence(gate: Gate, capsys: pytest.CaptureFixture[str]):
    gate.behaviour = lambda _: (200, explored(), {})

    assert told(capsys, "explore") == (0, "default/alpha holds 1 page.\n", "")
    assert gate.paths == ["/api/v1/tools/memory_explore"]
    assert gate.batches == [{"recent_pages_limit": 10}]


def test_a_focus_is_asked_for_as_it_stands_and_its_hits_are_shown(
    gate: Gate, capsys: pytest.CaptureFixture[str]
):
    gate.behaviour = lambda _: (200, explored(hits=[HIT]), {})

    code, out, _ = told(capsys, "explore", "uploader", '"AND', "--project", "alpha")

    assert code == 0
    assert "Retries\n  default/alpha:notes/retries.md  2031-05-01\n" in out
    assert "memoryd:recalled" not in out
    asked: Any = gate.batches[0]
    assert (asked["focus"], asked["project"]) == ('uploader "AND', "alpha")


def test_what_was_not_looked_at_is_said_beside_the_answer(gate: Gate, capsys: pytest.CaptureFixture[str]):
    gate.behaviour = lambda _: (200, explored(streams_failed=["vector"]), {})

    code, out, err = told(capsys, "explore", "x")

    assert (code, "vector" in out, "it failed: vector" in err) == (0, False, True)


def test_a_program_gets_all_of_it_bare(gate: Gate, capsys: pytest.CaptureFixture[str]):
    gate.behaviour = lambda _: (200, explored(hits=[HIT]), {})

    answer = json.loads(told(capsys, "explore", "x", "--json")[1])

    assert answer["prose"] == "default/alpha holds 1 page."
    assert answer["hits"][0]["snippet"] == "it <mark>retries</mark>"
    assert set(answer) == {"prose", "gap", "hits", "briefing"}


def test_an_unknown_scope_is_an_error_that_json_tells_too(gate: Gate, capsys: pytest.CaptureFixture[str]):
    gate.behaviour = lambda _: (404, {"code": "not_found", "error": "scope unknown"}, {})

    code, out, err = told(capsys, "explore", "--json")

    assert (code, out) == (1, "")
    assert json.loads(err)["error"]["code"] == "not_found"


# --- embed -----------------------------------------------------------------------------------------


def test_a_dry_run_says_what_would_be_embedded_and_asks_for_nothing(
    gate: Gate, capsys: pytest.CaptureFixture[str]
):
    gate.handoff = json.dumps(STATE)

    code, out, _ = told(capsys, "embed", "--dry-run")

    assert (code, "3 would be embedded." in out, gate.batches) == (0, True, [])
    forced = json.loads(told(capsys, "embed", "--dry-run", "--force", "--json")[1])
    assert forced["would_embed"] == 5
    assert gate.batches == []


@pytest.mark.parametrize(("failed", "code"), [(0, 0), (1, 1)])
def test_it_waits_for_its_end_and_fails_where_a_text_failed(
    gate: Gate, capsys: pytest.CaptureFixture[str], failed: int, code: int
):
    gate.handoff = json.dumps({**STATE, **JOB, "failed": failed})
    gate.behaviour = lambda _: (200, {"job": "j"}, {})

    ended, out, _ = told(capsys, "embed")

    assert (ended, "Done: 3 of 5" in out) == (code, True)
    assert gate.batches == [{"force": False, "all_projects": False}]
    ended, out, _ = told(capsys, "embed", "--json")
    assert (ended, json.loads(out)["job"]["state"]) == (code, "completed")


def test_a_job_that_failed_is_told_with_its_reason(gate: Gate, capsys: pytest.CaptureFixture[str]):
    gate.handoff = json.dumps({**STATE, **JOB, "failed": 0, "state": "failed", "last_error": "no network"})
    gate.behaviour = lambda _: (200, {"job": "j"}, {})

    code, out, _ = told(capsys, "embed")

    assert (code, "no network" in out) == (1, True)


def test_making_all_anew_is_asked_for_first_and_names_its_scope(
    gate: Gate, capsys: pytest.CaptureFixture[str]
):
    gate.handoff = json.dumps({**STATE, **JOB, "failed": 0})
    gate.behaviour = lambda _: (200, {"job": "j"}, {})

    assert told(capsys, "embed", "--force")[0] == 2
    assert gate.batches == []
    assert told(capsys, "embed", "--force", "--yes", "--project", "other/alpha")[0] == 0
    told_body: Any = gate.batches[0]
    assert (told_body["workspace"], told_body["project"], told_body["force"]) == ("other", "alpha", True)
    assert told(capsys, "embed", "--all-projects", "--project", "alpha")[0] == 2


def test_without_an_embedder_it_says_how_to_get_one(gate: Gate, capsys: pytest.CaptureFixture[str]):
    gate.handoff = json.dumps({"state": "off"})

    code, _, err = told(capsys, "embed")

    assert code != 0
    assert "memoryd[local]" in err
    assert json.loads(told(capsys, "embed", "--json")[2])["error"]["code"] == "no_embedder"


# --- models ----------------------------------------------------------------------------------------


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data" / "db").mkdir(parents=True)
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    return tmp_path / "data"


def test_a_model_is_added_listed_verified_and_removed(data: Path, capfd: pytest.CaptureFixture[str]):
    shipped = local_files.find(data / "models", local_files.BUILT_IN.name)
    files = ["--model", str(shipped.paths[MODEL_FILE]), "--tokenizer", str(shipped.paths[VOCABULARY_FILE])]

    assert 'embed_model = "mine"' in told(capfd, "models", "add", "mine", *files)[1]
    listed = json.loads(told(capfd, "models", "list", "--json")[1])["models"]
    assert [one["name"] for one in listed] == ["all-minilm-l6-v2", "mine"]
    assert "mine" in told(capfd, "models", "list")[1]
    assert told(capfd, "models", "verify")[:2] == (0, "all-minilm-l6-v2: whole\nmine: whole\n")

    vocabulary = local_files.find(data / "models", "mine").paths[VOCABULARY_FILE]
    vocabulary.write_text(vocabulary.read_text() + "more\n")
    code, _, err = told(capfd, "models", "verify", "mine")
    assert (code, "is not the file" in err) == (1, True)
    assert told(capfd, "models", "remove", "mine")[0] == 2
    assert told(capfd, "models", "remove", "mine", "-y")[1] == "Removed mine.\n"
    code, _, err = told(capfd, "models", "remove", "mine", "-y", "--json")
    assert (code, json.loads(err)["error"]["code"]) == (1, "not_found")


def test_a_model_that_is_configured_is_not_removed(
    data: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    shipped = local_files.find(data / "models", local_files.BUILT_IN.name)
    files = ["--model", str(shipped.paths[MODEL_FILE]), "--tokenizer", str(shipped.paths[VOCABULARY_FILE])]
    assert told(capfd, "models", "add", "mine", *files)[0] == 0
    monkeypatch.setenv("MEMORYD_MODELS__EMBED_PROVIDER", "local")
    monkeypatch.setenv("MEMORYD_MODELS__EMBED_MODEL", "mine")

    code, _, err = told(capfd, "models", "remove", "mine", "-y")

    assert (code, "configur" in err) == (1, True)
