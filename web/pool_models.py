"""`/pool/model`: a worker asks before each call of a model, and says after it what it used."""

from __future__ import annotations

from typing import Annotated

from flask import Blueprint, Response
from msgspec import Meta

from memory_core import limits
from memory_core.commands.model_calls import ReserveModelCall, SettleModelCall
from memory_core.ids import id_bytes
from web.auth import needs
from web.bodies import read_as
from web.leases import lease_hash
from web.parts import Parts
from web.pool import Leased
from web.submitting import submit

# `\Z` and not `$`: that would let a line's end through.
_Name = Annotated[
    str, Meta(min_length=1, max_length=limits.MODEL_NAME_MAX_CHARS, pattern=r"^[^\x00-\x1f\x7f-\x9f]+\Z")
]
_Prompt = Annotated[str, Meta(max_length=limits.MODEL_NAME_MAX_CHARS, pattern=r"^[a-z0-9_.+]*\Z")]
_Tokens = Annotated[int, Meta(ge=0, le=limits.MODEL_CALL_TOKENS_MAX)]
_Outcome = Annotated[str, Meta(pattern=r"^[a-z_]{1,64}\Z")]


class Reserve(Leased, kw_only=True):
    call: str
    provider: _Name
    model: _Name
    input_tokens: _Tokens
    output_tokens_max: _Tokens
    prompt: _Prompt = ""


class Settle(Leased, kw_only=True):
    call: str
    input_tokens: _Tokens
    output_tokens: _Tokens
    cached_tokens: _Tokens
    outcome: _Outcome


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint("pool_models", __name__, url_prefix="/pool/model")

    @routes.post("/reserve")
    @needs("pool")
    def _reserve() -> Response:
        asked = read_as(Reserve, limits.POOL_BODY_MAX_BYTES)
        command = ReserveModelCall(
            job=id_bytes(asked.job),
            claim=lease_hash(asked.lease),
            call=id_bytes(asked.call),
            provider=asked.provider,
            model=asked.model,
            input_tokens=asked.input_tokens,
            output_tokens_max=asked.output_tokens_max,
            prompt=asked.prompt,
        )
        return submit(parts, command)

    @routes.post("/settle")
    @needs("pool")
    def _settle() -> Response:
        told = read_as(Settle, limits.POOL_BODY_MAX_BYTES)
        command = SettleModelCall(
            job=id_bytes(told.job),
            claim=lease_hash(told.lease),
            call=id_bytes(told.call),
            input_tokens=told.input_tokens,
            output_tokens=told.output_tokens,
            cached_tokens=told.cached_tokens,
            outcome=told.outcome,
        )
        return submit(parts, command)

    return routes
