"""The capture policy of a marker, applied to a payload before anything of it is written down. Imported only where there is one."""

from __future__ import annotations

import os

from client.marker import Marker
from memory_core.domain import capture_policy
from memory_core.domain.capture_policy import Decision, Policy


def policy_of(marker: Marker, home: str) -> Policy:
    """Patterns count below the marker's directory as it is named and as it really lies: tools name either."""
    named = capture_policy.policy_of(marker.capture, root=marker.root, home=home)
    real = os.path.realpath(marker.root)
    if named.state != capture_policy.ACTIVE or real == marker.root:
        return named
    return named._replace(
        globs=named.globs + capture_policy.policy_of(marker.capture, root=real, home=home).globs
    )


def left_of(body: dict[str, object], marker: Marker, *, cwd: str, home: str) -> dict[str, object] | None:
    """The payload as the marker's policy leaves it; None when it is to be forgotten."""
    return capture_policy.applied(policy_of(marker, home), body, cwd=cwd, home=home)


def decision_on(body: dict[str, object], marker: Marker, *, cwd: str, home: str) -> dict[str, object]:
    """How the policy decides, for a person who tries their patterns."""
    policy = policy_of(marker, home)
    tool = capture_policy.inspected(body)
    if tool is None:
        made = Decision(capture_policy.KEEP, policy.state, "unknown", 0, capture_policy.NOT_NEEDED)
    else:
        made = capture_policy.decide(policy, tool, cwd=cwd, home=home)
    # Of a file that cannot be read the policy knows only that it says nothing.
    reason = marker.problem if marker.is_broken else policy.reason or marker.problem
    return {**made.protocol(), "marker": marker.path, **({"reason": reason} if reason else {})}
