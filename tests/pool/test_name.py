"""How a pool worker is named in jobs, logs and Flower."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memory_core import limits
from memory_core.config import Settings
from workers.pool.remote import name_of


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ({}, "pool"),
        ({"pool_queues": ("lint",)}, "pool"),
        ({"pool_queues": ("lint",), "state_dir": "/state"}, "lint-3f2a9c"),
        ({"pool_queues": ("lint", "forget"), "off_data_host": True}, "lint-forget-3f2a9c"),
        ({"off_data_host": True}, "pool-3f2a9c"),
        ({"off_data_host": True, "worker_name": "big box"}, "big box"),
    ],
)
def test_a_worker_that_lives_apart_is_known_by_its_queues_and_host(
    told: dict[str, Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "3f2a9c")
    assert name_of(Settings(data_dir=Path("/data"), **told)) == name


def test_a_long_name_of_a_host_is_cut_to_what_the_gate_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "h" * 253)
    settings = Settings(data_dir=Path("/data"), off_data_host=True)
    assert len(name_of(settings)) == limits.WORKER_NAME_MAX_CHARS
