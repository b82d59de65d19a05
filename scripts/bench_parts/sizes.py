"""How much each part does: full for the figures that count, quick while developing, tiny for the tests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Sizes:
    rounds: int
    #: One side of one round of `ingest`.
    ingest_seconds: float
    connections: int
    #: A burst of `batch`: requests of `batch_items` events each, over `batch_connections` connections.
    burst_requests: int
    bursts: int
    batch_connections: int = 4
    batch_items: int = 100
    #: Events that wait before the writer is let loose.
    drain_events: int
    visible_seconds: float
    page_writes: int
    #: Jobs of `jobs`, of ten projects.
    jobs: int
    pages: int
    searches: int
    #: Of `scale`: projects, pages at first and in the end, and how long a number of clients asks.
    scale_projects: int
    scale_pages: tuple[int, int]
    asking_seconds: float
    #: Turns of ten events that are timed, and how long a durable session is then.
    durable_turns: int
    durable_events: tuple[int, ...]
    memory_events: int
    #: How long the tree rests before its memory is read.
    idle_seconds: float
    respawns: int


FULL = Sizes(
    rounds=5,
    ingest_seconds=8.0,
    connections=64,
    burst_requests=50,
    bursts=3,
    drain_events=16_000,
    visible_seconds=30.0,
    page_writes=300,
    jobs=1_000,
    pages=10_000,
    searches=60,
    scale_projects=50,
    scale_pages=(10_000, 100_000),
    asking_seconds=6.0,
    durable_turns=200,
    durable_events=(10_000, 100_000),
    memory_events=100_000,
    idle_seconds=15.0,
    respawns=3,
)
QUICK = Sizes(
    rounds=3,
    ingest_seconds=3.0,
    connections=64,
    burst_requests=20,
    bursts=2,
    drain_events=6_000,
    visible_seconds=6.0,
    page_writes=100,
    jobs=300,
    pages=10_000,
    searches=20,
    scale_projects=50,
    scale_pages=(2_000, 20_000),
    asking_seconds=2.0,
    durable_turns=50,
    durable_events=(2_000, 20_000),
    memory_events=50_000,
    idle_seconds=5.0,
    respawns=1,
)
TINY = Sizes(
    rounds=1,
    ingest_seconds=0.4,
    connections=8,
    burst_requests=2,
    bursts=1,
    batch_items=20,
    drain_events=400,
    visible_seconds=0.5,
    page_writes=5,
    jobs=60,
    pages=60,
    searches=2,
    scale_projects=3,
    scale_pages=(30, 90),
    asking_seconds=0.3,
    durable_turns=5,
    durable_events=(200, 1_000),
    memory_events=1_000,
    idle_seconds=0.0,
    respawns=1,
)
