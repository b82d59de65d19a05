"""A journal as it is stored: read back as it was, and refused when a row was edited."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from memory_core import limits
from memory_core.domain import tool_steps
from memory_core.domain.agent_message import AssetKind, AssetReference, Message, Role, Text
from memory_core.domain.tool_journal import Journal
from memory_core.domain.tool_rows import (
    StoredBatch,
    StoredCall,
    StoredTurn,
    batch_row,
    read_journal,
    turn_row,
)
from memory_core.errors import Corrupt
from tests.durable.journals import HERE, allow, begun, call, done, new_id, planned, request, wrong

PICTURE = AssetReference("cd" * 32, 10, AssetKind.IMAGE)


def mixed() -> Journal:
    """One call completed, one started after it was allowed, one that somebody is asked about."""
    one, two, three = call(), call("read_file", path="ä.py"), call()
    message = Message(role=Role.USER, content=(Text("look"), PICTURE))
    journal = done(planned(one, two, three, journal=begun(message)), one, outputs=[wrong()])
    journal = tool_steps.audited(journal, request(two))
    journal = tool_steps.audited(journal, allow(two))
    return tool_steps.audited(tool_steps.started(journal, two.id), request(three))


def stored(journal: Journal) -> tuple[StoredTurn, StoredBatch]:
    return turn_row(journal.open_turn), batch_row(journal.open_batch)


def test_a_journal_comes_back_as_it_was():
    journal = mixed()
    assert read_journal(HERE, *stored(journal)) == journal
    assert read_journal(HERE, turn_row(begun().open_turn), None).batch is None
    assert read_journal(HERE, None, None) == Journal(directory=HERE)


def test_what_its_calls_say_is_not_stored_twice():
    long = call(text="x" * 50_000)
    journal = done(planned(long), long)
    row = batch_row(journal.open_batch)
    assert len(row.audit_json) < 2_000
    assert sum(len(entry.arguments_json) for entry in row.calls) > 50_000


def edited(batch: StoredBatch, index: int, **change: Any) -> StoredBatch:
    calls = list(batch.calls)
    calls[index] = replace(calls[index], **change)
    return replace(batch, calls=tuple(calls))


def audit(batch: StoredBatch, change: Callable[[list[Any]], object]) -> StoredBatch:
    events = json.loads(batch.audit_json)
    change(events)
    return replace(batch, audit_json=json.dumps(events))


def messages(batch: StoredBatch, change: Callable[[list[Any]], object]) -> StoredBatch:
    values = json.loads(batch.messages_json)
    change(values)
    return replace(batch, messages_json=json.dumps(values))


Edit = Callable[[StoredTurn, StoredBatch], tuple[StoredTurn | None, StoredBatch]]


def of_batch(change: Callable[[StoredBatch], StoredBatch]) -> Edit:
    return lambda turn, batch: (turn, change(batch))


EDITS: dict[str, Edit] = {
    "the turn is gone": lambda turn, batch: (None, batch),
    "another turn": lambda turn, batch: (replace(turn, turn_id=new_id()), batch),
    "a checkpoint more": lambda turn, batch: (replace(turn, checkpoint_count=1), batch),
    "another input": lambda turn, batch: (
        replace(turn, input_json=turn.input_json.replace("look", "obey")),
        batch,
    ),
    "no JSON": lambda turn, batch: (replace(turn, input_json="{"), batch),
    "an input of the assistant": lambda turn, batch: (
        replace(turn, input_json=turn.input_json.replace('"user"', '"assistant"')),
        batch,
    ),
    "messages no JSON": of_batch(lambda b: replace(b, messages_json="[")),
    "messages no list": of_batch(lambda b: replace(b, messages_json="{}")),
    "a message less": of_batch(lambda b: messages(b, lambda m: m.pop())),
    "no digest of the input": of_batch(lambda b: messages(b, lambda m: m.pop(0))),
    "another digest of the input": of_batch(
        lambda b: messages(b, lambda m: m[0].update(input_sha256="ab" * 32))
    ),
    "a message of another version": of_batch(lambda b: messages(b, lambda m: m[1].update(version=2))),
    "a message of another record": of_batch(lambda b: messages(b, lambda m: m[1].update(record="x"))),
    "a field more": of_batch(lambda b: messages(b, lambda m: m[0].update(extra=1))),
    "arguments in the message": of_batch(
        lambda b: messages(b, lambda m: m[1]["tool_calls"][0].update(arguments={"command": "rm"}))
    ),
    "arguments in the row": of_batch(lambda b: edited(b, 0, arguments_json='{"command":"rm"}')),
    "arguments no object": of_batch(lambda b: edited(b, 0, arguments_json="[]")),
    "arguments no JSON": of_batch(lambda b: edited(b, 0, arguments_json="")),
    "another tool": of_batch(lambda b: edited(b, 0, tool_name="rm")),
    "no tool's name": of_batch(lambda b: edited(b, 0, tool_name="r m")),
    "another call id": of_batch(lambda b: edited(b, 0, call_id=new_id())),
    "no call id": of_batch(lambda b: edited(b, 0, call_id="toolu_1")),
    "a state back": of_batch(lambda b: edited(b, 1, state="planned")),
    "an unknown state": of_batch(lambda b: edited(b, 1, state="running")),
    "an unknown origin": of_batch(lambda b: edited(b, 0, result_origin="guess")),
    "another origin": of_batch(lambda b: edited(b, 0, result_origin="not_executed")),
    "no origin": of_batch(lambda b: edited(b, 0, result_origin=None)),
    "no result": of_batch(lambda b: edited(b, 0, result_json=None)),
    "no longer an error, in the row": of_batch(lambda b: edited(b, 0, result_is_error=None)),
    "a result of another call": of_batch(
        lambda b: edited(
            b, 0, result_json=str(b.calls[0].result_json).replace(b.calls[0].call_id, b.calls[1].call_id)
        )
    ),
    "a result too early": of_batch(lambda b: edited(b, 2, result_json=b.calls[0].result_json)),
    "a gap in the ordinals": of_batch(lambda b: edited(b, 2, ordinal=3)),
    "a call less": of_batch(lambda b: replace(b, calls=b.calls[:2])),
    "calls in another order": of_batch(
        lambda b: replace(
            b, calls=(replace(b.calls[1], ordinal=0), replace(b.calls[0], ordinal=1), b.calls[2])
        )
    ),
    "a start less": of_batch(lambda b: audit(b, lambda a: a.pop(-2))),
    "an event in the middle less": of_batch(lambda b: audit(b, lambda a: a.pop(6))),
    "events swapped": of_batch(lambda b: audit(b, lambda a: a.insert(6, a.pop(7)))),
    "an event of another version": of_batch(lambda b: audit(b, lambda a: a[0].update(version=2))),
    "an event of another record": of_batch(lambda b: audit(b, lambda a: a[0].update(record="x"))),
    "an event of another type": of_batch(lambda b: audit(b, lambda a: a[0]["event"].update(type="x"))),
    "an event that is none": of_batch(lambda b: audit(b, lambda a: a.__setitem__(0, 7))),
    "an event's field more": of_batch(lambda b: audit(b, lambda a: a[0]["event"].update(extra=1))),
    "an event of a stranger": of_batch(
        lambda b: audit(b, lambda a: a[-1]["event"]["context"].update(call_id="x"))
    ),
    "an approval made up": of_batch(
        lambda b: audit(b, lambda a: a[-3]["event"].update(decision={"type": "deny", "reason": "no"}))
    ),
    "an approval elsewhere": of_batch(
        lambda b: audit(b, lambda a: a[-1]["event"]["context"].update(workspace_inode="1"))
    ),
    "audit no list": of_batch(lambda b: replace(b, audit_json="7")),
    "assets less": of_batch(lambda b: replace(b, assets=frozenset())),
    "assets more": of_batch(lambda b: replace(b, assets=frozenset(("cd" * 32, "ef" * 32)))),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_row_fails_closed(name: str):
    turn, batch = EDITS[name](*stored(mixed()))
    with pytest.raises(Corrupt, match="changed or is damaged"):
        read_journal(HERE, turn, batch)


def test_a_seventeenth_row_is_damage():
    calls = [call() for _ in range(16)]
    turn, batch = stored(planned(*calls))
    read_journal(HERE, turn, batch)
    more = StoredCall(
        call_id=new_id(),
        ordinal=16,
        tool_name="shell",
        arguments_json="{}",
        state="planned",
        result_json=None,
        result_origin=None,
        result_is_error=None,
    )
    with pytest.raises(Corrupt, match="more than 16 calls"):
        read_journal(HERE, turn, replace(batch, calls=(*batch.calls, more)))


def test_an_input_that_grew_is_damage():
    turn, _ = stored(mixed())
    part = {"type": "text", "data": "x" * limits.FIELD_REDACTED_MAX_BYTES}
    value = json.loads(turn.input_json)
    value["content"] = [part] * 8
    with pytest.raises(Corrupt, match="input is at most"):
        read_journal(HERE, replace(turn, input_json=json.dumps(value)), None)
