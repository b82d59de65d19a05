"""The writer's duties about embeddings: the configured model is bound, a job is made when text came, the past is tidied up."""

from __future__ import annotations

import logging
from contextlib import ExitStack

from memory_core import limits
from memory_core.commands import embeddings
from memory_core.config import Settings
from memory_core.domain.embedding import EmbeddingModel
from memory_core.errors import CoreError
from memory_core.models import local_files
from memory_core.models.settings import embedding_model, read_settings
from memory_core.store.transaction import Transaction
from workers.writer.duties import Duty

logger = logging.getLogger(__name__)


class Binding:
    """Binds the configured embedder, and holds off the removal of local models until that is committed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._held = ExitStack()
        self._was_said = ""
        self._is_done = False

    def keep(self, tx: Transaction) -> int:
        """One turn; whether it changed anything. A model that is not there yet is looked for at each turn."""
        if self._is_done:
            return 0
        self._held.close()
        try:
            self._held.enter_context(local_files.binding(self._settings.models))
            model = self._wanted()
        except (CoreError, OSError) as error:
            self._say(f"{error}")
            self._held.close()
            return 0
        is_new = embeddings.bind(tx, model)
        if not is_new:
            # Seen without writing, so it is committed.
            self._held.close()
            self._is_done = True
        return int(is_new)

    def _wanted(self) -> EmbeddingModel | None:
        return embedding_model(read_settings(self._settings), self._settings)

    def _say(self, sentence: str) -> None:
        if sentence != self._was_said:
            self._was_said = sentence
            logger.error(
                "the configured embedder cannot be used; search goes on by words: %s",
                sentence,
                extra={"action": "embedder_unusable"},
            )


def duties(settings: Settings) -> tuple[Duty, ...]:
    binding, strays = Binding(settings), embeddings.Strays()
    return (
        Duty(name="bind_embedder", work=binding.keep, every_seconds=limits.DUTY_SECONDS),
        Duty(name="look_for_text", work=embeddings.look, every_seconds=limits.EMBED_LOOK_SECONDS),
        Duty(name="tidy_vectors", work=embeddings.tidy, every_seconds=limits.EMBED_LOOK_SECONDS),
        Duty(name="sweep_embeddings", work=strays.sweep, every_seconds=limits.PURGE_SECONDS),
    )
