"""What one vendor has and no other: ways to say no, ways to ask, and servers of one's own that know less."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import voyageai.util

from memory_core import limits
from memory_core.models import errors
from memory_core.models.port import LanguageModel, ask
from memory_core.models.settings import ModelSettings, choose, choose_embedder
from tests.models.fakes.anthropic import Anthropic
from tests.models.fakes.embedding import VoyageEmbeddings
from tests.models.fakes.gemini import Gemini
from tests.models.fakes.openai import OpenAI, OpenAICompatible
from tests.models.fakes.shape import KEY
from tests.models.server import Asked, QuickClock, Reply, Server, events, json_reply, serving
from tests.models.test_language_models import FACTS, GOOD


def model(
    server: Server, provider: str, fake: Any, clock: QuickClock | None = None, **more: Any
) -> LanguageModel:
    given = {"model": fake.model, "base_url": fake.base_url(server.port), "api_key": KEY, **more}
    found = choose(ModelSettings(provider=provider, **given), clock or QuickClock())
    assert found is not None
    return found


def nothing(_: Asked) -> None:
    """A check that lets everything pass."""


def after(fake: Any, reply: Reply, provider: str) -> errors.ProviderError:
    """The error that an answer of the server becomes."""
    with serving(nothing) as server:
        server.will(*[reply] * 3)
        with pytest.raises(errors.ProviderError) as caught:
            model(server, provider, fake).complete(ask("x"))
    return caught.value


def test_anthropic_says_by_type_what_its_status_does_not():
    broke = {"type": "error", "error": {"type": "billing_error", "message": "credit balance"}}

    assert isinstance(after(Anthropic(), json_reply(broke, status=400), "anthropic"), errors.OutOfCredit)


def test_what_was_spent_before_the_connection_broke_is_told():
    cut = Anthropic().answer("Half an answer").broken(4, "cut")

    error = after(Anthropic(), cut, "anthropic")

    assert isinstance(error, errors.Unreachable)
    assert error.usage.input_tokens == 30 * limits.MODEL_TRIES


def test_openai_tells_a_spent_quota_from_a_rate():
    spent = {
        "error": {"message": "m", "type": "insufficient_quota", "param": None, "code": "insufficient_quota"}
    }

    assert isinstance(after(OpenAI(), json_reply(spent, status=429), "openai"), errors.OutOfCredit)


def test_openai_filters_by_a_finish_reason_too():
    assert isinstance(after(OpenAI(), OpenAI().answer("a", stop="content_filter"), "openai"), errors.Refused)


def test_gemini_calls_a_bad_key_a_bad_request():
    detail = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    body = {"error": {"code": 400, "message": "m", "status": "INVALID_ARGUMENT", "details": [detail]}}

    assert isinstance(after(Gemini(), json_reply(body, status=400), "gemini"), errors.Unauthorized)


def test_gemini_says_in_its_details_how_long_to_wait():
    detail = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "6.5s"}
    body = {"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED", "details": [detail]}}
    clock = QuickClock()
    clock.stop()
    with serving(Gemini().read) as server:
        server.will(json_reply(body, status=429), Gemini().answer("now"))

        assert model(server, "gemini", Gemini(), clock).complete(ask("x")).text == "now"

    assert clock.paused == 6.5


def test_gemini_blocks_a_prompt_before_it_answers():
    blocked = {**Gemini().part(None), "promptFeedback": {"blockReason": "SAFETY"}}
    reply = Reply(headers={"content-type": "text/event-stream"}, chunks=events(("", blocked)))

    assert isinstance(after(Gemini(), reply, "gemini"), errors.Refused)


def test_gemini_s_newer_embedders_are_told_in_the_text_what_it_is_for():
    asked: list[Any] = []
    with serving(lambda request: asked.append(request.body)) as server:
        server.will(*[json_reply({"embeddings": [{"values": [1.0, 0.0]}]})] * 2)
        embedder = choose_embedder(
            ModelSettings(
                embed_provider="gemini",
                embed_model="gemini-embedding-2",
                embed_base_url=f"http://127.0.0.1:{server.port}",
                embed_api_key=KEY,
            ),
            QuickClock(),
        )
        assert embedder is not None
        embedder.embed(["tea"], "query")
        embedder.embed(["tea"], "document")

    texts = [body["requests"][0]["content"]["parts"][0]["text"] for body in asked]
    assert texts == ["task: search result | query: tea", "title: none | text: tea"]
    assert not any("taskType" in body["requests"][0] for body in asked)


def test_voyage_s_session_reads_no_files_of_the_machine_and_prints_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login other password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setattr(voyageai.util, "VOYAGE_LOG", "debug")
    fake = VoyageEmbeddings()
    with serving(fake.read) as server:
        server.will(fake.answer([[1.0, 0.0]]))
        embedder = choose_embedder(
            ModelSettings(
                embed_provider="voyage", embed_base_url=fake.base_url(server.port), embed_api_key=KEY
            ),
            QuickClock(),
        )
        assert embedder is not None
        # In a thread of its own: the client keeps a session for each.
        thread = threading.Thread(target=embedder.embed, args=(["private text"],))
        thread.start()
        thread.join(60)

        assert [seen.texts for seen in map(fake.read, server.asked)] == [["private text"]]
    assert "private text" not in "".join(capfd.readouterr())


class Limited(OpenAICompatible):
    """A server at home that knows only some ways to ask for a form."""

    def __init__(self, *known: str) -> None:
        self.known = known
        self.forms: list[str] = []

    def schema(self, given: Any) -> Any:
        self.forms.append(given["type"] if given else "text")
        return None

    def answers(self, server: Server, text: str) -> Callable[[Asked], None]:
        def check(asked: Asked) -> None:
            self.read(asked)
            is_known = self.forms[-1] in self.known
            server.will(self.answer(text) if is_known else self.failure(400))

        return check


@pytest.mark.parametrize(
    ("known", "tried"),
    [
        (("json_schema", "json_object", "text"), ["json_schema"]),
        (("json_object", "text"), ["json_schema", "json_object"]),
        (("text",), ["json_schema", "json_object", "text"]),
    ],
)
def test_a_server_that_knows_no_schemas_is_asked_otherwise_and_that_is_remembered(
    known: tuple[str, ...], tried: list[str]
):
    fake = Limited(*known)
    with serving(nothing) as server:
        server.check = fake.answers(server, GOOD)
        found = model(server, "openai_compatible", fake, api_key="")

        for _ in range(2):
            assert found.complete_structured(ask("Which facts?"), FACTS).value["facts"]

        assert fake.forms == [*tried, tried[-1]]
        last = server.asked[-1].body["messages"][-1]["content"]
        assert last.startswith("Which facts?")
        assert ('"minLength":1' in last) == (tried[-1] != "json_schema")


def test_a_server_that_rejects_every_form_has_rejected_the_request():
    fake = Limited()
    with serving(nothing) as server:
        server.check = fake.answers(server, GOOD)
        found = model(server, "openai_compatible", fake, api_key="")

        for _ in range(2):
            with pytest.raises(errors.Rejected):
                found.complete_structured(ask("x"), FACTS)

    # Nothing was learnt from it.
    assert fake.forms == ["json_schema", "json_object", "text"] * 2


def test_thoughts_said_aloud_are_no_part_of_an_answer():
    fake = OpenAICompatible()
    with serving(fake.read) as server:
        server.will(fake.answer(f"<think>\nFacts, facts.\n</think>\n\n{GOOD}"))

        answer = model(server, "openai_compatible", fake, api_key="").complete_structured(ask("x"), FACTS)

    assert answer.repairs == 0


def test_a_key_goes_to_a_server_at_home_only_where_one_is_set(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-environment")
    fake = OpenAICompatible()
    with serving(nothing) as server:
        server.will(fake.answer("a"), fake.answer("b"))

        model(server, "openai_compatible", fake, api_key="").complete(ask("x"))
        model(server, "openai_compatible", fake).complete(ask("x"))

    assert [asked.headers.get("authorization") for asked in server.asked] == [None, f"Bearer {KEY}"]


def test_a_server_that_does_not_count_is_counted_for():
    fake = OpenAICompatible()
    whole = fake.answer("four letters and more")
    uncounted = [chunk for chunk in whole.chunks if b'"usage"' not in chunk]
    with serving(fake.read) as server:
        server.will(Reply(headers=whole.headers, chunks=uncounted))

        used = model(server, "openai_compatible", fake, api_key="").complete(ask("a" * 300)).usage

    assert used.input_tokens >= 100
    assert used.output_tokens >= 7


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 8192 tokens",
        "the request exceeds the available context size",
        "prompt is too long: 9 tokens > 8 maximum",
    ],
)
def test_servers_at_home_say_in_words_that_a_prompt_is_too_long(words: str):
    fake = OpenAICompatible()

    assert isinstance(after(fake, fake.failure(400, words=words), "openai_compatible"), errors.TooLong)


def test_every_error_has_a_code_and_a_sentence_of_its_own():
    kinds = errors.all_errors()

    assert len({kind.code for kind in kinds}) == len(kinds)
    assert all(re.fullmatch(r"model_[a-z_]+", kind.code) for kind in kinds)
    assert len({str(kind()) for kind in kinds}) == len(kinds)
