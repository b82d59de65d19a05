"""What makes vectors comparable, and how far a model has got with what there is."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class EmbeddingModel:
    """Vectors are compared with vectors of the same one only."""

    provider: str
    #: Where it is reached; empty: the provider's own address, or this machine.
    endpoint: str = ""
    #: With a revision (`name@hash`) where its files are at hand: other files under its name are another model.
    model: str
    #: How long a vector is; 0: what the model says.
    dimensions: int = 0
    document_prefix: str = field(default="", repr=False)


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Units (page chunks and turns) that have their vectors, of all that there are."""

    done: int
    total: int
    #: Among those done: texts that the model takes no vector of.
    failed: int = 0
    #: Units by second of late; None: not known.
    rate: float | None = None

    @property
    def pending(self) -> int:
        return max(self.total - self.done, 0)

    @property
    def eta_seconds(self) -> float | None:
        """How long the rest takes if it goes on as it did; None: nobody knows, or nothing is left."""
        if not self.pending or not self.rate:
            return None
        return self.pending / self.rate

    def sentence(self) -> str:
        """`412 of 2,000, about 3 min left`."""
        said = f"{self.done:,} of {self.total:,}"
        if self.pending:
            eta = self.eta_seconds
            said += ", time left unknown" if eta is None else f", about {_span(eta)} left"
        if self.failed:
            said += f"; {self.failed:,} texts could not be embedded"
        return said


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    return f"{round(seconds / 3600)} h"
