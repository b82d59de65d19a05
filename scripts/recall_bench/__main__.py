"""`scripts/bench-recall`: prints the metrics, and writes the run where it is asked to."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memory_core import bootstrap, limits
from scripts.recall_bench import feeding, metrics, peer, sets
from scripts.recall_bench.sets import QUOTATION, LabelledSet

#: As many as fit into one answer: a session counts once, however many of its turns are found.
_LIMIT = 40
#: What the table shows of the categories unless all are asked for.
_SHOWN = ("question", QUOTATION)


def main() -> int:
    options = _options()
    labelled = sets.with_quotations(sets.load(options.data), options.quotations)
    bootstrap.load_commands()
    began = time.monotonic()
    opened = (
        feeding.in_process(labelled, options.keep)
        if options.in_process
        else feeding.over_http(labelled, options.embedder)
    )
    with opened as (ask, database):
        documents = feeding.documents_by_event(labelled, database)
        fed = time.monotonic() - began
        streams: dict[str, None] = {}

        def found(query: dict[str, Any]) -> list[str]:
            answer = ask(query["text"], feeding.project_of(query["scope"]), options.limit)
            streams.update(dict.fromkeys(answer.get("streams_active", [])))
            return [
                documents[hit["event_id"]]
                for hit in answer.get("hits", [])
                if hit.get("event_id") in documents
            ]

        told = [_measured("memoryd", labelled, found, fed=fed, run_file=options.run)]
        told[0]["streams"] = list(streams)
    if options.beside:
        told += _beside(labelled, options.beside, options.limit)
    print(json.dumps(told, indent=1) if options.json else _table(labelled, told, options))
    return 0


def _beside(labelled: LabelledSet, command: str, limit: int) -> list[dict[str, Any]]:
    """What the other server finds, in each of its ways."""
    began = time.monotonic()
    with peer.opened(labelled, command) as ask:
        fed = time.monotonic() - began
        return [
            _measured(
                f"other, {mode}",
                labelled,
                lambda query, mode=mode: ask(mode, query["text"], query["scope"], limit),
                fed=fed,
            )
            for mode in peer.MODES
        ]


def _measured(
    name: str,
    labelled: LabelledSet,
    found: Callable[[dict[str, Any]], list[str]],
    *,
    fed: float,
    run_file: Path | None = None,
) -> dict[str, Any]:
    """Each question asked once, one after another: what was found, and how long it took."""
    run: dict[str, list[str]] = {}
    took: list[float] = []
    for query in labelled.queries:
        began = time.monotonic()
        run[query["id"]] = found(query)
        took.append((time.monotonic() - began) * 1000)
    if run_file:
        lines = [json.dumps({"qid": qid, "ranked": ranked}) for qid, ranked in run.items()]
        run_file.write_text("\n".join(lines) + "\n")
    scores = {unit: metrics.evaluated(labelled, run, unit) for unit in ("document", "session")}
    return {
        "system": name,
        "seconds_to_feed": round(fed, 1),
        "query_ms_p50": round(statistics.median(took), 1),
        "query_ms_p95": round(statistics.quantiles(took, n=20)[-1], 1),
        "scores": {
            unit: {category: {"n": one.count, **one.means} for category, one in by.items()}
            for unit, by in scores.items()
        },
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench-recall", description=__doc__)
    parser.add_argument("data", type=Path, metavar="DATA_DIR")
    parser.add_argument("--in-process", action="store_true", help="no stack: the same code in this process")
    parser.add_argument(
        "--limit", type=int, default=_LIMIT, help=f"results of a query, at most {limits.RESULTS_MAX}"
    )
    parser.add_argument("--run", type=Path, help="write the ranked ids there, a JSON line for each question")
    parser.add_argument("--keep", type=Path, help="with --in-process: a directory whose database stays")
    parser.add_argument("--embedder", default="none", help="of the stack: none (the default), local, …")
    parser.add_argument("--quotations", type=int, default=0, help="that many questions more, which quote")
    parser.add_argument("--beside", metavar="COMMAND", help="starts mcp-memory-service on standard input")
    parser.add_argument("--categories", action="store_true")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _table(labelled: LabelledSet, told: list[dict[str, Any]], options: argparse.Namespace) -> str:
    lines = [f"{labelled.name}: {len(labelled.documents):,} documents, limit {options.limit}"]
    for one in told:
        streams = f" (streams {', '.join(one['streams'])})" if "streams" in one else ""
        lines.append(
            f"{one['system']}{streams}: fed in {one['seconds_to_feed']} s;"
            f" a query {one['query_ms_p50']} ms (p50), {one['query_ms_p95']} ms (p95)"
        )
    lines += [
        "| system | unit | questions | n | " + " | ".join(metrics.NAMES) + " |",
        "|---" * (4 + len(metrics.NAMES)) + "|",
    ]
    for one in told:
        for unit, by in one["scores"].items():
            for category, found in by.items():
                if category in _SHOWN or options.categories:
                    means = " | ".join(f"{found[name]:.3f}" for name in metrics.NAMES)
                    lines.append(f"| {one['system']} | {unit} | {category} | {found['n']} | {means} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
