"""The tests of this folder catch a broken product: each mutant turns an unchanged test red, for the right reason."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.running import MUTANT, ROOT

pytestmark = pytest.mark.stack

FOLDER = Path(__file__).parent
FULL_DISK = "test_full_disk.py::test_a_full_disk_stops_the_drain_loses_nothing_and_goes_on_with_room"

STORM = "test_kills.py::test_every_accepted_event_takes_effect_once_whatever_is_killed"

#: Mutant, the test that catches it, and a part of what it then says.
CATCHES = [
    (
        "delete_before_commit",
        "test_named_steps.py::test_a_writer_killed_in_the_middle_of_a_commit_loses_nothing",
        "was accepted and is in nowhere",
    ),
    (
        "no_id_table",
        "test_named_steps.py::test_a_broker_that_dies_between_commit_and_deletion_repeats_nothing",
        "was stored 2 times",
    ),
    (
        "refused_yet_appended",
        "test_backlog.py::test_what_is_refused_while_the_writer_stands_still_is_stored_nowhere",
        "was refused and is stored",
    ),
    (
        "epoch_not_asserted",
        "test_two_writers.py::test_a_writer_that_was_stopped_while_another_took_over_writes_nothing",
        "a stale writer wrote",
    ),
    ("savepoints", f"{FULL_DISK}[elsewhere]", "was accepted and is in nowhere"),
    ("rename_before_commit", f"{FULL_DISK}[embedded]", "without a page"),
    (
        "broker_not_synced",
        "test_power_cut.py::test_no_acknowledged_event_is_lost_when_the_power_goes",
        "was accepted and is in nowhere",
    ),
]

#: The same, of tests that take longer: `scripts/chaos --mutants` runs them too.
SLOW_CATCHES = [
    ("delete_before_commit", STORM, "was accepted and is in nowhere"),
    ("no_id_table", STORM, "was stored 2 times"),
    ("rename_before_commit", STORM, "in mid-state"),
    (
        "tool_before_start",
        "test_durable_client.py::test_a_program_killed_at_any_step_is_resumed_exactly_and_no_tool_runs_twice",
        "what the tool wrote",
    ),
]


def run_mutant(mutant: str, test: str) -> tuple[int, str]:
    """Run one test in a process of its own against the mutant: pytest's exit code, and what it said."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(FOLDER / test)],
        env={**os.environ, MUTANT: mutant, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(("mutant", "test", "verdict"), CATCHES, ids=[mutant for mutant, _, _ in CATCHES])
def test_a_mutant_turns_its_test_red(mutant: str, test: str, verdict: str):
    code, said = run_mutant(mutant, test)

    assert code == 1, said[-2000:]
    assert verdict in said, said[-2000:]


#: Patches that break nothing: they set the stage of a test (shorter times, kinds of jobs of its own, a named step to die at).
CONDITIONS = {
    "deaf_consumer",
    "die_at",
    "empty_jobs",
    "job_kinds",
    "long_batches",
    "quick_jobs",
    "quick_looks",
    "quick_sessions",
    "sleep_by_select",
    "quick_pool",
    "patient",
    "short_patience",
    "small_cache",
}


def test_every_mutant_is_caught_by_some_test():
    files = {path.stem for path in (ROOT / "tests" / "mutants").glob("*.py")} - {"__init__"}

    assert files >= CONDITIONS
    assert files - CONDITIONS == {mutant for mutant, _, _ in [*CATCHES, *SLOW_CATCHES]}
