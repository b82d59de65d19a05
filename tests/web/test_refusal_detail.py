"""What a refusal says beside its sentence reaches who asked."""

from __future__ import annotations

from memory_core.domain.command import Refusal
from memory_core.errors import ReplayRequired, SessionBusy
from web.gate import Outcome, error_of


def test_a_refusal_carries_the_detail_of_its_error():
    error = SessionBusy(detail={"lease_until": "2026-01-01T00:00:00Z"})

    refusal = Refusal.of(error)

    assert (refusal.code, refusal.detail) == ("session_busy", {"lease_until": "2026-01-01T00:00:00Z"})
    assert "works on this session" in refusal.message


def test_a_refused_outcome_becomes_the_same_error_with_its_detail():
    told = {"code": "session_busy", "message": "later", "detail": {"lease_until": "soon"}}

    error = error_of(Outcome(status="refused", code="session_busy", reason="later", result=told))

    assert type(error) is SessionBusy
    assert (str(error), error.detail) == ("later", {"lease_until": "soon"})
    assert error_of(Outcome(status="refused", code="replay_required", reason="r")).detail == {}
    assert isinstance(error_of(Outcome(status="refused", code="replay_required")), ReplayRequired)
