"""Durable sessions against a plain model: whoever does what, when, the answers, the stored events and every replay are the model's.

Two people claim, renew, lose and give back its lease, append, journal turns and recover them, replay, name, close and delete the session;
a worker compacts it meanwhile.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from memory_core import bootstrap, limits
from memory_core.clock import MICROSECONDS
from memory_core.commands.compaction import QueueCompaction
from memory_core.commands.durable_deletion import DeleteSession, DropDeleted
from memory_core.commands.durable_sessions import SayReplayed
from memory_core.commands.tool_checkpoints import EndTurn, PublishRecovery
from memory_core.commands.tool_journal import BeginTurn
from memory_core.domain.agent_message import Role, payload
from memory_core.domain.agent_message import said as message
from memory_core.domain.directory import Directory
from memory_core.domain.transcript_digest import Verifier
from memory_core.errors import CoreError
from memory_core.ids import id_bytes
from memory_core.store import durable_sessions
from tests.durable.directly import PLACE, Holder, code, say, started, stored
from tests.durable.journals import new_id
from tests.durable.session_model import Model, ending, of, replay_of
from tests.factories import database
from tests.jobs.compacting import compute, wake, worker

WHO = st.integers(0, 1)
#: What is wrong now and then; were it wrong half of the time, little would ever be written.
RARELY = st.sampled_from([False, False, False, False, True])
SECONDS = st.sampled_from([1.0, 1.0, 100.0, limits.SESSION_LEASE_SECONDS - 1, limits.SESSION_LEASE_SECONDS])
ELSEWHERE = Directory(host=PLACE.host, device=PLACE.device, inode="777", path=PLACE.path)


class Sessions(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        bootstrap.load_jobs()
        self.directory = tempfile.TemporaryDirectory()
        self.store = database(Path(self.directory.name))
        self.session = started(self.store)
        self.people = [Holder(self.store, self.session, name=f"p{number}") for number in range(2)]
        self.model = Model()
        self.now = 0.0
        self.number = 0
        self.worker = worker(self.store)
        self.summary: Any = None

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
            assert answer["has_journal"] == (self.model.open_turn is not None)
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

    @rule(who=WHO, is_elsewhere=RARELY)
    def reads_all(self, who: int, is_elsewhere: bool) -> None:
        """A replay as the route sends it, which is then said to be read."""
        place = ELSEWHERE if is_elsewhere else PLACE
        expected = self.expected(who, place=place)
        person = self.people[who]
        if expected:
            with pytest.raises(CoreError) as refused:
                replay_of(person, place)
            assert refused.value.code == expected
            return
        digest = self.model.check_replay(replay_of(person, place))
        read = SayReplayed(**person._mine, last_sequence=len(self.model.events), digest=digest)
        assert code(person._apply(read)) == ""
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
        elif not expected and self.model.open_turn is not None:
            expected = "conflict"
        assert code(answer) == expected
        if not expected:
            assert answer["first_sequence"] == len(self.model.events) + 1
            self.model.wrote(*(f"user_message {text}" for text in texts))
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
        if not expected and self.model.open_turn is not None:
            expected = "conflict"
        assert code(self.people[who].close()) == expected
        if not expected:
            self.model.holder = None

    # --- journaled turns ---

    def steps(self, who: int, otherwise: str, command: Any, **more: Any) -> Any:
        """One step of the journal by that person; its answer where it took effect. `otherwise`: why it may not, beside the lease."""
        person = self.people[who]
        answer = person._apply(command(**person._mine, **more))
        expected = self.expected(who, needs_replay=True) or otherwise
        assert code(answer) == expected
        if expected:
            return None
        self.model.until = self.now + limits.SESSION_LEASE_SECONDS
        return answer

    @rule(who=WHO)
    def begins_a_turn(self, who: int) -> None:
        self.number += 1
        turn, text = new_id(), f"task {self.number}"
        taken = self.steps(
            who,
            "" if self.model.open_turn is None else "conflict",
            BeginTurn,
            turn=id_bytes(turn),
            input=payload(message(Role.USER, text)),
        )
        if taken is not None:
            self.turn, self.model.open_turn = turn, text

    @precondition(lambda self: self.model.open_turn is not None)
    @rule(who=WHO)
    def ends_the_turn(self, who: int) -> None:
        self.number += 1
        taken = self.steps(
            who,
            "",
            EndTurn,
            turn=id_bytes(self.turn),
            message=payload(message(Role.ASSISTANT, f"answer {self.number}")),
            audit=ending(self.turn),
        )
        if taken is not None:
            self.model.ended(f"answer {self.number}")

    @rule(who=WHO)
    def recovers(self, who: int) -> None:
        taken = self.steps(who, "invalid" if self.model.open_turn is None else "", PublishRecovery)
        if taken is not None:
            assert taken["interrupted_turn"] is True
            self.model.wrote("audit turn_failed", "error failed_turn")
            self.model.open_turn = None

    # --- compaction ---

    @rule(share=st.floats(0, 1.2), is_at_a_turn=st.booleans())
    def asks_for_a_compaction(self, share: float, is_at_a_turn: bool) -> None:
        model = self.model
        through = round(share * (len(model.events) + 1))
        if is_at_a_turn and model.ends:
            through = model.ends[min(round(share * len(model.ends)), len(model.ends) - 1)]
        answer = self.store.apply(QueueCompaction(session=self.session, through_sequence=through))
        if model.is_deleted:
            assert code(answer) == "not_found"
        elif through not in model.ends:
            assert code(answer) == "invalid"
        elif through in model.boundaries:
            assert answer["is_new"] is False
        elif model.compacting is not None:
            assert code(answer) == "conflict"
        elif through < model.summary_at:
            assert code(answer) == "invalid"
        else:
            assert answer["is_new"] is True
            model.compacting = through
            model.boundaries.append(through)

    @rule()
    def a_worker_comes(self) -> None:
        """Past the time that a job waits for which was held up."""
        if self.model.worker_until is not None:
            return
        wake(self.store, limits.JOB_CONTENDED_SECONDS + 1)
        self.now += limits.JOB_CONTENDED_SECONDS + 1
        job = self.worker.take()
        assert (job is not None) == (self.model.compacting is not None and not self.is_held)
        if job is not None:
            self.summary = compute(self.store, job)
            self.model.worker_until = self.now + limits.JOB_LEASE_SECONDS

    @precondition(lambda self: self.model.worker_until is not None)
    @rule()
    def the_worker_is_done(self) -> None:
        model = self.model
        answer = self.worker.finish(self.summary)
        model.worker_until = None
        if model.is_deleted:
            assert code(answer) == "stale_lease"
        elif self.is_held:
            assert answer["state"] == "pending"
        else:
            assert answer["state"] == "completed"
            model.wrote(f"summary to {model.compacting}")
            model.covered, model.summary_at = model.compacting or 0, len(model.events)
            model.compacting, model.has_replayed = None, False

    # --- its end ---

    @precondition(lambda self: len(self.model.events) > 16)
    @rule(is_meant=RARELY)
    def deletes(self, is_meant: bool) -> None:
        if not is_meant:
            return
        answer: Any = self.store.apply(DeleteSession(session=self.session))
        if self.model.is_deleted:
            assert code(answer) == "not_found"
        elif self.is_held or (self.model.worker_until or 0.0) > self.now:
            assert code(answer) == "session_busy"
        else:
            self.model.is_deleted, self.model.compacting, self.model.open_turn = True, None, None
            while answer["left"]:
                answer = self.store.apply(DropDeleted(session=self.session))

    # --- what is done in one go: by single steps alone few would ever come so far ---

    @rule(who=WHO, count=st.integers(1, 4))
    def comes_and_works(self, who: int, count: int) -> None:
        self.claims(who, is_elsewhere=False)
        self.reads_all(who, is_elsewhere=False)
        self.writes(who, count, is_elsewhere=False, is_lost=False)

    @rule(who=WHO)
    def runs_a_turn(self, who: int) -> None:
        self.comes_and_works(who, 1)
        self.begins_a_turn(who)
        if self.model.open_turn is not None:
            self.ends_the_turn(who)

    @rule(who=WHO, by=WHO)
    def dies_in_a_turn_that_somebody_recovers(self, who: int, by: int) -> None:
        self.comes_and_works(who, 1)
        self.begins_a_turn(who)
        self.time_passes(limits.SESSION_LEASE_SECONDS)
        self.claims(by, is_elsewhere=False)
        self.reads_all(by, is_elsewhere=False)
        self.recovers(by)

    def compact_if_free(self, share: float) -> None:
        self.asks_for_a_compaction(share, is_at_a_turn=True)
        self.a_worker_comes()

    @rule(share=st.floats(0, 1), back=st.none() | WHO)
    def is_given_back_and_compacted(self, share: float, back: int | None) -> None:
        """Somebody may come back before its end."""
        self.gives_back(0)
        self.gives_back(1)
        self.compact_if_free(share)
        if back is not None:
            self.claims(back, is_elsewhere=False)
        if self.model.worker_until is not None:
            self.the_worker_is_done()

    @rule(who=WHO, share=st.floats(0, 1))
    def falls_silent_and_goes_on_behind_a_compaction(self, who: int, share: float) -> None:
        """With the same token, as if nothing had been."""
        self.comes_and_works(who, 1)
        self.time_passes(limits.SESSION_LEASE_SECONDS)
        self.compact_if_free(share)
        if self.model.worker_until is not None:
            self.the_worker_is_done()
        self.renews(who)
        self.writes(who, 1, is_elsewhere=False, is_lost=False)

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
        assert [of(event) for event in events] == self.model.events
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
    max_examples=80, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
