"""What memoryd prints of a page or project is taken back."""

from __future__ import annotations

import pytest

from client.reference import placed, scoped
from client.server import with_marker
from memory_core.errors import Invalid


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ((None, None), (None, None)),
        ((None, "shop"), (None, "shop")),
        ((None, "default/shop"), ("default", "shop")),
        (("default", "default/shop"), ("default", "shop")),
    ],
)
def test_a_project_is_taken_with_its_workspace(given: tuple[str | None, ...], found: tuple[str | None, ...]):
    assert scoped(*given) == found


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (("default/shop:notes/y.md", None, None), ("notes/y.md", "default", "shop")),
        (("default/shop:notes/y.md", None, "shop"), ("notes/y.md", "default", "shop")),
        (("default/shop:notes/y.md", None, "default/shop"), ("notes/y.md", "default", "shop")),
        (("notes/y.md", None, "default/shop"), ("notes/y.md", "default", "shop")),
        (("notes/y.md", None, None), ("notes/y.md", None, None)),
        (("default/shop:", None, None), ("default/shop:", None, None)),
    ],
)
def test_a_page_is_taken_as_search_prints_it(
    given: tuple[str, str | None, str | None], found: tuple[str, str | None, str | None]
):
    assert placed(*given) == found


@pytest.mark.parametrize(
    ("path", "workspace", "project"),
    [
        ("default/shop:y.md", None, "other"),
        ("default/shop:y.md", "team", None),
        ("y.md", "team", "default/shop"),
    ],
)
def test_two_different_places_are_refused(path: str, workspace: str | None, project: str | None):
    with pytest.raises(Invalid, match="default"):
        placed(path, workspace, project)


def test_every_command_of_a_server_takes_them():
    given = {"path": "default/shop:notes/y.md", "workspace": None, "project": None}

    assert with_marker(given) == {"path": "notes/y.md", "workspace": "default", "project": "shop"}
