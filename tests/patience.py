"""How long a test waits for what must come, and limits of the product that a crowded machine would run into.

A test that is about one of these limits sets it itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest

from memory_core import limits

#: Far more than anything takes that comes at all. It costs time only where a test fails.
SECONDS = 60.0

#: How soon one part gives another one up, and how old a queue may be. Each by its name in `memory_core.limits`.
GIVEN_UP_AFTER = (
    "BACKLOG_MAX_AGE_SECONDS",
    "BROKER_ANSWER_SECONDS",
    "BROKER_APPEND_SECONDS",
    "BROKER_CONNECT_SECONDS",
    "QUERY_EMBED_SECONDS",
    "REPLY_WAIT_SECONDS",
    "SUBSCRIBE_SECONDS",
)
_OWN: dict[str, float] = {name: getattr(limits, name) for name in GIVEN_UP_AFTER}


@contextmanager
def patient() -> Generator[None]:
    """Everybody waits for everybody."""
    with pytest.MonkeyPatch.context() as patch:
        for name in GIVEN_UP_AFTER:
            patch.setattr(limits, name, SECONDS)
        yield


@contextmanager
def as_shipped() -> Generator[None]:
    """With the product's own limits, whatever was set before: for what is made meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        for name, seconds in _OWN.items():
            patch.setattr(limits, name, seconds)
        yield


def until(
    happened: Callable[[], Any], seconds: float = SECONDS, *, saying: str = "it did not come to pass"
) -> Any:
    """Poll until `happened` answers something true, and answer that; fails the test after `seconds`."""
    end, pause = time.monotonic() + seconds, 0.002
    while not (found := happened()):
        assert time.monotonic() < end, f"{saying}, within {seconds:.0f} s"
        time.sleep(pause)
        # What comes late is not looked for as often: a look may cost as much as what it looks for.
        pause = min(0.05, pause * 1.5)
    return found
