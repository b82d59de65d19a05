"""Invented secrets go in through every door; afterwards no file of the server or of the client holds one."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from memory_core.redaction import client as client_redaction
from memory_core.redaction.server import Redactor
from tests.e2e.hooking import HookClient
from tests.e2e.oracle import is_quiet
from tests.e2e.running import Running, wait_until
from tests.redaction.corpus import Maker, Sample, leaks

pytestmark = pytest.mark.stack

SEED = 4_242


@pytest.fixture
def memoryd(tmp_path: Path) -> Iterator[Running]:
    with Running(tmp_path / "server", conditions=["patient"]) as running:
        yield running


def test_no_secret_lies_in_any_file_of_server_and_client(memoryd: Running, tmp_path: Path):
    samples = Maker(SEED).core(per_kind=1)
    laptop = HookClient(memoryd, tmp_path / "laptop")
    by_shim, by_page, by_hook = samples[:8], samples[8:40], samples[8:]

    send_by_hook(memoryd, by_hook)
    send_by_tool_event(memoryd, by_hook[::3])
    for sample in by_page:
        memoryd.tool("memory_write_page", path=f"notes/{sample.kind}", body=sample.text, project="secret")
    ask_and_fail(memoryd, by_hook[:10])
    with memoryd.stopped("writer"):
        # Nothing is committed meanwhile, so that the spool keeps what the hooks wrote.
        for sample in by_shim:
            laptop.hook("UserPromptSubmit", session_id="secret", cwd="/srv/secret", prompt=sample.text)
        assert laptop.spool.names()
        in_spool = found_in(laptop.home, by_shim)
    wait_until(lambda: not laptop.spool.names(), saying="the drain has delivered everything")
    wait_until(lambda: is_quiet(memoryd), saying="all is stored")
    for pid in laptop.pids():
        os.kill(pid, signal.SIGTERM)
    in_files = found_in(memoryd.data_dir, samples)
    known = misses(samples, tmp_path / "cache")
    harmless = found_in(memoryd.data_dir, [Sample(kind="canary", text="", watched=("the canary is here",))])

    assert not set(in_spool) - known
    assert not set(in_files) - known
    # What the rules themselves do not know is counted where they are tested; it must be little.
    assert len(known) <= 0.02 * len(samples)
    assert harmless, "the search finds nothing at all"


def send_by_hook(memoryd: Running, samples: list[Sample]) -> None:
    texts = [sample.text for sample in samples] + ["the canary is here"]
    url = "/hook?agent=claude-code&event=UserPromptSubmit"
    for start in range(0, len(texts), 50):
        items = [
            {"url": url, "body": {"session_id": "secret", "cwd": "/srv/secret", "prompt": text}}
            for text in texts[start : start + 50]
        ]
        status, answer = memoryd.request("POST", "/hook/batch?wait=commit", items, seconds=30)
        assert status in (200, 202), answer


def send_by_tool_event(memoryd: Running, samples: list[Sample]) -> None:
    for number, sample in enumerate(samples):
        memoryd.hook(
            "PostToolUse",
            session_id="secret",
            cwd="/srv/secret",
            tool_name="Bash",
            tool_use_id=f"toolu_{number}",
            tool_input={"command": f"run <<EOF\n{sample.text}\nEOF"},
            tool_response={"stdout": sample.text, "stderr": ""},
        )


def ask_and_fail(memoryd: Running, samples: list[Sample]) -> None:
    """Questions and mistakes leave traces in logs."""
    for sample in samples:
        memoryd.request(
            "POST", "/api/v1/tools/memory_query", {"query": sample.text[:900], "project": "secret"}
        )
        memoryd.request("POST", "/hook?agent=codex&event=Stop", sample.text.encode())
        memoryd.request("GET", f"/handoff?agent=codex&session_id=x&cwd={quote(sample.text[:500])}")
        memoryd.request("POST", "/api/v1/tools/memory_read_page", {"path": sample.text[:200]})


def found_in(folder: Path, samples: list[Sample]) -> list[str]:
    """Kinds of the samples with a secret in some byte of some file or in a file's name."""
    parts = [str(path).encode() for path in folder.rglob("*")]
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            if data.count(0) != len(data):
                parts.append(data)
    everything = b"\0".join(parts)
    return [
        sample.kind
        for sample in samples
        if any(form in everything for secret in sample.watched for form in forms(secret))
    ]


def forms(secret: str) -> set[bytes]:
    """As it is, and as JSON writes it."""
    return {
        secret.encode(),
        json.dumps(secret)[1:-1].encode(),
        json.dumps(secret, ensure_ascii=False)[1:-1].encode(),
    }


def misses(samples: list[Sample], cache: Path) -> set[str]:
    """Kinds that the rules do not find, at the gate or at the client."""
    cache.mkdir()
    gate = Redactor(bytes(32), cache)
    return {
        sample.kind
        for sample in samples
        for text in (gate.redact_text(sample.text).text, client_redaction.redact(sample.text, bytes(32)).text)
        if any(leaks(secret, text) for secret in sample.watched)
    }
