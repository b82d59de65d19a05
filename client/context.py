"""How each client takes recalled context from a hook's standard output. Light: for the shim."""

from __future__ import annotations

import json

#: What a client expects on standard output when there is nothing to say; others are given `{}`.
_NOTHING = {"claude-code": "", "codex": ""}
_STARTS = frozenset(("sessionstart",))
#: Prompts whose hook may add context; Cursor's may only block.
_PROMPTS = frozenset(("userpromptsubmit", "beforeagent"))


def is_start(event: str) -> bool:
    return _folded(event) in _STARTS


def is_prompt(event: str) -> bool:
    """Whether this event is a prompt to which its client lets a hook add something."""
    return _folded(event) in _PROMPTS


def answer(client: str, event: str, text: str) -> str:
    """The JSON that puts `text` before the agent at this event."""
    if client == "cursor":
        return json.dumps({"additional_context": text})
    name = (
        "SessionStart" if is_start(event) else "BeforeAgent" if client == "gemini-cli" else "UserPromptSubmit"
    )
    return json.dumps({"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}})


def nothing(client: str) -> str:
    return _NOTHING.get(client, "{}")


def _folded(event: str) -> str:
    return event.replace("-", "").replace("_", "").lower()
