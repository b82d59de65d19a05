"""Calling a tool on behalf of somebody: the context it runs in, for both doors (MCP and HTTP)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from memory_core import limits
from memory_core.clock import Clock
from memory_core.commands import encode
from memory_core.commands.unseen_edits import UnseenEdits
from memory_core.ids import session_id_from
from memory_core.recall.reranking import Judge
from memory_core.recall.vectors import QuestionVector
from memory_core.store import command_ids
from memory_core.store.database import Database, Snapshot
from web.accesses import Accesses
from web.auth import Caller
from web.events import clean_session_key
from web.gate import Gate
from web.identity import CommandId, body_hash, of_client_key, of_part
from web.question_vectors import QuestionVectors
from web.reranking import Reranking
from web.vitals import Vitals

#: Headers by which a client says which session it is in; the first that is there counts.
SESSION_HEADERS = (
    "HTTP_X_MEMORYD_SESSION_ID",
    "HTTP_X_MEMORY_ACTOR_SESSION_ID",
    "HTTP_MCP_SESSION_ID",
)
#: Where the caller rides, in the request's environ, from the route to the tool.
CALLER = "memoryd.caller"
#: The directory, percent-encoded, that a person's command was given in.
_DIRECTORY_HEADER = "HTTP_X_MEMORYD_DIRECTORY"
_KEY_HEADER = "HTTP_IDEMPOTENCY_KEY"


class CallContext:
    """One call's context; fulfils `memory_core.tools.ToolContext`."""

    def __init__(
        self,
        *,
        gate: Gate,
        database: Database,
        vitals: Vitals,
        accesses: Accesses,
        question_vectors: QuestionVectors,
        reranking: Reranking,
        edits: UnseenEdits,
        caller: Caller,
        environ: Mapping[str, Any],
    ) -> None:
        self._gate = gate
        self._database = database
        self._vitals = vitals
        self._accesses = accesses
        self._question_vectors = question_vectors
        self._reranking = reranking
        self._edits = edits
        self._caller = caller
        self._session = next((str(environ[name]) for name in SESSION_HEADERS if environ.get(name)), None)
        self._directory = str(environ.get(_DIRECTORY_HEADER, ""))
        key = environ.get(_KEY_HEADER)
        self._key: CommandId | None = of_client_key(str(key)) if key else None
        self._submitted = 0

    @property
    def database(self) -> Database:
        return self._database

    @property
    def clock(self) -> Clock:
        return self._gate.clock

    @property
    def principal(self) -> str:
        return self._caller.principal

    @property
    def token_scope(self) -> str:
        return self._caller.scope

    @property
    def session_id(self) -> bytes | None:
        if not self._session or len(self._session) > limits.SESSION_KEY_MAX_CHARS:
            return None
        return session_id_from(clean_session_key(self._session, self._gate))

    @property
    def directory(self) -> str | None:
        return unquote(self._directory) or None

    def submit(self, command: object) -> Mapping[str, Any]:
        return self._gate.submit(command, self._next_id(), self._caller, seconds=limits.REPLY_WAIT_SECONDS)

    def submit_as(self, make: Callable[[bytes], object]) -> Mapping[str, Any]:
        """Submit the command that `make` makes of the id under which it will be known."""
        command_id = self._next_id()
        return self._gate.submit(
            make(command_id.value), command_id, self._caller, seconds=limits.REPLY_WAIT_SECONDS
        )

    def submit_cleaned(self, command: object, cleaned: object) -> Mapping[str, Any]:
        """Submit `cleaned`, which the gate made of `command`."""
        return self._gate.send(
            cleaned,
            self._next_id(),
            self._caller,
            received_hash=body_hash(self._gate.hash_key, encode(command)),
            seconds=limits.REPLY_WAIT_SECONDS,
        )

    def was_sent(self, reading: Snapshot) -> bool:
        """Whether what the caller's key names has ended before: then asking again is asking for that answer."""
        key = self._key
        return key is not None and command_ids.lookup(reading, self.principal, key.value) is not None

    def told_of_edit(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._edits.told(answer)

    def came_upon(self, page_ids: Sequence[bytes]) -> None:
        self._accesses.note(self._caller, page_ids)

    def question_vector(self, text: str) -> QuestionVector | None:
        return self._question_vectors.vector(text)

    @property
    def judge(self) -> Judge | None:
        return self._reranking.judge_for(self._caller) if self._reranking.is_on else None

    def vitals(self) -> Mapping[str, Any]:
        return self._vitals.read()

    def _next_id(self) -> CommandId:
        """From the caller's key, so that the whole call can be sent again; else a new one."""
        number, self._submitted = self._submitted, self._submitted + 1
        if self._key is None:
            return CommandId(value=self._gate.ids.new(), is_foreign=False)
        return of_part(self._key, number)
