"""Which project an event lands in."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from memory_core.commands.capture import RecordObservation
from memory_core.domain.capture import capped
from tests.factories import Store, database, event


@pytest.fixture
def store(tmp_path: Path) -> Generator[Store]:
    made = database(tmp_path)
    yield made
    made.close()


def lands(store: Store, cwd: str | None, session: str = "s1", **scope: str) -> str:
    """`workspace/project` of the observation that an event in `cwd` becomes."""
    what = event(cwd=cwd, session_key=session)
    store.apply(RecordObservation(event=capped(what), source="claude-code/user", **scope))
    [row] = store.all(
        "SELECT w.name || '/' || p.name AS scope FROM observations o JOIN projects p ON p.id = o.project_id"
        " JOIN workspaces w ON w.id = p.workspace_id ORDER BY o.seq DESC LIMIT 1"
    )
    return row["scope"]


def test_a_directory_gives_its_name(store: Store):
    assert lands(store, "/srv/repo") == "default/repo"


def test_without_project_and_directory_it_is_the_default(store: Store):
    assert lands(store, None) == "default/scratch"


@pytest.mark.parametrize(
    "cwd", ["/", "/home/ada", "/Users/ada", "/root", "C:\\Users\\ada", "/data/people/ada"]
)
def test_a_home_or_the_root_is_no_project_and_swallows_nothing(store: Store, cwd: str):
    assert lands(store, cwd, "s1", repo_path=cwd, home="/data/people/ada") == "default/scratch"

    assert lands(store, cwd.rstrip("/\\") + "/app", "s2", home="/data/people/ada") == "default/app"
    assert lands(store, "/data/people/ada/other", "s2", home="/data/people/ada") == "default/other"


def test_a_session_that_began_in_a_home_follows_its_events_out_of_it(store: Store):
    lands(store, "/home/ada", "s1")

    assert lands(store, "/home/ada/app", "s1") == "default/app"


def test_a_subfolder_stays_in_its_sessions_project(store: Store):
    lands(store, "/srv/repo", "s1")

    assert lands(store, "/srv/repo/api/tests", "s1") == "default/repo"
    assert lands(store, None, "s1") == "default/repo"


def test_a_neighbour_with_the_same_beginning_is_another_project(store: Store):
    lands(store, "/srv/repo", "s1")

    assert lands(store, "/srv/repo-other", "s1") == "default/repo-other"


def test_dots_cannot_lead_out_of_a_sessions_tree(store: Store):
    lands(store, "/srv/repo", "s1")

    assert lands(store, "/srv/repo/../secret", "s1") == "default/secret"


def test_a_subfolder_in_a_new_session_belongs_to_the_known_repository_above(store: Store):
    lands(store, "/srv/repo", "s1", repo_path="/srv/repo")

    assert lands(store, "/srv/repo/api", "s2") == "default/repo"


def test_the_longest_known_repository_wins(store: Store):
    lands(store, "/srv/mono", "s1", repo_path="/srv/mono")
    lands(store, "/srv/mono/vendor/lib", "s2", project="lib", repo_path="/srv/mono/vendor/lib")

    assert lands(store, "/srv/mono/vendor/lib/src", "s3") == "default/lib"
    assert lands(store, "/srv/mono/vendor", "s4") == "default/mono"


def test_a_root_is_noted_only_by_an_event_in_it(store: Store):
    lands(store, "/srv/mono/api", "s1", project="api", repo_path="/srv/mono")

    assert store.all("SELECT repo_path FROM projects") == [{"repo_path": None}]


def test_a_named_project_wins_over_everything(store: Store):
    lands(store, "/srv/repo", "s1", repo_path="/srv/repo")

    assert lands(store, "/srv/repo", "s1", project="other", workspace="team") == "team/other"


def test_the_global_project_takes_no_captures(store: Store):
    assert lands(store, "/srv/repo", project="_global") == "default/scratch"


def test_repo_root_strategy_takes_the_root_that_the_client_found(store: Store):
    worktree = lands(store, "/srv/trees/fix-1", "s1", project_strategy="repo-root", repo_path="/srv/repo")

    assert worktree == "default/repo"
    assert lands(store, "/srv/repo/api", "s2") == "default/repo"


@pytest.mark.parametrize(
    ("cwd", "name"),
    [
        ("C:\\code\\My App\\", "my-app"),
        ("\\\\?\\c:\\code\\My App", "my-app"),
        ("/srv/My App", "my-app"),
        ("/srv/Café", "cafe"),
        ("/srv/.dotfiles", "dotfiles"),
        ("/srv/repo///", "repo"),
        ("/srv/" + "x" * 300, "x" * 64),
    ],
)
def test_names_are_made_valid(store: Store, cwd: str, name: str):
    assert lands(store, cwd) == f"default/{name}"


def test_names_of_which_nothing_is_left_stay_apart(store: Store):
    names = {lands(store, f"/srv/{name}", name) for name in ("проект", "計画", "🙂")}

    assert len(names) == 3


def test_windows_and_posix_spellings_of_a_tree_are_one(store: Store):
    lands(store, "C:\\code\\app", "s1", repo_path="c:/code/app/")

    assert lands(store, "c:/code/app/src", "s2") == "default/app"


def test_macos_aliases_of_one_directory_are_one(store: Store):
    lands(store, "/private/var/x/app", "s1", repo_path="/private/var/x/app")

    assert lands(store, "/var/x/app/src", "s2") == "default/app"


def test_worktrees_and_projects_are_not_shared_between_workspaces(store: Store):
    lands(store, "/srv/repo", "s1", repo_path="/srv/repo")

    assert lands(store, "/srv/repo/api", "s2", workspace="team") == "team/api"
