"""A provider of embeddings that lives, fails and comes back beside a whole stack, and what the stack says of its vectors."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from memory_core.domain.embedding import EmbeddingModel
from tests.e2e.running import ROOT, Running
from tests.jobs.embedding_model import vector_of
from tests.models.fakes.embedding import CompatibleEmbeddings
from tests.models.server import Asked, Reply, json_reply

#: What its models mean by a word: a question that shares none with a text is near to it all the same.
_MEANS = {"feline": "cat", "naps": "sleeps", "sofa": "couch"}
QUERY = "query: "


class LivingEmbedder:
    """Speaks OpenAI's interface with several models, each with its dimensions, and fails in the way that it is told."""

    def __init__(self, **dimensions: int) -> None:
        self.dimensions = dimensions
        self.fault = ""
        self.is_over = threading.Event()
        self._http: ThreadingHTTPServer | None = None
        self._thread = threading.Thread()
        self.port = 0

    def __enter__(self) -> LivingEmbedder:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.is_over.set()
        self.die()

    def start(self) -> None:
        """At the port that it had before, if there was one."""
        self._http = ThreadingHTTPServer(("127.0.0.1", self.port), _handler(self))
        self._http.daemon_threads = True
        self.port = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def die(self) -> None:
        """From now on connections are refused."""
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()
            self._thread.join(60)
            self._http = None

    def fails(self, fault: str) -> None:
        """From now on: `dead`, `hang`, `error` (a 500), `garbage`, `short` (vectors), or `busy`: then it answers questions only."""
        self.fault = fault
        if fault == "dead":
            self.die()

    def is_mended(self) -> None:
        self.fault = ""
        if self._http is None:
            self.start()

    def settings(self, model: str) -> dict[str, str]:
        """What a user says in the environment to have this model."""
        told = {
            "provider": "openai_compatible",
            "model": model,
            "base_url": f"http://127.0.0.1:{self.port}/v1",
            "dimensions": str(self.dimensions[model]),
            "query_prefix": QUERY,
        }
        return {f"MEMORYD_MODELS__EMBED_{name.upper()}": value for name, value in told.items()}

    def reply(self, asked: Asked) -> Reply:
        wire = CompatibleEmbeddings()
        seen = wire.read(asked)
        is_query = seen.texts[0].startswith(QUERY)
        if self.fault == "busy" and not is_query:
            return wire.failure(503)
        while self.fault == "hang" and not self.is_over.wait(0.05):
            pass
        if self.fault == "error":
            return wire.failure(500)
        if self.fault == "garbage":
            return json_reply("no vectors at all")
        dimensions = self.dimensions[seen.model] - (self.fault == "short")
        model = EmbeddingModel(provider="living", model=seen.model, dimensions=dimensions)
        return wire.answer([vector_of(_meaning(text), model).tolist() for text in seen.texts])


def _meaning(text: str) -> str:
    words = text.removeprefix(QUERY).lower().replace(".", " ").split()
    return " ".join(_MEANS.get(word, word) for word in words)


def _handler(embedder: LivingEmbedder) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(method="POST", path=self.path, headers=headers, body=json.loads(raw))
            reply = embedder.reply(asked)
            body = b"".join(reply.chunks)
            try:
                self.send_response(reply.status)
                for name, value in {**reply.headers, "content-length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                pass  # who asked hung up: it waits no longer than its limit

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def state(memoryd: Running) -> dict[str, Any]:
    status, found = memoryd.request("GET", "/api/v1/embeddings")
    assert status == 200
    return found


def command(memoryd: Running, *arguments: str, expect: int = 0) -> Any:
    """What a command of the command line prints as JSON; it must end with `expect`."""
    environ = {**memoryd.environ, "MEMORYD_URL": f"http://127.0.0.1:{memoryd.port}"}
    environ["MEMORYD_TOKEN_FILE"] = str(memoryd.data_dir / "token")
    done = subprocess.run(
        [sys.executable, "-m", "client", *arguments, "--json"],
        capture_output=True,
        text=True,
        env=environ,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == expect, done.stdout + done.stderr
    return json.loads(done.stdout or done.stderr)


class Repeated:
    """Does something again and again in a thread of its own until the block ends, which then raises what it raised."""

    def __init__(self, act: Callable[[int], None]) -> None:
        self.count = 0
        self._act = act
        self._error: BaseException | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            # A steady pace, that leaves the machine to those who are measured against it.
            while not self._is_over.wait(0.05):
                self._act(self.count)
                self.count += 1
        except BaseException as error:
            self._error = error

    def __enter__(self) -> Repeated:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._is_over.set()
        self._thread.join(60)
        if self._error is not None:
            raise self._error
