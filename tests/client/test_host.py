"""Which agent really runs a hook."""

from __future__ import annotations

from client.host import borrower_of, has_own_hooks, host_of
from client.installers import Place
from tests.client.installing import install, uninstall
from tests.payloads import sample

CURSOR = {"CURSOR_VERSION": "3.4.1"}


def test_the_host_that_borrows_anothers_hooks_is_named():
    assert host_of({"GROK_HOOK_EVENT": "Stop"}) == "grok"
    assert host_of({}) == ""


def test_a_payload_of_cursor_in_a_hook_of_claude_is_cursors():
    assert borrower_of("claude-code", sample("cursor", "stop"), CURSOR) == "cursor"
    assert borrower_of("cursor", sample("cursor", "stop"), CURSOR) == ""


def test_claude_code_in_a_terminal_of_cursor_is_claude_code():
    assert borrower_of("claude-code", sample("claude-code", "Stop"), CURSOR) == ""


def test_hooks_of_its_own_are_seen_in_its_file(place: Place):
    assert not has_own_hooks("cursor", str(place.home))
    install(place, "cursor")
    assert has_own_hooks("cursor", str(place.home))
    uninstall(place, "cursor")
    assert not has_own_hooks("cursor", str(place.home))
