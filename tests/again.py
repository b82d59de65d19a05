"""A pytest plugin of `scripts/test`: a test that failed beside the others is run once more, alone, and both results are said.

A crowded machine makes a test late, and one late test of thousands would refuse a good tree. What passes alone is forgiven, except
where it kills: what is lost at one kill of many is lost, however often it is not.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import pytest

#: Marks of tests whose failure counts whatever comes after it.
NEVER_FORGIVEN = ("kills",)
#: More failures than these are no matter of the crowd; and so long they may take alone, all of them.
_TESTS_MAX = 10
_SECONDS_MAX = 300.0


class Again:
    """What failed, and whether it may be forgiven."""

    def __init__(self) -> None:
        self._failed: dict[str, bool] = {}
        self._said: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.failed:
            return
        # A process that crashed reports no phase, and knows no marks.
        may_be_forgiven = report.when in ("setup", "call", "teardown") and not any(
            mark in report.keywords for mark in NEVER_FORGIVEN
        )
        self._failed[report.nodeid] = self._failed.get(report.nodeid, True) and may_be_forgiven

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """After the other processes ended."""
        tests = list(self._failed)
        if session.exitstatus != pytest.ExitCode.TESTS_FAILED or not tests:
            return
        self._said = [f"failed, and counts as it is: {test}" for test in tests if not self._failed[test]]
        if self._said or len(tests) > _TESTS_MAX:
            return
        end = time.monotonic() + _SECONDS_MAX
        passed = [test for test in tests if _passes(session.config, test, end - time.monotonic())]
        self._said += [
            f"failed beside others, {'passed' if test in passed else 'failed'} alone: {test}"
            for test in tests
        ]
        if passed == tests:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._said:
            terminalreporter.section("once more, alone")
            for line in self._said:
                terminalreporter.line(line)


def _passes(config: pytest.Config, test: str, seconds: float) -> bool:
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    try:
        return subprocess.run(argv, cwd=config.rootpath, check=False, timeout=seconds).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def pytest_configure(config: pytest.Config) -> None:
    # Of the process that the others report to.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Again())
