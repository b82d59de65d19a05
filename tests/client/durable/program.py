"""A program that runs an agent in a durable session and is killed, or stopped, where it is told: `python -m tests.client.durable.program`.

Its model is a script, its tool is real: it appends a line to a file and syncs it. One JSON object on standard input says
what to do; each turn that the program saw committed is a JSON line on standard output.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from client.durable import Agent, AllowOnce, DurableAgentSession, ModelReply, RequestedCall, Tool
from client.durable.agent import Around
from client.durable.directory import identity_of
from client.durable.model import ModelRequest
from client.durable.redaction import redact_with
from client.durable.routes import HttpSession
from client.durable.transport import Transport
from client.settings import ClientSettings
from tests.client.durable.steps import Steps

KEY = b"0" * 32


@dataclass(frozen=True, kw_only=True)
class Orders:
    url: str
    token: str
    session: str
    directory: str
    #: A file that the tool writes.
    diary: str
    prompts: list[str]
    #: Where the program kills itself: a step of the journal, or `run`: in the tool, after it wrote.
    step: str = ""
    after: bool = False
    #: It does not kill itself there: it stands still until somebody lets it go on (SIGCONT).
    stops: bool = False
    renew_seconds: float = 60.0


def settings_of(url: str, token: str) -> ClientSettings:
    return ClientSettings(
        url=url, token=token, token_file="", redaction_key=KEY, state_dir="", config_file=""
    )


def agent_of(diary: Path, in_tool: Callable[[], object] = lambda: None) -> Agent:
    """One call of the tool for each prompt, then an answer."""

    def note(arguments: Mapping[str, Any]) -> str:
        with diary.open("a") as file:
            file.write(arguments["text"] + "\n")
            file.flush()
            os.fsync(file.fileno())
        in_tool()
        return f"wrote {arguments['text']}"

    tool = Tool(
        name="note",
        description="Writes a line.",
        schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        run=note,
        approval="it writes a file",
    )
    return Agent(model=_answer, model_reference="test:echo", tools=(tool,), system_prompt="Note it.")


def _answer(request: ModelRequest) -> ModelReply:
    last = request.messages[-1]
    if last.role.value == "tool":
        return ModelReply(text=f"done: {last.text}")
    return ModelReply(tool_calls=[RequestedCall(name="note", arguments={"text": last.text})])


def main() -> None:
    orders = Orders(**json.loads(sys.stdin.readline()))
    steps = Steps()

    def halt() -> None:
        os.kill(os.getpid(), signal.SIGSTOP if orders.stops else signal.SIGKILL)

    in_tool = halt if orders.step == "run" else lambda: None
    identity = identity_of(orders.directory, os.environ)
    port = HttpSession(Transport(settings_of(orders.url, orders.token)), orders.session, identity)
    around = Around(redact=redact_with(KEY), renew_seconds=orders.renew_seconds)
    session = DurableAgentSession(agent_of(Path(orders.diary), in_tool), identity, steps.of(port), around)
    session.open()
    if orders.step:
        (steps.after if orders.after else steps.before)[orders.step] = halt
    for prompt in orders.prompts:
        result = session.run(prompt, approve=lambda _: AllowOnce())
        said = {"prompt": prompt, "text": result.text, "last": result.last_sequence}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
    session.close()


if __name__ == "__main__":
    main()
