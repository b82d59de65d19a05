"""The wiki as files: taking ten thousand of them in, and looking at them when nothing has changed."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import time
import uuid
from pathlib import Path
from typing import Any

from memory_core import limits
from scripts.bench_parts.figures import Result, at_least, at_most
from scripts.bench_parts.parts import Bench, parts
from scripts.bench_parts.stack import Stack
from scripts.bench_parts.texts import Words
from tests.e2e.running import wait_until

REINDEX = at_least(200)
UNCHANGED_SECONDS = at_most(1)
PAGE_BYTES = 2_000
_PROJECT = "default/notebook"
_FOLDERS = ("notes", "decisions", "concepts", "gotchas", "people/a", "people/b")
_PATIENCE_SECONDS = 600.0


@parts.add("wiki")
def wiki(bench: Bench) -> Result:
    """A reindex, a look at an unchanged tree, and files written again after they were lost. It needs a stack of its own."""
    result = Result(part="wiki")
    with Stack(bench.directory / "stack") as stack:
        stack.wait_ready()
        count = bench.sizes.pages
        bench.say(f"wiki: {count:,} files")
        root = stack.settings.wiki / _PROJECT
        _fill(root, count)
        bench.say("wiki: reindex")
        result.add("reindex", count / _task(stack, "reindex"), "pages/s", REINDEX)
        _compare(stack, root, result, "taken in by a reindex")
        bench.say("wiki: an unchanged tree")
        before, after = _next_look(stack), _next_look(stack)
        result.add("look at an unchanged tree", after["whole_look_seconds"], "s", UNCHANGED_SECONDS)
        read = after["files_read"] - before["files_read"]
        if read:
            result.complaints.append(f"{read} unchanged files were read")
        result.verified.append(f"{after['files']:,} unchanged files looked at, {read} read")
        bench.say("wiki: heal")
        shutil.rmtree(root)
        wait_until(lambda: _state(stack).get("held"), seconds=_PATIENCE_SECONDS, saying="the loss is seen")
        result.add("heal", count / _task(stack, "heal"), "files/s")
        _compare(stack, root, result, "written again by a heal")
    return result


def _fill(root: Path, count: int) -> None:
    words, chance = Words(), random.Random(11)
    root.mkdir(parents=True)
    for number in range(count):
        folder = root / _FOLDERS[number % len(_FOLDERS)]
        folder.mkdir(parents=True, exist_ok=True)
        text = f"---\ntitle: Page {number}\ntags: [bench]\n---\n{words.text(chance, PAGE_BYTES)}\n"
        (folder / f"page-{number}.md").write_text(text)
    meta = f"---\nworkspace: default\nproject: notebook\nproject_id: {uuid.uuid4()}\n---\n"
    (root / "_meta.md").write_text(meta)


def _state(stack: Stack) -> dict[str, Any]:
    try:
        return json.loads((stack.settings.run_dir / "wiki.status.json").read_text())
    except (OSError, ValueError):
        return {}


def _next_look(stack: Stack) -> dict[str, Any]:
    """The state after the next whole look at which nothing was left to do."""
    last = _state(stack).get("whole_look_at")

    def looked() -> dict[str, Any] | None:
        state = _state(stack)
        return state if state.get("whole_look_at") not in (None, last) and not state["waiting"] else None

    return wait_until(looked, seconds=4 * limits.RECONCILE_SECONDS, saying="the wiki was looked at again")


def _task(stack: Stack, kind: str) -> float:
    """Ask for a task and wait for its end; how long it took, seconds."""
    began = time.monotonic()
    status, answer = stack.request("POST", f"/api/v1/wiki/{kind}", {})
    assert status == 200, answer

    def is_done() -> bool:
        rows = stack.query("select finished_at from wiki_tasks order by seq desc limit 1")
        return bool(rows) and rows[0]["finished_at"] is not None

    wait_until(is_done, seconds=_PATIENCE_SECONDS, saying=f"the {kind} is done")
    return time.monotonic() - began


def _compare(stack: Stack, root: Path, result: Result, what: str) -> None:
    """Every file is the latest version of its page, and every page has its file."""
    rows = stack.query(
        "select p.path as path, v.sha256 as sha256 from pages p join page_versions v on v.id = p.version_id"
        " where p.tombstoned_at is null"
    )
    pages = {row["path"]: row["sha256"] for row in rows}
    files = {
        str(file.relative_to(root)): hashlib.sha256(file.read_bytes()).digest()
        for file in root.rglob("*.md")
        if file.name not in ("_meta.md", "index.md") and not file.name.startswith("log-")
    }
    wrong = {path for path in pages.keys() | files.keys() if pages.get(path) != files.get(path)}
    if wrong:
        result.complaints.append(f"{len(wrong)} pages and files differ: {sorted(wrong)[:3]}")
    result.verified.append(f"{len(files):,} files {what}, each compared with its page by hash")
