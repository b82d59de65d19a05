"""What the writer does of its own accord: the duties on its list, on a real database."""

from __future__ import annotations

from pathlib import Path

from memory_core import limits
from memory_core.commands.capture import RecordObservation
from memory_core.domain.capture import capped
from tests.factories import database, event
from workers.writer.process import DUTIES


def test_a_session_that_never_ended_is_ended_after_two_hours_of_silence(tmp_path: Path):
    store = database(tmp_path)
    (duty,) = (duty for duty in DUTIES if duty.name == "end_idle_sessions")
    for session in ("a", "b", "c"):
        store.apply(
            RecordObservation(event=capped(event(session_key=session, body="go")), source="cursor/user")
        )
    store.clock.advance(limits.SESSION_IDLE_SECONDS + 1)
    ended: list[int] = []
    while not ended or ended[-1]:
        with store.transaction() as tx:
            ended.append(duty.work(tx))

    # Few at a time, so that commands are not kept waiting.
    assert ended == [2, 1, 0]
    assert {row["end_reason"] for row in store.all("SELECT end_reason FROM sessions")} == {"idle"}
    store.close()
