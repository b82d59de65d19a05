"""A budget that is reached in the middle of a batch, in the real stack, against a vendor's server that counts for itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memory_core import bootstrap
from tests.models.fakes.openai import OpenAICompatible
from tests.models.server import Server, serving
from tests.mutants import job_kinds
from tests.pool.conftest import LOADER, ROOT
from tests.pool.whole_stack import Stack
from tests.stack.conftest import make_tree, wait_until
from web.parts import build

pytestmark = pytest.mark.stack

#: What the vendor's server counts for each answer.
USED = 42
JOBS = 10
CONFIG = """
[models]
provider = "openai_compatible"
base_url = "{url}"
model = "{model}"
max_output_tokens = 50
[budget]
tokens_per_day = {cap}
"""


@dataclass
class Metered:
    """The stack, its vendor, and its command line."""

    stack: Stack
    vendor: Server
    fake: OpenAICompatible

    def configure(self, cap: int) -> None:
        url = self.fake.base_url(self.vendor.port)
        (self.stack.home / "config.toml").write_text(CONFIG.format(url=url, model=self.fake.model, cap=cap))

    def will(self, count: int, text: str = "fine") -> None:
        self.vendor.will(*(self.fake.answer(text) for _ in range(count)))

    def memoryd(self, *words: str) -> tuple[int, Any]:
        """Exit code, and what a command says as JSON."""
        ran = subprocess.run(
            [sys.executable, "-m", "client", *words, "--json"],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "HOME": str(self.stack.home),
                "MEMORYD_URL": self.stack.settings.url,
                "MEMORYD_TOKEN_FILE": str(self.stack.settings.token_file),
            },
        )
        return ran.returncode, json.loads(ran.stdout or ran.stderr)

    def jobs(self) -> Counter[tuple[str, str | None, int]]:
        rows = self.stack.rows("SELECT state, waits_for, failures FROM jobs WHERE kind = 'probe_model'")
        return Counter(rows)  # type: ignore[arg-type]

    def books(self) -> tuple[int, int]:
        """Calls and tokens, as they are summed up."""
        ((calls, tokens),) = self.stack.rows(
            "SELECT coalesce(sum(calls), 0), coalesce(sum(input_tokens + output_tokens), 0) FROM model_usage"
        )
        return calls, tokens


@pytest.fixture
def metered(tmp_path: Path) -> Iterator[Metered]:
    bootstrap.load_commands()
    job_kinds.register()
    fake = OpenAICompatible()
    with serving(fake.read) as vendor, make_tree(tmp_path) as start:
        file = tmp_path / "config.toml"
        file.write_text(CONFIG.format(url=fake.base_url(vendor.port), model=fake.model, cap=8 * USED + 95))
        tree = start(
            "workers.supervisor",
            environ={
                "PYTHONPATH": f"{LOADER}:{ROOT}",
                "MEMORYD_TEST_MUTANT": "job_kinds,quick_pool",
                "POOL_QUICK": "POOL_LOOK_SECONDS=0.5",
                "MEMORYD_CONFIG_FILE": str(file),
            },
        )
        tree.wait_ready()
        parts = build(tree.settings)
        yield Metered(stack=Stack(tree=tree, parts=parts, home=tmp_path), vendor=vendor, fake=fake)
        parts.line.close()


def test_a_budget_that_is_reached_in_mid_batch_loses_nothing_and_a_raised_cap_completes_all(metered: Metered):
    assert metered.books() == (0, 0)
    metered.will(3 * JOBS)
    metered.stack.enqueue("ask twice", count=JOBS, kind="probe_model")

    wait_until(
        lambda: metered.jobs()["pending", "budget", 0] > 0 and not metered.jobs()["running", None, 0], 60
    )
    wait_until(
        lambda: sum(n for (_, waits, _), n in metered.jobs().items() if waits == "budget") == JOBS - 4, 60
    )
    # The cap was reached in the fifth job, between its two calls.
    assert metered.jobs() == {("completed", None, 0): 4, ("pending", "budget", 0): 6}
    assert len(metered.vendor.asked) == 9
    assert metered.books() == (9, 9 * USED)
    code, told = metered.memoryd("llm", "usage")
    assert (code, told["state"]["state"], told["state"]["jobs_waiting"]) == (0, "budget_reached", 6)
    assert told["state"]["until"].endswith("T00:00:00Z")

    writer = metered.stack.tree.pids["writer"]
    metered.configure(1_000_000)

    wait_until(lambda: metered.jobs() == {("completed", None, 0): JOBS}, 90)
    assert metered.stack.tree.pids["writer"] == writer
    asked = len(metered.vendor.asked)
    # The call of the job that was stopped between its two is made again.
    assert asked == 2 * JOBS + 1
    assert metered.books() == (asked, asked * USED)
    ((prompts,),) = metered.stack.rows("SELECT count(*) FROM model_calls WHERE outcome = 'ok'")
    assert prompts == asked


def test_a_person_s_pause_a_check_and_nothing_without_activity(metered: Metered):
    assert metered.memoryd("llm", "pause", "--reason", "holidays")[1] == {"paused": True, "changed": True}
    metered.stack.enqueue("ask twice", kind="probe_model")
    wait_until(lambda: metered.jobs() == {("pending", "budget", 0): 1})
    code, refused = metered.memoryd("llm", "test")
    assert (code, refused["error"]["code"]) == (1, "paused")
    # Nothing was asked: neither by the job nor by anything that the server does of its own accord.
    assert metered.vendor.asked == []

    metered.will(2)
    assert metered.memoryd("llm", "resume")[1]["freed"] == 1
    wait_until(lambda: metered.jobs() == {("completed", None, 0): 1})

    metered.will(1, '{"word": "lighthouse"}')
    code, found = metered.memoryd("llm", "test")
    assert code == 0, found
    checked = found["language"]
    assert (checked["ok"], checked["provider"], checked["model"]) == (
        True,
        "openai_compatible",
        metered.fake.model,
    )
    assert (checked["input_tokens"], checked["output_tokens"], found["embedding"]) == (30, 12, None)
    assert metered.books() == (3, 3 * USED)
    assert metered.stack.rows("SELECT DISTINCT prompt FROM model_calls ORDER BY 1") == [
        ("",),
        ("model_check.v1",),
    ]
