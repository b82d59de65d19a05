"""`scripts/bench-recall`: prints the metrics, and writes the run where it is asked to."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from memory_core import bootstrap, limits
from scripts.recall_bench import feeding, metrics, sets
from scripts.recall_bench.sets import LabelledSet

#: As many as fit into one answer: a session counts once, however many of its turns are found.
_LIMIT = 40


def main() -> int:
    options = _options()
    labelled = sets.load(options.data)
    bootstrap.load_commands()
    began = time.monotonic()
    opened = feeding.in_process(labelled, options.keep) if options.in_process else feeding.over_http(labelled)
    with opened as (ask, database):
        documents = feeding.documents_by_event(labelled, database)
        fed = time.monotonic() - began
        run, took, streams = _asked(labelled, ask, documents, options.limit)
    if options.run:
        lines = [json.dumps({"qid": qid, "ranked": ranked}) for qid, ranked in run.items()]
        options.run.write_text("\n".join(lines) + "\n")
    found = {unit: metrics.evaluated(labelled, run, unit) for unit in ("document", "session")}
    told: dict[str, Any] = {
        "set": labelled.name,
        "documents": len(labelled.documents),
        "limit": options.limit,
        "streams": streams,
        "seconds_to_feed": round(fed, 1),
        "query_ms_p50": round(statistics.median(took), 1),
        "query_ms_p95": round(statistics.quantiles(took, n=20)[-1], 1),
        "scores": {
            unit: {name: {"n": one.count, **one.means} for name, one in by.items()}
            for unit, by in found.items()
        },
    }
    print(json.dumps(told, indent=1) if options.json else _table(told, by_category=options.categories))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench-recall", description=__doc__)
    parser.add_argument("data", type=Path, metavar="DATA_DIR")
    parser.add_argument("--in-process", action="store_true", help="no stack: the same code in this process")
    parser.add_argument(
        "--limit", type=int, default=_LIMIT, help=f"results of a query, at most {limits.RESULTS_MAX}"
    )
    parser.add_argument("--run", type=Path, help="write the ranked ids there, a JSON line for each question")
    parser.add_argument("--keep", type=Path, help="with --in-process: a directory whose database stays")
    parser.add_argument("--categories", action="store_true")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _asked(
    labelled: LabelledSet, ask: feeding.Ask, documents: dict[str, str], limit: int
) -> tuple[dict[str, list[str]], list[float], list[str]]:
    """For each question the documents that its hits stand for, best first; what each took (ms); the streams that answered."""
    run: dict[str, list[str]] = {}
    took: list[float] = []
    streams: dict[str, None] = {}
    for query in labelled.queries:
        began = time.monotonic()
        answer = ask(query["text"], feeding.project_of(query["scope"]), limit)
        took.append((time.monotonic() - began) * 1000)
        streams.update(dict.fromkeys(answer.get("streams_active", [])))
        hits = answer.get("hits", [])
        run[query["id"]] = [documents[hit["event_id"]] for hit in hits if hit.get("event_id") in documents]
    return run, took, list(streams)


def _table(told: dict[str, Any], *, by_category: bool) -> str:
    lines = [
        f"{told['set']}: {told['documents']:,} documents, streams {', '.join(told['streams'])}, limit {told['limit']};"
        f" fed in {told['seconds_to_feed']} s; a query {told['query_ms_p50']} ms (p50), {told['query_ms_p95']} ms (p95)",
        "| unit | questions | n | " + " | ".join(metrics.NAMES) + " |",
        "|---" * (3 + len(metrics.NAMES)) + "|",
    ]
    for unit, by in told["scores"].items():
        for category, one in by.items():
            if category == "all" or by_category:
                means = " | ".join(f"{one[name]:.3f}" for name in metrics.NAMES)
                lines.append(f"| {unit} | {category} | {one['n']} | {means} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
