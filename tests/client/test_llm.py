"""What `memoryd llm` says to a person."""

from __future__ import annotations

from typing import Any

import pytest

from client import jobs
from client.server import Server
from memory_core.domain.job import Failure
from tests.client import prompt

STATE: dict[str, Any] = {
    "state": "on",
    "provider": "openai",
    "model": "gpt-x",
    "embed_provider": None,
    "embed_model": None,
    "stops": [],
    "currency": "EUR",
    "budget": {"tokens_per_day": 1_000_000, "money_per_day": 2.5, "project": {}, "backlog_max": 500},
    "priced": True,
    "today": {
        "day": "2026-01-01",
        "calls": 3,
        "tokens": 1_234,
        "money": 0.5,
        "reserved": {"calls": 0, "tokens": 0, "money": 0.0},
    },
    "refused_today": [],
    "jobs_waiting": 0,
}
ROW: dict[str, Any] = {
    "day": "2026-01-01",
    "workspace": "default",
    "project": "site",
    "kind": "consolidate",
    "provider": "openai",
    "model": "gpt-x",
    "calls": 3,
    "failed": 1,
    "lost": 0,
    "unpriced": 0,
    "input_tokens": 1_000,
    "output_tokens": 234,
    "cached_tokens": 0,
    "money": 0.5,
}
WORKS = {
    "provider": "openai",
    "model": "gpt-x",
    "ok": True,
    "seconds": 0.8,
    "input_tokens": 30,
    "output_tokens": 12,
    "repairs": 0,
    "dimensions": 0,
    "error": "",
    "message": "",
}


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the server answers, by path."""
    known: dict[str, Any] = {"/api/v1/models": dict(STATE), "/api/v1/models/usage": [ROW]}
    monkeypatch.setattr(Server, "get", lambda _self, path, **_query: known[path])
    monkeypatch.setattr(Server, "request", lambda _self, _method, path, **_more: (known[path], ""))
    monkeypatch.setattr(jobs, "_POLL_SECONDS", 0.0)
    return known


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    return prompt.told(capsys, "llm", *words)


def test_usage_says_how_the_budget_stands_and_lists_what_was_used(
    answers: dict[str, Any], capsys: pytest.CaptureFixture[str]
):
    code, out, err = told(capsys, "usage")

    assert code == 0
    assert "models: on (openai:gpt-x)" in err
    assert "today (UTC): 1,234 of 1,000,000 tokens, 0.5000 EUR of 2.5000, 3 calls" in err
    assert out.rstrip("\n").split("\t") == [
        *("2026-01-01", "default/site", "consolidate", "openai:gpt-x"),
        *("3", "1", "1,000", "234", "0", "0.5000 EUR"),
    ]


def test_usage_names_a_reached_budget_its_end_and_what_waits(
    answers: dict[str, Any], capsys: pytest.CaptureFixture[str]
):
    stop = {"workspace": "default", "project": "site", "kind": None, "reason": "project_tokens_per_day"}
    answers["/api/v1/models"] |= {
        "state": "budget_reached",
        "until": "2026-01-02T00:00:00Z",
        "message": "today's tokens are used up",
        "stops": [stop | {"until": "2026-01-02T00:00:00Z"}],
        "jobs_waiting": 7,
        "priced": False,
        "refused_today": [{"kind": "consolidate", "reason": "backlog", "count": 2}],
    }
    answers["/api/v1/models/usage"] = []

    _, out, err = told(capsys, "usage")

    assert "models: budget reached until 2026-01-02T00:00:00Z (today's tokens are used up)" in err
    assert "default/site: project_tokens_per_day until 2026-01-02T00:00:00Z" in err
    assert "7 jobs wait for the budget" in err
    assert "2 jobs were left out today" in err
    assert "openai:gpt-x has no price" in err
    assert out == "No call.\n"


@pytest.mark.parametrize(
    ("found", "code", "said"),
    [
        (
            {"language": WORKS, "embedding": None},
            0,
            "language model openai:gpt-x: works, structured answers too (0.8 s, 30 tokens in, 12 out)",
        ),
        (
            {"language": WORKS, "embedding": WORKS | {"model": "emb", "dimensions": 8}},
            0,
            "embedder openai:emb: works (0.8 s, vectors of 8 numbers)",
        ),
        (
            {
                "language": WORKS | {"ok": False, "message": "The provider does not accept the key"},
                "embedding": None,
            },
            1,
            "language model openai:gpt-x: The provider does not accept the key",
        ),
        (
            {"language": WORKS | {"provider": "", "ok": False, "message": "install it"}, "embedding": None},
            1,
            "language model cannot be used: install it",
        ),
    ],
)
def test_a_check_says_what_works_and_what_does_not(
    answers: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    found: dict[str, Any],
    code: int,
    said: str,
):
    answers["/api/v1/models/test"] = {"job": "j1"}
    answers["/api/v1/jobs/j1"] = {"state": "completed", "finished_at": "now", "result": found}

    ended, out, _ = told(capsys, "test")

    assert ended == code
    assert said in out


def test_a_worker_without_the_servers_models_is_told_apart(
    answers: dict[str, Any], capsys: pytest.CaptureFixture[str]
):
    answers["/api/v1/models/test"] = {"job": "j1"}
    answers["/api/v1/jobs/j1"] = {
        "state": "failed",
        "finished_at": "now",
        "last_error": Failure.NO_PROVIDER.sentence,
        "result": None,
    }

    ended, _, said = told(capsys, "test")

    assert ended == 1
    assert "give it the same [models] as the server" in said


def test_a_check_that_nobody_takes_up_ends_with_where_to_look(
    answers: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    answers["/api/v1/models/test"] = {"job": "j1"}
    answers["/api/v1/jobs/j1"] = {
        "state": "pending",
        "finished_at": None,
        "waits_for": None,
        "cancel_asked_at": None,
    }
    ticks = iter(range(0, 10_000, 40))
    monkeypatch.setattr(jobs.time, "monotonic", lambda: float(next(ticks)))

    code, _, err = told(capsys, "test", "--json")

    assert code == 1
    assert "the job is still pending after 120 s; see memoryd jobs show j1" in err


def test_pausing_and_resuming_say_what_changed(answers: dict[str, Any], capsys: pytest.CaptureFixture[str]):
    answers["/api/v1/models/pause"] = {"paused": True, "changed": False}
    answers["/api/v1/models/resume"] = {"paused": False, "changed": True, "freed": 2}

    assert told(capsys, "pause", "--reason", "x")[1] == "Models were paused already.\n"
    assert told(capsys, "resume")[1] == "Models go on.\n"
