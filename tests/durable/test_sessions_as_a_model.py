"""Durable sessions against a plain model: whoever does what, when, the answers and the stored events are the model's."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from memory_core import limits
from memory_core.clock import MICROSECONDS
from memory_core.commands.durable_deletion import DeleteSession, DropDeleted
from memory_core.domain.directory import Directory
from memory_core.domain.transcript_digest import Verifier
from memory_core.store import durable_sessions
from tests.durable.directly import PLACE, Holder, code, say, started, stored
from tests.factories import database

pytestmark = pytest.mark.timeout(300)

WHO = st.integers(0, 1)
#: What is wrong now and then; were it wrong half of the time, little would ever be written.
RARELY = st.sampled_from([False, False, False, False, True])
SECONDS = st.sampled_from([1.0, 1.0, 100.0, limits.SESSION_LEASE_SECONDS - 1, limits.SESSION_LEASE_SECONDS])
ELSEWHERE = Directory(host=PLACE.host, device=PLACE.device, inode="777", path=PLACE.path)


@dataclass
class Model:
    """A session as anybody would draw it."""

    events: list[str] = field(default_factory=list)
    #: Who claimed last, by person and claim; None: nobody, or it was given back.
    holder: tuple[int, int] | None = None
    until: float = 0.0
    has_replayed: bool = False
    title: str | None = None
    is_deleted: bool = False


class Sessions(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.store = database(Path(self.directory.name))
        self.session = started(self.store)
        self.people = [Holder(self.store, self.session, name=f"p{number}") for number in range(2)]
        self.model = Model()
        self.now = 0.0
        self.number = 0

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            self.directory.cleanup()

    # --- what the model says ---

    @property
    def is_held(self) -> bool:
        return self.model.holder is not None and self.model.until > self.now

    def owns(self, who: int) -> bool:
        return self.model.holder == (who, self.people[who].claims)

    def expected(self, who: int, *, needs_replay: bool = False, place: Directory = PLACE) -> str:
        if self.model.is_deleted:
            return "not_found"
        if needs_replay and self.owns(who) and not self.model.has_replayed:
            return "replay_required"
        if place is not PLACE:
            return "workspace_mismatch"
        if not (self.owns(who) and self.is_held):
            return "stale_lease"
        return ""

    # --- what happens ---

    @rule(seconds=SECONDS)
    def time_passes(self, seconds: float) -> None:
        self.store.clock.advance(seconds)
        self.now += seconds

    @rule(who=WHO, is_elsewhere=RARELY)
    def claims(self, who: int, is_elsewhere: bool) -> None:
        person = self.people[who]
        person.directory = ELSEWHERE if is_elsewhere else PLACE
        answer = person.claim()
        person.directory = PLACE
        if self.model.is_deleted:
            assert code(answer) == "not_found"
        elif is_elsewhere:
            assert code(answer) == "workspace_mismatch"
        elif self.is_held:
            assert code(answer) == "session_busy"
        else:
            assert answer["last_sequence"] == len(self.model.events)
            assert answer["must_replay"] == bool(self.model.events)
            self.model.holder = (who, person.claims)
            self.model.until = self.now + limits.SESSION_LEASE_SECONDS
            self.model.has_replayed = not self.model.events

    @rule(who=WHO)
    def renews(self, who: int) -> None:
        answer = self.people[who].renew()
        if self.model.is_deleted:
            assert code(answer) == "not_found"
        elif self.owns(who):  # over or not
            assert code(answer) == ""
            self.model.until = self.now + limits.SESSION_LEASE_SECONDS
        else:
            assert code(answer) == "stale_lease"

    @rule(who=WHO)
    def gives_back(self, who: int) -> None:
        answer = self.people[who].release()
        if self.model.is_deleted:
            assert code(answer) == "not_found"
        elif self.owns(who):
            assert code(answer) == ""
            self.model.holder = None
        else:
            assert code(answer) == "stale_lease"

    @rule(who=WHO)
    def reads_all(self, who: int) -> None:
        expected = self.expected(who)
        if expected == "not_found":
            return
        assert code(self.people[who].replay()) == expected
        if not expected:
            self.model.has_replayed = True

    @rule(who=WHO, count=st.integers(1, 4), is_elsewhere=RARELY, is_lost=RARELY)
    def writes(self, who: int, count: int, is_elsewhere: bool, is_lost: bool) -> None:
        person = self.people[who]
        person.directory = ELSEWHERE if is_elsewhere else PLACE
        person.last_sequence = len(self.model.events) + int(is_lost)
        texts = [f"{self.number}.{index}" for index in range(count)]
        self.number += 1
        answer = person.append(*[say(text) for text in texts])
        person.directory = PLACE
        expected = self.expected(who, needs_replay=True, place=ELSEWHERE if is_elsewhere else PLACE)
        if not expected and is_lost:
            expected = "stale_replay"
            actual = len(self.model.events)
            assert dict(answer.detail) == {"expected": actual + 1, "actual": actual}
        assert code(answer) == expected
        if not expected:
            assert answer["first_sequence"] == len(self.model.events) + 1
            self.model.events += texts
            self.model.until = self.now + limits.SESSION_LEASE_SECONDS

    @rule(who=WHO, with_lease=st.booleans())
    def names_it(self, who: int, with_lease: bool) -> None:
        self.number += 1
        answer = self.people[who].title(f"t{self.number}", with_lease=with_lease)
        expected = self.expected(who)
        if not with_lease and not self.model.is_deleted:
            expected = "session_busy" if self.is_held else ""
        assert code(answer) == expected
        if not expected:
            self.model.title = f"t{self.number}"
            self.model.holder = self.model.holder if with_lease else None

    @rule(who=WHO)
    def closes(self, who: int) -> None:
        expected = self.expected(who)
        assert code(self.people[who].close()) == expected
        if not expected:
            self.model.holder = None

    @precondition(lambda self: len(self.model.events) > 12)
    @rule()
    def deletes(self) -> None:
        answer: Any = self.store.apply(DeleteSession(session=self.session))
        if self.model.is_deleted:
            assert code(answer) == "not_found"
        elif self.is_held:
            assert code(answer) == "session_busy"
        else:
            self.model.is_deleted = True
            while answer["left"]:
                answer = self.store.apply(DropDeleted(session=self.session))

    # --- what always holds ---

    @invariant()
    def what_is_stored_is_what_was_written(self) -> None:
        if not hasattr(self, "store"):
            return
        events = stored(self.store, self.session)
        with self.store.transaction() as tx:
            state = durable_sessions.one(tx, self.session)
        if self.model.is_deleted:
            assert (list(events), state) == ([], None)
            return
        assert state is not None
        assert [event.payload_json for event in events] == [f'{{"text":"{t}"}}' for t in self.model.events]
        verifier = Verifier(self.session)
        for event in events:
            verifier.feed(event)
        verifier.end(last_sequence=state.last_sequence, digest=state.digest)
        assert state.title == self.model.title
        assert state.is_held(self.store.clock.now_us()) == self.is_held
        assert (state.lease_hash is None) == (self.model.holder is None)
        if self.model.holder is not None and state.lease_until is not None:
            left = (state.lease_until - self.store.clock.now_us()) / MICROSECONDS
            assert abs(left - (self.model.until - self.now)) < 0.001


TestSessions = Sessions.TestCase
TestSessions.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
