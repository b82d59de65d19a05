"""Which agent really runs a hook: some load the hook files of others as well as their own. Light: for the shim."""

from __future__ import annotations

import os

_HOST_VARIABLES = {
    "GROK_HOOK_EVENT": "grok",
    "CURSOR_VERSION": "cursor",
    "COPILOT_CLI": "copilot",
    "CRUSH": "crush",
}
#: Where a host keeps hooks of its own, below the home, and a field that only its payloads have.
_BORROWERS = {"cursor": (".cursor/hooks.json", ("cursor_version", "conversation_id"))}
_OURS = b"/memoryd/bin/memoryd-hook"


def host_of(environ: dict[str, str]) -> str:
    """The agent that the environment names; empty when nothing says so."""
    return next((host for name, host in _HOST_VARIABLES.items() if environ.get(name)), "")


def borrower_of(client: str, payload: dict[str, object], environ: dict[str, str]) -> str:
    """The host that runs a hook installed for `client`, or empty text.

    Its variable alone is no proof: a terminal inside the host hands it on to whatever runs there.
    """
    host = host_of(environ)
    _, fields = _BORROWERS.get(host, ("", ()))
    return host if host != client and any(name in payload for name in fields) else ""


def has_own_hooks(host: str, home: str) -> bool:
    """Whether memoryd is installed into the host itself, so that the event comes that way too."""
    path, _ = _BORROWERS[host]
    try:
        with open(os.path.join(home, path), "rb") as file:
            return _OURS in file.read()
    except OSError:
        return False
