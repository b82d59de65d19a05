"""The registry of parts, and what each is given."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from memory_core.registry import Registry
from scripts.bench_parts.figures import Result
from scripts.bench_parts.sizes import Sizes
from scripts.bench_parts.stack import Stack


@dataclass(frozen=True, kw_only=True)
class Bench:
    """One run of the bench."""

    sizes: Sizes
    #: A directory of its own for this part, on the disk that is measured.
    directory: Path
    #: Tells whoever watches what is being done.
    say: Callable[[str], None]
    #: A stack that is there already; its own otherwise.
    running: Stack | None = None

    def stack(self) -> AbstractContextManager[Stack]:
        return nullcontext(self.running) if self.running else Stack(self.directory)


Measure = Callable[[Bench], Result]
parts: Registry[Measure] = Registry("bench part")
