"""The page about jobs draws the state machine that the code has, and names every sentence and every schedule."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import memory_core.jobs
from memory_core import bootstrap
from memory_core.domain.job import QUEUES, TRANSITIONS, Failure, Reason
from memory_core.job_kind import kinds

PAGE = (Path(__file__).parents[2] / "docs" / "jobs.md").read_text()


def test_the_drawing_has_every_step_and_no_other():
    drawn = set(re.findall(r"^    (\w+) --> (\w+): (.+)$", PAGE, re.M))

    assert drawn == {(before.value, after.value, move.value) for (before, move), after in TRANSITIONS.items()}


def test_every_sentence_stands_there_as_it_is_shown():
    listed = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", PAGE, re.M))

    assert {failure.value: failure.sentence for failure in Failure}.items() <= listed.items()


def test_every_queue_reason_and_kind_is_named():
    bootstrap.load_jobs()
    ours = {module.name for module in pkgutil.iter_modules(memory_core.jobs.__path__)}
    named = set(re.findall(r"`([a-z_]+)`", PAGE))

    assert {*QUEUES, *Reason} <= named
    assert {(name, kind.queue) for name, kind in kinds if name in ours} == set(
        re.findall(r"^\| `(\w+)` \| (\w+) \| (?:every|daily|when asked|at the end)\b", PAGE, re.M)
    )
