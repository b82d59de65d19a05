"""What a tool's name and input say by themselves: its family, and the files that it names. Light: the shim uses it too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

_FILE = frozenset(
    [
        "read",
        "write",
        "edit",
        "apply_patch",
        "notebookedit",
        "notebook_edit",
        "create_file",
        "delete_file",
        "rename_file",
        "move_file",
        "multi_edit",
        "multiedit",
        "replace",
        "replace_all",
        "view_file",
        "replace_file_content",
        "multi_replace_file_content",
        "write_to_file",
        "read_file",
        "write_file",
        "patch",
        "notebookread",
        "read_many_files",
        "strreplace",
        "search_replace",
        "edit_file",
        "delete",
    ]
)
_SEARCH = frozenset(
    [
        "search",
        "grep",
        "glob",
        "find",
        "list",
        "ls",
        "list_files",
        "read_dir",
        "list_dir",
        "grep_search",
        "search_files",
        "list_directory",
        "search_file_content",
        "codebase_search",
        "semanticsearch",
    ]
)
_NON_FILE = frozenset(
    [
        "bash",
        "shell",
        "execute",
        "run_command",
        "run_shell_command",
        "web_search",
        "google_web_search",
        "web_fetch",
        "terminal",
        "websearch",
        "webfetch",
    ]
)

_PATCHED_FILE = re.compile(
    r"^\*\*\* (?:Add File|Update File|Delete File|Move to): ([^\n]{1,4096})$", re.MULTILINE
)
_PATH_FIELDS = (
    "file_path",
    "filePath",
    "path",
    "absolute_path",
    "AbsolutePath",
    "notebook_path",
    "TargetFile",
    "paths",
    "files",
)
_NESTED_FIELDS = ("edits", "replacements")
#: Words in the names of file tools that change what they are given.
_CHANGES = re.compile("write|edit|patch|create|delete|rename|move|replace", re.IGNORECASE)


def family_of(tool_name: str) -> str:
    """`file`, `search-list`, `non-file` or `unknown`."""
    name = tool_name.lower()
    for family, names in (("file", _FILE), ("search-list", _SEARCH), ("non-file", _NON_FILE)):
        if name in names:
            return family
    return "unknown"


def changes_files(tool_name: str) -> bool:
    """Whether a file tool changes the files that it names."""
    return _CHANGES.search(tool_name) is not None


def is_patch(tool_name: str) -> bool:
    """Whether the tool's one argument is a patch, which names its files inside."""
    return tool_name.lower() in ("apply_patch", "patch")


def named_paths(tool_name: str, arguments: Mapping[str, Any]) -> list[str]:
    """The files that an input names, each once, in its order."""
    found = dict.fromkeys(_path_values(arguments))
    if is_patch(tool_name):
        body = arguments.get("command", arguments.get("input", arguments.get("patch")))
        if isinstance(body, str):
            found.update(dict.fromkeys(match.strip() for match in _PATCHED_FILE.findall(body)))
    return list(found)


def _path_values(arguments: Mapping[str, Any]) -> Iterator[str]:
    for name in _PATH_FIELDS:
        if name not in arguments:
            continue
        value = arguments[name]
        values = cast("list[Any]", value) if isinstance(value, list) else [value]
        yield from (item for item in values if isinstance(item, str) and item)
    for name in _NESTED_FIELDS:
        entries = arguments.get(name)
        if isinstance(entries, list):
            for entry in cast("list[Any]", entries):
                if isinstance(entry, dict):
                    yield from _path_values(cast("Mapping[str, Any]", entry))
