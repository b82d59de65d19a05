"""What somebody at a prompt sees of sessions, knowledge and jobs: nothing that others wrote drives the terminal or begins a line, counts are
counted in words, and an empty list says of what."""

from __future__ import annotations

import io
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from client.durable.directory import identity_of
from memory_core.ids import id_bytes
from tests.client.durable.gate import Gate
from tests.client.prompt import Prompt
from tests.durable.working import Client, said

#: A title that clears the screen, turns the line round and writes lines and columns of its own.
CRAFTED = "a\x1b[2J\x07b\u202ec\u2066d\tfree\t9\nstays: nothing"
DRIVES = {"\x1b", "\x07", "\u202e", "\u2066"}


def session(gate: Gate, title: str, *texts: str, project: str = "crafted") -> Client:
    made = Client(gate.house, directory=asdict(identity_of(".", os.environ)), title=title, project=project)
    made.claim()
    for text in texts:
        made.append(said(text))
    made.post("release")
    return made


def test_crafted_rows_neutralize_untrusted_inline_fields(
    person: Prompt, gate: Gate, monkeypatch: pytest.MonkeyPatch
):
    made = session(gate, CRAFTED, "one")
    inline = "a\\u001b[2J\\u0007b\\u202ec\\u2066d free 9 stays: nothing"

    for words in (("list", "--durable", "--project", "crafted"), ("list", "--project", "crafted")):
        (line,) = person.says("sessions", *words).splitlines()
        assert inline in line.split("\t")
    assert f"title\t{inline}" in person.says("sessions", "show", made.id).splitlines()
    assert person.says("sessions", "title", made.id, CRAFTED).splitlines() == [f"{made.id}: {inline}"]
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    person.says("sessions", "delete", made.id, code=1)
    assert person.err.splitlines()[0].startswith(f"{inline}: 1 event")
    assert "stays: nothing" not in person.err.splitlines()
    entry = person.asks(
        "knowledge", "remember", f"key {CRAFTED}", "--body", "it is so", "--project", "crafted"
    )
    for words in (("list",), ("search", "key"), ("show", entry["id"]), ("history", entry["id"])):
        shown = person.says("knowledge", *words, *(["--project", "crafted"] if len(words[0]) > 3 else []))
        assert not DRIVES & set(shown)
        assert "stays: nothing" not in shown.splitlines()


def test_human_counts_use_singular_and_plural_grammar(
    person: Prompt, gate: Gate, monkeypatch: pytest.MonkeyPatch
):
    one, three = session(gate, "one", "a"), session(gate, "three", "a", "b", "c")
    for made, said_so in (
        (one, ("1 event,", "from 1 event yet")),
        (three, ("3 events,", "from 3 events yet")),
    ):
        monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
        person.says("sessions", "delete", made.id, code=1)
        assert all(words in person.err for words in said_so)


def test_empty_states_are_specific_to_scope(person: Prompt, gate: Gate):
    session(gate, "elsewhere", "a", project="full")
    person.asks("knowledge", "remember", "a key", "--body", "it is so", "--project", "full")
    session(gate, "empty now", project="bare")

    here = person.says("knowledge", "list")
    assert f"Nothing is known in the directory {Path.cwd()}" in here
    assert "Nothing is known in the project default/bare" in person.says(
        "knowledge", "list", "--project", "bare"
    )
    assert "holds 'moon'" in person.says("knowledge", "search", "moon", "--project", "full")
    assert person.says("jobs", "list", "--state", "failed") == "No job of that sort.\n"


def test_status_rows_align_and_queue_state_stays_explicit(person: Prompt, gate: Gate):
    for _ in range(2):
        made = session(gate, "waits", "Remember that the sea is near.")
        made.claim()
        made.resume()
        made.post("close", {"directory": made.directory})

    rows = person.says("status").splitlines()[1:]
    told = [row for row in rows if row.strip()]
    columns = [
        at for at in range(5, 20) if all(row[at - 1] == " " and row[at : at + 1].strip() for row in told)
    ]
    assert columns, "all say what they say from the same column on"
    asked = person.asks("jobs", "list")["queues"]
    person.says("jobs", "list")
    lines = {line.split(":")[0]: line for line in person.err.splitlines()}
    for queue in asked:  # an empty one, too, says of itself what waits and what runs
        assert f"{queue['pending']} pending" in lines[queue["queue"]]
        assert f"{queue['running']} running" in lines[queue["queue"]]
    (waiting,) = [queue["pending"] for queue in asked if queue["queue"] == "distillation"]
    assert waiting >= 2


def test_memory_failure_inspection_and_retry_commands_parse(person: Prompt, gate: Gate):
    """A distillation that failed for good is listed with its reason, shown, and tried again by its id."""
    made = session(gate, "fails", "Remember that the moon is far.")
    made.claim()
    made.resume()
    job = made.post("close", {"directory": made.directory}).get_json()["job"]
    gate.house.stop_writer()
    gate.rows(
        "UPDATE jobs SET state = 'failed', failures = 3, last_error = 'the model refused', finished_at = 1"
        " WHERE id = ?",
        id_bytes(job),
    )
    gate.house.start_writer()

    assert [each["id"] for each in person.asks("jobs", "list", "--state", "failed")["jobs"]] == [job]
    assert "the model refused" in person.says("jobs", "show", job)
    assert person.asks("jobs", "retry", job)
    shown = person.asks("jobs", "show", job)
    assert (shown["state"], shown["failures"]) == ("pending", 0)
    person.says("jobs", "retry", "no-job", code=1)
