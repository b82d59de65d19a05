"""The writer's process stages the slots of its schedules, over restarts, and refuses a schedule that it cannot read."""

from __future__ import annotations

import pytest

from memory_core.config import Settings
from tests.stack.conftest import wait_until
from workers import exit_codes

pytestmark = pytest.mark.stack

SLOTS = (
    "SELECT slot, count(*) AS n FROM schedule_slots WHERE kind = 'idle_sessions' GROUP BY slot ORDER BY slot"
)
JOBS = "SELECT state FROM jobs WHERE kind = 'idle_sessions'"


def test_a_schedule_makes_jobs_by_itself_and_a_restart_makes_no_slot_twice(
    settings: Settings, start_broker, start_writer
):
    start_broker(settings)
    told = {"MEMORYD_SCHEDULES__IDLE_SESSIONS": "every 1s"}
    first = start_writer(**told)
    wait_until(lambda: len(first.rows(SLOTS)) >= 3)
    first.kill()
    second = start_writer(**told)
    before = len(second.rows(SLOTS))
    wait_until(lambda: len(second.rows(SLOTS)) > before)

    assert all(row["n"] == 1 for row in second.rows(SLOTS))
    # Nobody works here: one job stands for all slots.
    assert [row["state"] for row in second.rows(JOBS)] == ["pending"]


def test_a_schedule_that_cannot_be_read_is_refused_with_its_key(
    settings: Settings, start_broker, start_writer
):
    start_broker(settings)
    settings.effective_config_file.write_text('[schedules]\nidle_sessions = "now and then"\n')

    code, said = start_writer(lives=False).ended()

    assert code == exit_codes.REFUSED
    assert "[schedules] idle_sessions" in said
    assert "every 15m" in said
