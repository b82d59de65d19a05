"""OpenAI: Chat Completions and Embeddings."""

from __future__ import annotations

from memory_core.models.openai_client import ChatWire, EmbeddingsWire
from memory_core.models.wire import Vendor, embedding_vendors, language_vendors

language_vendors.add("openai")(
    Vendor(
        title="OpenAI",
        default_model="gpt-5.4-mini",
        extra="openai",
        module="openai",
        connect=lambda access: ChatWire(access=access, is_openai=True),
    )
)
embedding_vendors.add("openai")(
    Vendor(
        title="OpenAI",
        default_model="text-embedding-3-small",
        extra="openai",
        module="openai",
        connect=lambda access: EmbeddingsWire(access=access, is_openai=True),
    )
)
