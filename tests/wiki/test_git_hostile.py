"""Nothing decides what git does but our own arguments: no configuration, hook, filter or variable of anybody else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from memory_core.errors import Invalid, NotFound
from memory_core.wiki.git import Git, GitRefused, revision
from memory_core.wiki.git_repair import is_sound
from memory_core.wiki.git_repository import Repository
from tests.wiki.histories import new_repository, person, put

HOOKS = ("post-commit", "pre-commit", "reference-transaction", "post-index-change", "pre-auto-gc")
ATTRIBUTES = "* filter=evil diff=evil text eol=crlf\n"


def hostile(directory: Path) -> tuple[str, Path]:
    """A command that leaves a trace, and the trace."""
    trace = directory / "trace"
    script = directory / "evil.sh"
    script.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{trace}'\ncat\nexit 0\n")
    script.chmod(0o700)
    return str(script), trace


def settings_of(evil: str, directory: Path) -> dict[str, str]:
    """Configuration that would start `evil`, or bend what is committed."""
    commands = (
        "core.fsmonitor core.pager core.editor core.sshCommand core.askPass filter.evil.clean filter.evil.smudge"
        " filter.evil.process diff.external diff.evil.textconv gpg.program gc.recentObjectsHook"
        " core.alternateRefsCommand"
    )
    return {
        **dict.fromkeys(commands.split(), evil),
        "core.hooksPath": str(directory),
        "credential.helper": f"!{evil}",
        "alias.fast-import": f"!{evil}",
        "alias.update-ref": f"!{evil}",
        "commit.gpgSign": "true",
        "log.showSignature": "true",
        "core.attributesFile": str(directory / "attributes"),
        "core.autocrlf": "true",
        "core.worktree": str(directory / "elsewhere"),
        "gc.auto": "1",
        "user.name": "Mallory",
    }


def configure(file: Path, settings: dict[str, str]) -> None:
    for name, value in settings.items():
        subprocess.run(["git", "config", "--file", str(file), name, value], check=True)


def bend_environment(monkeypatch: pytest.MonkeyPatch, evil: str, directory: Path) -> None:
    for name, value in {
        "HOME": str(directory),
        "XDG_CONFIG_HOME": str(directory),
        "GIT_CONFIG_GLOBAL": str(directory / ".gitconfig"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": evil,
        "GIT_DIR": str(directory / "other.git"),
        "GIT_WORK_TREE": str(directory / "elsewhere"),
        "GIT_INDEX_FILE": str(directory / "other-index"),
        "GIT_OBJECT_DIRECTORY": str(directory / "objects"),
        "GIT_TEMPLATE_DIR": str(directory),
        "GIT_TRACE": str(directory / "traced"),
        "GIT_AUTHOR_NAME": "Mallory",
        "GIT_COMMITTER_DATE": "2001-01-01T00:00:00Z",
        "GIT_DEFAULT_HASH": "sha256",
        "GIT_NAMESPACE": "other",
        **dict.fromkeys(("GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR", "GIT_SSH_COMMAND"), evil),
    }.items():
        monkeypatch.setenv(name, value)


def use_everything(repository: Repository) -> bytes:
    put(repository, a__b__c="one\ntwo\n")
    put(repository, a__b__c="one\nthree\n")
    repository.log(10, "a/b/c.md")
    repository.find_batch("one")
    is_sound(repository)
    repository.git.run("gc", "--quiet")
    return repository.content(repository.head() or "", "a/b/c.md", 100)


@pytest.mark.parametrize("where", ["machine", "repository"])
def test_configuration_hooks_filters_and_environment_of_others_have_no_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
):
    evil, trace = hostile(tmp_path)
    for name in HOOKS:
        (tmp_path / name).symlink_to(evil)
    (tmp_path / "attributes").write_text(ATTRIBUTES)
    settings = settings_of(evil, tmp_path)
    before = {path.name for path in tmp_path.iterdir()} | {"data", ".gitconfig"}
    if where == "machine":
        configure(tmp_path / ".gitconfig", settings)
        bend_environment(monkeypatch, evil, tmp_path)
    repository = new_repository(tmp_path / "data")
    if where == "repository":
        git = repository.git.directory
        configure(git / "config", settings)
        (git / "hooks").mkdir(exist_ok=True)
        for name in HOOKS:
            (git / "hooks" / name).symlink_to(evil)
        (git / "info" / "attributes").write_text(ATTRIBUTES)
        (repository.git.root / ".gitattributes").write_text(ATTRIBUTES)

    content = use_everything(repository)

    monkeypatch.undo()
    assert content == b"one\nthree\n"
    assert not trace.exists(), trace.read_text()
    assert {path.name for path in tmp_path.iterdir()} <= before
    assert [entry.author for entry in repository.log(5)] == ["memoryd", "memoryd"]
    assert repository.log(1)[0].at > 1_700_000_000


def test_what_is_called_hostile_here_is_started_by_a_git_that_listens(tmp_path: Path):
    evil, trace = hostile(tmp_path)
    repository = new_repository(tmp_path / "data")
    put(repository, a__b__c="x")
    configure(repository.git.directory / "config", {"core.fsmonitor": evil})

    person(repository.git.root, "status", check=False)

    assert trace.exists()


@pytest.mark.parametrize(
    "text",
    ["HEAD", "main", "--upload-pack=x", "-h", "abc", "", "a" * 65, "HEAD~1", "0123:x", "01 23", "éé11"],
)
def test_only_plain_hexadecimal_is_a_revision(text: str):
    with pytest.raises(Invalid):
        revision(text)


def test_a_git_file_or_link_that_leads_elsewhere_is_not_followed(tmp_path: Path):
    other = new_repository(tmp_path / "other")
    linked, named = tmp_path / "linked", tmp_path / "named"
    linked.mkdir()
    named.mkdir()
    (linked / ".git").symlink_to(other.git.directory)
    (named / ".git").write_text(f"gitdir: {other.git.directory}\n")

    for root in (linked, named):
        with pytest.raises(GitRefused):
            Git(root, tmp_path).is_there()
    assert other.head() is None


def test_links_submodules_and_nested_repositories_in_the_tree_are_not_entered(tmp_path: Path):
    repository = new_repository(tmp_path / "data")
    root = repository.git.root
    put(repository, a__b__c="x")
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "linked").symlink_to(outside)
    nested = new_repository(tmp_path / "n")
    put(nested, z__z__z="z")
    (root / "nested").mkdir()
    subprocess.run(["cp", "-r", str(nested.git.directory), str(root / "nested" / ".git")], check=True)
    person(root, "add", "linked", "nested")
    person(root, "commit", "-q", "-m", "odd things")

    put(repository, a__b__c="y")

    kinds = person(root, "ls-tree", "HEAD").split("\n")
    assert {line.split()[0] for line in kinds if line} == {"040000", "120000", "160000"}
    for name in ("linked/x.md", "nested/x.md", "linked"):
        with pytest.raises((NotFound, Invalid)):
            repository.content(repository.head() or "", name, 100)
    assert list(outside.iterdir()) == []
