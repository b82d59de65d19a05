"""`POST /hook` and `POST /hook/batch`: events come in. They need the broker and nothing else; a database or a
writer that is away delays nobody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from flask import Blueprint, Response, request
from werkzeug.exceptions import RequestEntityTooLarge

from memory_core import limits
from memory_core.domain.capture_policy import rechecked
from memory_core.domain.command import Envelope
from memory_core.domain.event import HookEvent
from memory_core.errors import CoreError, Invalid
from memory_core.ids import id_text
from web.answers import TooMuch, error_answer, json_answer, status_of
from web.auth import Caller, current, needs
from web.bodies import parse_json, read_body
from web.events import Delivery, delivery_of, envelope_of, redacted, wrapped
from web.gate import Gate, Outcome, Taken, error_of
from web.subagents import Subagents

S = TypeVar("S")
T = TypeVar("T")

#: Events that a client's own policy kept back are accepted and go nowhere.
_DROPPED = Outcome(status="dropped")
_STATUS_OF = {"duplicate": 200, "committed": 200, "dead": 409}


def blueprint(gate: Gate) -> Blueprint:
    routes = Blueprint("hooks", __name__)
    subagents = Subagents()

    @routes.post("/hook")
    @needs("capture")
    def _one() -> Response:
        query = request.args.to_dict()
        payload = parse_json(read_body(request))
        if isinstance(payload, dict) and (payload := rechecked(payload)) is None:
            return json_answer({"status": "dropped"}, 202)
        if subagents.drops(current().principal, query, payload):
            return json_answer({"status": "dropped"}, 202)
        waits = query.get("wait") == "commit"
        envelope = envelope_of(gate, payload, query, current(), wants_reply=waits)
        if waits:
            return _one_answer(envelope, gate.take_and_wait([envelope], limits.REPLY_WAIT_SECONDS))
        known = gate.known(envelope) if "ingest_key" in query else None
        if known is not None:
            return _outcome_answer(envelope, known)
        return _one_answer(envelope, gate.take([envelope]))

    @routes.post("/hook/batch")
    @needs("capture")
    def _batch() -> Response:
        items = parse_json(read_body(request))
        if not isinstance(items, list):
            raise Invalid('the body is a JSON array of {"url", "body"}, one per event')
        if len(items) > limits.BATCH_ITEMS_MAX:
            raise RequestEntityTooLarge(
                f"A batch holds at most {limits.BATCH_ITEMS_MAX} events; none was kept."
            )
        return Batch(gate, subagents, current(), waits=request.args.get("wait") == "commit").answer(items)

    return routes


class Batch:
    """One `/hook/batch` request: each item its own status, one admission for all, in order."""

    def __init__(self, gate: Gate, subagents: Subagents, caller: Caller, *, waits: bool) -> None:
        self._gate = gate
        self._subagents = subagents
        self._caller = caller
        self._waits = waits

    def answer(self, items: list[Any]) -> Response:
        """Step by step and not event by event: the secret scanner's tables leave nothing else in the processor's cache,
        and the other steps took a fourth longer right after it."""
        outcomes: dict[int, Outcome] = {}
        read = self._each(dict(enumerate(items)), self._read, outcomes)
        clean = self._each(read, lambda delivery: (delivery, redacted(delivery.event, self._gate)), outcomes)
        envelopes = self._each(clean, lambda pair: self._wrap(*pair), outcomes)
        taken = self._take(list(envelopes.values()))
        outcomes |= dict(zip(envelopes, taken.outcomes, strict=True))
        results = [_result(outcomes[index], envelopes.get(index)) for index in range(len(items))]
        return self._acknowledged(results, taken)

    @staticmethod
    def _each(
        values: Mapping[int, S], step: Callable[[S], T | Outcome], outcomes: dict[int, Outcome]
    ) -> dict[int, T]:
        """`step` done for each; what is wrong with one item never stops the others, its outcome is then known."""
        done: dict[int, T] = {}
        for index, value in values.items():
            try:
                result = step(value)
            except CoreError as error:
                result = Outcome(status="invalid", code=error.code, reason=str(error))
            if isinstance(result, Outcome):
                outcomes[index] = result
            else:
                done[index] = result
        return done

    def _take(self, envelopes: list[Envelope]) -> Taken:
        if not envelopes:
            return Taken(outcomes=[])
        if self._waits:
            return self._gate.take_and_wait(envelopes, limits.REPLY_WAIT_SECONDS)
        return self._gate.take(envelopes)

    def _read(self, item: Any) -> Delivery | Outcome:
        if not isinstance(item, dict) or not isinstance(item.get("url"), str):
            raise Invalid('an item is {"url": "/hook?…", "body": {…}}')
        query = _query_of(item["url"])
        body = item.get("body")
        if isinstance(body, dict) and (body := rechecked(body)) is None:
            return _DROPPED
        if self._subagents.drops(self._caller.principal, query, body):
            return _DROPPED
        return delivery_of(self._gate, body, query)

    def _wrap(self, delivery: Delivery, event: HookEvent) -> Envelope:
        return wrapped(self._gate, delivery, event, self._caller, wants_reply=self._waits)

    def _acknowledged(self, results: list[dict[str, Any]], taken: Taken) -> Response:
        """`accepted` counts the unbroken prefix; `accepted_indices` follows where there is more behind a gap."""
        kept = [
            i
            for i, result in enumerate(results)
            if result["status"] not in ("invalid", "refused", "not_kept")
        ]
        prefix = next((i for i, index in enumerate(kept) if i != index), len(kept))
        body: dict[str, Any] = {"accepted": prefix}
        if prefix != len(kept) or not kept:
            body["accepted_indices"] = kept
        failed = next((i for i in range(len(results)) if i not in set(kept)), None)
        if failed is not None:
            body["failed_index"] = failed
        body["results"] = results
        if taken.refused is None:
            return json_answer(body, 200 if self._waits else 202)
        refusal = TooMuch(taken.refused, retry_after_seconds=taken.retry_after_seconds)
        answer = error_answer(refusal)
        body |= {"error": str(refusal), "code": refusal.code}
        return json_answer(body, 429, {"Retry-After": answer.headers["Retry-After"]})


def _query_of(url: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(urlsplit(url).query, keep_blank_values=True, max_num_fields=limits.QUERY_FIELDS_MAX)
    except ValueError as error:
        raise Invalid(f"the item's url cannot be read: {error}") from error
    # The first value counts, as for a single delivery.
    return dict(reversed(pairs))


def _one_answer(envelope: Envelope, taken: Taken) -> Response:
    if taken.refused is not None:
        raise TooMuch(taken.refused, retry_after_seconds=taken.retry_after_seconds)
    return _outcome_answer(envelope, taken.outcomes[0])


def _outcome_answer(envelope: Envelope, outcome: Outcome) -> Response:
    status = _STATUS_OF.get(outcome.status, 202)
    if outcome.status == "refused":
        status = status_of(error_of(outcome))
    body = _result(outcome, envelope)
    if outcome.status == "pending" and not envelope.wants_reply:
        body["status"] = "queued"
    return json_answer(body, status)


def _result(outcome: Outcome, envelope: Envelope | None) -> dict[str, Any]:
    # The writer may find that another source sent the same event under another id.
    is_twin = outcome.status == "committed" and outcome.result == {"duplicate": True}
    result: dict[str, Any] = {
        "id": id_text(envelope.id) if envelope is not None else None,
        "status": "duplicate" if is_twin else outcome.status,
    }
    if outcome.reason:
        result |= {"code": outcome.code, "reason": outcome.reason}
    return result
