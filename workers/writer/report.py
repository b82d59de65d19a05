"""What became of the commands of one batch."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from memory_core.domain.command import Envelope
from memory_core.errors import StorageStopped


class Fate(StrEnum):
    COMMITTED = "committed"
    #: Its domain said no, before it wrote anything.
    REFUSED = "refused"
    #: It took effect before.
    DUPLICATE = "duplicate"
    #: Its id took effect before with another body; nothing was done.
    MISMATCH = "mismatch"
    #: Its time had passed; nothing was recorded.
    LATE = "late"
    #: Kept for a version that knows it, or for later; nothing was recorded.
    PARKED = "parked"
    #: It failed each time; a dead letter.
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Outcome:
    envelope: Envelope
    fate: Fate


@dataclass(kw_only=True)
class BatchReport:
    """Filled by the engine, transaction by transaction; holds only what is committed.

    `outcomes` are those of the first envelopes that were given, in their order. When they are fewer than
    those given, the rest was not looked at: the time was up, or `stopped` or `interrupted` says why.
    """

    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    #: Pool queues whose doorbell is to be rung.
    rings: set[str] = field(default_factory=set[str])
    #: Wiki files that the outbox now promises.
    files: set[str] = field(default_factory=set[str])
    #: Whether the batch had to be applied one by one.
    was_careful: bool = False
    stopped: StorageStopped | None = None
    #: The writer is being ended and waits for no further try.
    interrupted: bool = False
    seconds: float = 0.0
    commit_seconds: float = 0.0

    def fates(self) -> Counter[str]:
        return Counter(outcome.fate.value for outcome in self.outcomes)

    @property
    def reply_ids(self) -> list[bytes]:
        """Ids whose waiting callers can look now; a late or parked command has nothing to show."""
        return [o.envelope.id for o in self.outcomes if o.fate not in (Fate.LATE, Fate.PARKED)]
