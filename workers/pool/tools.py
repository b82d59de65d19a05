"""What a kind's `compute` is given besides its input: whether to stop, a way to say how far it is, the data where it lies here."""

from __future__ import annotations

import itertools
import math
import queue
import threading
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any

from memory_core import limits
from memory_core.clock import Clock
from memory_core.config import Settings
from memory_core.errors import Unavailable
from workers.pool import frames
from workers.pool.gate import new_key

if TYPE_CHECKING:
    from memory_core.models.metered import Models
    from memory_core.models.port import Embedder, LanguageModel


class Conversation:
    """The child's end of the talk with its parent, for its two threads: one computes, one listens."""

    def __init__(self, stdout: IO[bytes]) -> None:
        self._stdout = stdout
        self._lock = threading.Lock()
        self._cancelled: set[int] = set()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, queue.SimpleQueue[frames.Reply]] = {}

    def say(self, message: frames.FromChild) -> None:
        with self._lock:
            frames.send(self._stdout, message)

    def cancel(self, number: int) -> None:
        self._cancelled.add(number)

    def is_cancelled(self, number: int) -> bool:
        return number in self._cancelled

    def forget(self, number: int) -> None:
        self._cancelled.discard(number)

    def ask(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Have the parent ask the gate, with the job's lease. Raises `Unavailable` where it gets no answer."""
        number = next(self._numbers)
        answers: queue.SimpleQueue[frames.Reply] = queue.SimpleQueue()
        self._waiting[number] = answers
        try:
            self.say(frames.Ask(number=number, path=path, body=body, key=new_key()))
            reply = answers.get(timeout=limits.POOL_ASK_SECONDS)
        except queue.Empty as error:
            raise Unavailable("the gate did not answer") from error
        finally:
            del self._waiting[number]
        if reply.error:
            raise Unavailable(f"the gate did not answer ({reply.error})")
        return reply.value

    def answered(self, reply: frames.Reply) -> None:
        answers = self._waiting.get(reply.number)
        if answers is not None:
            answers.put(reply)


class ChildTools:
    """In the compute child."""

    def __init__(
        self, talk: Conversation, number: int, data: Settings | None, clock: Clock, models: Models
    ) -> None:
        self._talk = talk
        self._models = models
        self._clock = clock
        self._said_at = -math.inf
        self._number = number
        #: The settings of the data directory; None where this machine has none.
        self.data = data

    @property
    def model(self) -> LanguageModel | None:
        """The language model, under its budget; None where no provider is configured. Raises `NoProvider`."""
        return self._models.language_model(self._talk.ask, self.cancelled)

    @property
    def embedder(self) -> Embedder | None:
        """The embedder, likewise."""
        return self._models.embedder(self._talk.ask, self.cancelled)

    def cancelled(self) -> bool:
        """Whether nobody wants the result any more; a kind that takes long asks often."""
        return self._talk.is_cancelled(self._number)

    def progress(self, text: str) -> None:
        """How far it is, for people: counts, no text of pages or prompts. What comes too soon after the last is left out."""
        now = self._clock.monotonic()
        if now - self._said_at < limits.POOL_PROGRESS_SECONDS:
            return
        self._said_at = now
        self._talk.say(frames.Progress(number=self._number, text=text[: limits.POOL_PROGRESS_MAX_CHARS]))


class InlineTools:
    """In the worker's own thread, for kinds that do nothing that could hang: a model could."""

    model = None
    embedder = None

    def __init__(self, is_cancelled: threading.Event, data: Settings | None) -> None:
        self._is_cancelled = is_cancelled
        self.data = data

    def cancelled(self) -> bool:
        return self._is_cancelled.is_set()

    def progress(self, text: str) -> None:
        """Nobody waits for what takes no time."""
