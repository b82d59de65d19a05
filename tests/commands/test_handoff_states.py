"""Handoffs under any order of sessions that start, ask, work and end: the database against a plain model."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from memory_core import limits
from memory_core.commands.capture import RecordObservation
from memory_core.commands.handoffs import AcceptHandoff, BeginHandoff, CancelHandoff, OfferHandoff
from memory_core.domain.capture import capped
from tests.factories import REPO, database, ended, event, started

SESSIONS = st.sampled_from(["s1", "s2", "s3"])


class Baton:
    """One handoff, in plain words."""

    def __init__(self, author: str | None) -> None:
        self.author = author
        self.holder: str | None = None
        self.minutes_left = 0
        self.end = ""

    @property
    def state(self) -> str:
        return self.end or ("offered" if self.holder else "open")


class Handoffs(RuleBasedStateMachine):
    """All are made by hand, so that age alone decides."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.store = database(self.directory)
        self.batons: dict[str, Baton] = {}
        self.worked: set[str] = set()
        self.known: set[str] = set()

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.directory)

    def _record(self, what) -> None:
        self.store.apply(RecordObservation(event=capped(what), source="s", project="repo"))

    def _held_by(self, session: str) -> tuple[str, Baton] | None:
        return next(((i, b) for i, b in self.batons.items() if b.holder == session), None)

    def _let_go_what_is_late(self) -> None:
        for baton in self.batons.values():
            if baton.holder and baton.minutes_left <= 0:
                baton.holder = None

    def _newest_for(self, session: str) -> tuple[str, Baton] | None:
        fitting = [(i, b) for i, b in self.batons.items() if b.state == "open" and b.author != session]
        return fitting[-1] if fitting else None

    @rule(author=st.one_of(st.none(), SESSIONS))
    def begin(self, author: str | None) -> None:
        made = self.store.apply(BeginHandoff(summary="x", project="repo", session_id=author))
        self.batons[made["handoff_id"]] = Baton(author if author in self.known else None)

    @rule(session=SESSIONS)
    def ask(self, session: str) -> None:
        held = self._held_by(session)
        if held is None:
            self._let_go_what_is_late()
        expected = held or self._newest_for(session)

        answer = self.store.apply(OfferHandoff(session_id=session, agent="codex", cwd=REPO, project="repo"))

        assert answer["handoff_id"] == (expected[0] if expected else None)
        if expected:
            expected[1].holder, expected[1].minutes_left = session, limits.HANDOFF_OFFER_SECONDS // 60

    @rule(session=SESSIONS)
    def take(self, session: str) -> None:
        self._let_go_what_is_late()
        expected = self._held_by(session) or self._newest_for(session)

        answer = self.store.apply(AcceptHandoff(session_id=session, cwd=REPO, project="repo"))

        assert answer["handoff_id"] == (expected[0] if expected else None)
        if expected:
            expected[1].holder, expected[1].end = None, "accepted"

    @rule(session=SESSIONS)
    def start(self, session: str) -> None:
        self._record(started(session_key=session))
        self.known.add(session)

    @rule(session=SESSIONS)
    def prompt(self, session: str) -> None:
        self._record(event(session_key=session))
        self.known.add(session)
        self.worked.add(session)
        if held := self._held_by(session):
            held[1].holder, held[1].end = None, "accepted"

    @rule(session=SESSIONS)
    def open_and_close(self, session: str) -> None:
        if session in self.worked:
            return  # its end would leave an automatic one, which is not what this is about
        self._record(ended(session_key=session))
        self.known.add(session)
        if held := self._held_by(session):
            held[1].holder = None

    @rule(number=st.integers(min_value=0, max_value=5))
    def cancel(self, number: int) -> None:
        if number < len(self.batons):
            handoff_id = list(self.batons)[number]
            baton = self.batons[handoff_id]
            answer = self.store.apply(CancelHandoff(handoff_id=handoff_id))
            assert answer["cancelled"] is (not baton.end)
            baton.holder, baton.end = None, baton.end or "expired"

    @rule(minutes=st.sampled_from([1, 14, 15]))
    def wait(self, minutes: int) -> None:
        self.store.clock.advance(60 * minutes)
        for baton in self.batons.values():
            baton.minutes_left -= minutes

    @invariant()
    def the_database_says_what_the_model_says(self) -> None:
        rows = self.store.all("SELECT state FROM handoffs ORDER BY rowid")
        assert [row["state"] for row in rows] == [baton.state for baton in self.batons.values()]


TestHandoffs = Handoffs.TestCase
TestHandoffs.settings = settings(
    max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
