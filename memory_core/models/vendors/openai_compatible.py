"""Servers of one's own that speak OpenAI's interface: Ollama, vLLM, LM Studio, llama.cpp. Their models are named by hand."""

from __future__ import annotations

from memory_core.models.openai_client import ChatWire, EmbeddingsWire
from memory_core.models.wire import Vendor, embedding_vendors, language_vendors

language_vendors.add("openai_compatible")(
    Vendor(
        title="a server that speaks OpenAI's interface",
        default_model="",
        extra="openai",
        module="openai",
        needs_key=False,
        needs_base_url=True,
        connect=lambda access: ChatWire(access=access, is_openai=False),
    )
)
embedding_vendors.add("openai_compatible")(
    Vendor(
        title="a server that speaks OpenAI's interface",
        default_model="",
        extra="openai",
        module="openai",
        needs_key=False,
        needs_base_url=True,
        connect=lambda access: EmbeddingsWire(access=access, is_openai=False),
    )
)
