"""The writer's duties about models: the budget of its configuration is in force, nothing stays reserved for nobody."""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path

from memory_core import limits
from memory_core.commands.model_control import keep_budget, tidy_calls
from memory_core.config import Settings
from memory_core.domain.budget import Budget
from memory_core.errors import Invalid
from memory_core.models.budget_settings import read_budget
from workers.writer.duties import Duty

logger = logging.getLogger(__name__)

#: Changes whenever a file is written or replaced: modified, bytes, inode.
_Mark = tuple[int, int, int]


class ConfiguredBudget:
    """`[budget]` as it is configured now. A changed file counts from the second look that finds it the same: an editor that
    is just saving it may have emptied it, or taken it away for a moment."""

    def __init__(self, settings: Settings, kinds: Collection[str]) -> None:
        """Reads it. Raises `Invalid` that names the key."""
        self._settings = settings
        self._kinds = kinds
        self._taken = self._seen = _mark(settings.effective_config_file)
        self._budget = self._read()

    def current(self) -> Budget:
        """Look every second or so. What cannot be read stays as it was, and is said once."""
        seen = _mark(self._settings.effective_config_file)
        if seen is not None and seen == self._seen and seen != self._taken:
            self._taken = seen
            try:
                self._budget = self._read()
            except Invalid as error:
                logger.error("the budget stays as it was: %s", error, extra={"action": "budget_unreadable"})
        self._seen = seen
        return self._budget

    def _read(self) -> Budget:
        return read_budget(self._settings, kinds=self._kinds)


def duties(configured: ConfiguredBudget) -> tuple[Duty, ...]:
    return (
        Duty(
            name="keep_budget",
            work=lambda tx: keep_budget(tx, configured.current()),
            every_seconds=limits.DUTY_SECONDS,
        ),
        Duty(name="tidy_model_calls", work=tidy_calls, every_seconds=limits.PURGE_SECONDS),
    )


def _mark(file: Path) -> _Mark | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
