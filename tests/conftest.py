"""For every test: no embedder unless it asks for one, and patience; and how tests are spread over several processes: the long files
first, so that none of them is left alone with one at the end."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.patience import patient

# The local one is installed here, and is on by default where it is. Also for the processes that tests start, most of which inherit
# this environment.
os.environ.setdefault("MEMORYD_MODELS__EMBED_PROVIDER", "none")

# A crowded machine makes an example late, which says nothing about it.
settings.register_profile(
    "late", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("late")

#: The longest, in the order of their times on two cores. Where one is missing the run takes longer, and nothing else happens.
LONG = (
    "tests/e2e/test_mutants.py",
    "tests/writer/test_history.py",
    "tests/stack/test_real_tree.py",
    "tests/e2e/test_kills.py",
    "tests/bench/test_parts.py",
    "tests/e2e/test_embedder_under_load.py",
    "tests/writer/test_history_kills.py",
    "tests/e2e/test_durable_soak.py",
    "tests/pool/test_work.py",
    "tests/pool/test_deaf_consumers.py",
    "tests/durable/test_on_a_stack.py",
    "tests/pool/test_session_jobs.py",
    "tests/stack/test_supervisor.py",
    "tests/pool/test_real_stack.py",
    "tests/web/test_served.py",
    "tests/writer/test_storm.py",
    "tests/stack/test_compose_running.py",
    "tests/pool/test_worker.py",
    "tests/e2e/test_wiki_commands.py",
    "tests/pool/test_budget_stop.py",
    "tests/e2e/test_power_cut.py",
    "tests/e2e/test_full_disk.py",
    "tests/writer/test_process.py",
    "tests/e2e/test_two_writers.py",
    "tests/emelex/test_import_on_a_stack.py",
    "tests/emelex/test_import_killed.py",
    "tests/e2e/test_memory.py",
    "tests/e2e/test_durable_client.py",
    "tests/e2e/test_broker_faults.py",
)
#: Files whose tests share nothing, and are long enough to be spread one by one.
APART = ("tests/e2e/test_mutants.py", "tests/stack/test_real_tree.py", "tests/writer/test_storm.py")

_WAITING = ("stack", "kills")


@pytest.fixture(autouse=True, scope="session")
def patience() -> Iterator[None]:
    """In this process; those that a test starts have the product's own limits."""
    with patient():
        yield


def pytest_collection_finish() -> None:
    """Thousands of tests and what they import stay until the end; to look for garbage among them takes longer than most tests do."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not hasattr(config, "workerinput"):
        return
    waiting = {
        item.path for item in items if any(item.get_closest_marker(name) is not None for name in _WAITING)
    }
    ranks = {name: number for number, name in enumerate(LONG)}

    def rank(item: pytest.Item) -> tuple[int, bool]:
        return ranks.get(_file(item.nodeid), len(LONG)), item.path not in waiting

    items.sort(key=rank)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = _file(nodeid)
            return nodeid if file in APART else file

    return ByFile(config, log) if config.option.dist == "loadfile" else None


def _file(nodeid: str) -> str:
    return nodeid.split("::", 1)[0]
