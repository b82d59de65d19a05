"""recall@k (share of what is relevant), hit@k (any of it), MRR@10 and nDCG@10 with binary gains, averaged over questions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scripts.recall_bench.sets import QUOTATION, LabelledSet

KS = (1, 5, 10)
NAMES = (*(f"recall@{k}" for k in KS), *(f"hit@{k}" for k in KS), "mrr@10", "ndcg@10")


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Means over `count` questions, by name."""

    count: int
    means: dict[str, float]


def score(ranked: Iterable[str], relevant: set[str]) -> dict[str, float]:
    """Of one question; an id counts at its first place."""
    first = list(dict.fromkeys(ranked))[: max(KS)]
    hits = [one in relevant for one in first]
    found: dict[str, float] = {}
    for k in KS:
        found[f"recall@{k}"] = sum(hits[:k]) / len(relevant)
        found[f"hit@{k}"] = float(any(hits[:k]))
    found["mrr@10"] = next((1 / place for place, is_hit in enumerate(hits, 1) if is_hit), 0.0)
    gain = sum(1 / math.log2(place + 1) for place, is_hit in enumerate(hits, 1) if is_hit)
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(len(relevant), max(KS)) + 1))
    found["ndcg@10"] = gain / ideal
    return found


def evaluated(labelled: LabelledSet, run: Mapping[str, Sequence[str]], unit: str) -> dict[str, Scores]:
    """By category, `all`, and `question`: all that do not quote. `unit`: `document`, or `session` (documents count for their sessions)."""
    sessions = labelled.sessions
    rows: dict[str, list[dict[str, float]]] = {}
    for query in labelled.queries:
        relevant = set(query["rel_docs" if unit == "document" else "rel_sessions"])
        if not relevant:
            continue
        ranked = run.get(query["id"], ())
        one = score(ranked if unit == "document" else (sessions.get(each, each) for each in ranked), relevant)
        for name in {"all", query["category"], "question" if query["category"] != QUOTATION else QUOTATION}:
            rows.setdefault(name, []).append(one)
    return {
        category: Scores(
            count=len(ones), means={name: sum(one[name] for one in ones) / len(ones) for name in NAMES}
        )
        for category, ones in rows.items()
        if ones
    }
