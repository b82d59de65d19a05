"""The journal against a plain record of what a client did: whatever steps it takes and whenever it dies, every load succeeds, a
recovery ends the turn once, and the transcript is a history that a model can go on from."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from memory_core.commands.tool_journal import DiscardBatch
from memory_core.domain.agent_message import ToolCall, check_history, read_message
from memory_core.domain.audit_event import Cancelled
from memory_core.domain.command import Refusal
from memory_core.domain.tool_journal import (
    NOT_EXECUTED_TEXT,
    UNCERTAIN_TEXT,
    Journal,
    denial_text,
)
from memory_core.ids import id_bytes
from tests.durable.holder import worker
from tests.durable.journals import HERE, call, prompt
from tests.factories import database

INDEX = st.integers(0, 15)
_SPOKEN = ("user_message", "assistant_message", "tool_call", "tool_result")


@dataclass
class Paper:
    """What is known of one call."""

    call: ToolCall
    state: str = "planned"
    #: `asked`, `allowed`, `denied`.
    approval: str = ""
    result: str = ""


class Turns(RuleBasedStateMachine):
    @initialize()
    def begin_session(self) -> None:
        self.directory = tempfile.TemporaryDirectory(prefix="journal-model-")
        self.store = database(Path(self.directory.name))
        self.ada = worker(self.store)
        self.number = 0
        self.input: str | None = None
        self.papers: list[Paper] = []
        #: (role, text) of every message that must be in the transcript.
        self.history: list[tuple[str, str]] = []
        self.checkpoints = 0
        #: After a crash nothing goes on before the turn is recovered.
        self.has_crashed = False

    def done(self, answer: Any) -> Any:
        assert not isinstance(answer, Refusal), answer
        return answer

    def refused(self, answer: Any) -> None:
        assert isinstance(answer, Refusal), answer

    @property
    def lives(self) -> bool:
        return not self.has_crashed

    def paper(self, index: int) -> Paper:
        return self.papers[index % len(self.papers)]

    def write_round(self) -> None:
        if not self.checkpoints:
            self.history.append(("user", str(self.input)))
        self.history.append(("assistant", ""))
        self.history += [("tool", paper.result) for paper in self.papers]
        self.papers = []
        self.checkpoints += 1

    def turn_is_over(self) -> None:
        self.input, self.papers, self.checkpoints, self.has_crashed = None, [], 0, False

    # --- the turn ---

    @precondition(lambda self: self.lives)
    @rule()
    def begin(self) -> None:
        self.number += 1
        if self.input is not None:
            turn, rounds = self.ada.turn, self.ada.rounds
            self.refused(self.ada.begin())
            self.ada.turn, self.ada.rounds = turn, rounds
            return
        self.input = f"task {self.number}"
        self.done(self.ada.begin(prompt(self.input)))

    @precondition(lambda self: self.lives and self.input is not None and self.checkpoints < 15)
    @rule(count=st.integers(1, 4))
    def plan(self, count: int) -> None:
        calls = [call() for _ in range(count)]
        answer = self.ada.plan(*calls)
        if self.papers:
            self.refused(answer)
            return
        self.done(answer)
        self.papers = [Paper(each) for each in calls]

    @precondition(lambda self: self.lives and self.papers)
    @rule(index=INDEX)
    def ask(self, index: int) -> None:
        paper = self.paper(index)
        answer = self.ada.ask(paper.call)
        if paper.state == "planned" and not paper.approval:
            self.done(answer)
            paper.approval = "asked"
        else:
            self.refused(answer)

    @precondition(lambda self: self.lives and self.papers)
    @rule(index=INDEX, is_allowed=st.booleans())
    def decide(self, index: int, is_allowed: bool) -> None:
        paper = self.paper(index)
        answer = self.ada.decide(paper.call, is_allowed=is_allowed, reason=None if is_allowed else "no")
        if paper.state == "planned" and paper.approval == "asked":
            self.done(answer)
            paper.approval = "allowed" if is_allowed else "denied"
        else:
            self.refused(answer)

    @precondition(lambda self: self.lives and self.papers)
    @rule(index=INDEX)
    def start(self, index: int) -> None:
        paper = self.paper(index)
        answer = self.ada.start(paper.call)
        if paper.state == "planned" and paper.approval in ("", "allowed"):
            self.done(answer)
            paper.state = "started"
        else:
            self.refused(answer)

    @precondition(lambda self: self.lives and self.papers)
    @rule(index=INDEX, is_error=st.booleans())
    def complete(self, index: int, is_error: bool) -> None:
        """By the tool; a denied call with the words of its denial."""
        paper = self.paper(index)
        text = denial_text("no") if paper.approval == "denied" else f"result {self.number} {index}"
        answer = self.ada.complete(paper.call, text, is_error=is_error)
        is_told = paper.state == "planned" and is_error and paper.approval in ("", "denied")
        if paper.state == "started" or is_told:
            self.done(answer)
            paper.state, paper.result = "completed", text
        else:
            self.refused(answer)

    @precondition(lambda self: self.lives and self.papers)
    @rule(index=INDEX, origin=st.sampled_from(["not_executed", "uncertain"]))
    def close_call(self, index: int, origin: str) -> None:
        """As a client does that was cancelled."""
        paper = self.paper(index)
        answer = self.ada.complete(paper.call, origin, is_error=True, origin=origin)
        if paper.state == ("planned" if origin == "not_executed" else "started"):
            self.done(answer)
            paper.state, paper.result = "completed", origin
        else:
            self.refused(answer)

    @precondition(lambda self: self.lives and self.papers)
    @rule()
    def checkpoint(self) -> None:
        answer = self.ada.checkpoint()
        if all(paper.state == "completed" for paper in self.papers):
            self.done(answer)
            self.write_round()
        else:
            self.refused(answer)

    @precondition(lambda self: self.lives and self.papers)
    @rule()
    def discard(self) -> None:
        answer = self.ada.apply(DiscardBatch(**self.ada.holder, turn=id_bytes(self.ada.turn)))
        if all(paper.state == "planned" for paper in self.papers):
            self.done(answer)
            self.papers = []
        else:
            self.refused(answer)

    @precondition(lambda self: self.lives and self.input is not None)
    @rule()
    def end(self) -> None:
        answer = self.ada.end(f"answer {self.number}")
        if self.papers:
            self.refused(answer)
            return
        self.done(answer)
        if not self.checkpoints:
            self.history.append(("user", str(self.input)))
        self.history.append(("assistant", f"answer {self.number}"))
        self.turn_is_over()

    @precondition(lambda self: self.lives and self.papers)
    @rule()
    def end_with_batch(self) -> None:
        answer = self.ada.end(None)
        if all(paper.state == "completed" for paper in self.papers):
            self.done(answer)
            self.write_round()
            self.turn_is_over()
        else:
            self.refused(answer)

    @precondition(lambda self: self.lives and self.input is not None)
    @rule()
    def fail(self) -> None:
        answer = self.ada.fail("stopped", Cancelled(turn_id=self.ada.turn))
        if any(paper.state != "planned" for paper in self.papers):
            self.refused(answer)
            return
        self.done(answer)
        self.turn_is_over()

    # --- crashes ---

    @rule()
    def crash(self) -> None:
        self.ada.vanish()
        self.has_crashed = self.input is not None

    @precondition(lambda self: self.has_crashed)
    @rule(crashes_at=st.integers(0, 6))
    def recover(self, crashes_at: int) -> None:
        """Call by call, then the publication; dying before the n-th of these commands, or not at all."""
        if any(paper.state == "started" for paper in self.papers):
            self.refused(self.ada.reconcile(self.papers[0].call))
        steps: list[Callable[[], None]] = [self.reconciling(paper) for paper in self.papers]
        for number, step in enumerate([*steps, self.publish]):
            if number == crashes_at:
                self.ada.vanish()
                return
            step()

    def reconciling(self, paper: Paper) -> Callable[[], None]:
        def step() -> None:
            accepts = any(each.state == "started" for each in self.papers)
            self.done(self.ada.reconcile(paper.call, accept=accepts))
            if paper.state != "completed":
                paper.result = UNCERTAIN_TEXT if paper.state == "started" else NOT_EXECUTED_TEXT
                paper.state = "completed"

        return step

    def publish(self) -> None:
        report = self.done(self.ada.publish())
        told = [report[name] for name in ("exact_results", "uncertain_results", "not_executed_results")]
        assert sum(told) == len(self.papers)
        assert report["interrupted_turn"] == (not self.papers)
        if self.papers:
            self.write_round()
        self.turn_is_over()
        self.refused(self.ada.publish())

    # --- what always holds ---

    @invariant()
    def journal_loads_and_says_the_same(self) -> None:
        journal = self.ada.journal()
        assert (journal.turn is None) == (self.input is None)
        found = () if journal.batch is None else journal.batch.invocations
        assert [(each.call, each.state.value) for each in found] == [
            (paper.call, paper.state) for paper in self.papers
        ]

    @invariant()
    def transcript_is_a_history(self) -> None:
        rows = self.store.all("SELECT kind, payload_json FROM session_events ORDER BY sequence")
        messages = [read_message(json.loads(row["payload_json"])) for row in rows if row["kind"] in _SPOKEN]
        check_history(messages)
        assert [(message.role.value, message.text) for message in messages] == self.history

    def teardown(self) -> None:
        if not hasattr(self, "store"):
            return
        self.crash()
        if self.has_crashed:
            self.recover(99)
        assert self.ada.journal() == Journal(directory=HERE)
        self.transcript_is_a_history()
        self.store.close()
        self.directory.cleanup()


TestTurns = Turns.TestCase
TestTurns.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
