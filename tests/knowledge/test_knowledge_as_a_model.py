"""Knowledge against a plain model of it: whoever says, edits, deletes or distils what, both say the same, and so does the wiki."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from memory_core.commands.knowledge_ageing import prune_versions, tombstone_aged
from memory_core.commands.pages import DeletePage, WritePage
from memory_core.commands.wiki_tasks import StartReindex
from memory_core.domain.command import Refusal
from memory_core.domain.directory import DirectoryId
from memory_core.ids import id_text
from memory_core.store import knowledge
from memory_core.store.knowledge import Entry
from tests.knowledge.learning import ELSEWHERE, HOME, Knowing, in_directory, tombstone, upsert
from tests.wiki.house import House
from tests.wiki.oracle import unexplained

Name = tuple[DirectoryId, str]
NAMES = st.sampled_from([(HOME, "a"), (HOME, "b"), (ELSEWHERE, "a")])
TEXTS = st.sampled_from(["one\n", "two\n", "three\n", "---\nfour: 4\n---\n"])
CONFIDENCES = st.sampled_from([0.0, 0.5, 0.69, 0.7, 0.9, 1.0])
KEPT = 3


@dataclass
class Paper:
    """An entry as it should be."""

    #: Number to text, confidence, and whether it was said by hand.
    said: dict[int, tuple[str, float, bool]] = field(default_factory=dict)
    active: int = 0
    pinned: bool = False
    #: `hand`, `session` or `age`: who took it away.
    gone: str | None = None
    tombstones: int = 0

    @property
    def holds(self) -> tuple[str, float, bool]:
        return self.said[self.active]

    def say(self, text: str, confidence: float, *, by_hand: bool, active: bool = True) -> None:
        number = max(self.said, default=0) + 1
        self.said[number] = (text, confidence, by_hand)
        if active:
            self.active, self.gone = number, None

    def forget(self, who: str) -> None:
        self.gone, self.pinned, self.tombstones = who, False, self.tombstones + 1


class Facts(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.directory = tempfile.TemporaryDirectory(prefix="knowledge-model-")
        self.house = House(Path(self.directory.name) / "house")
        self.knowing = Knowing(self.house.books)
        for number in range(6):
            # So that one page that goes is not most of its project.
            self.house.write_page(f"notes/{number}.md", "text\n")
        self.papers: dict[Name, Paper] = {}
        self.files: dict[Name, bytes] = {}
        self.renames = 0
        self.settle()

    @property
    def known(self) -> list[Name]:
        return [name for name, paper in self.papers.items() if paper.gone is None]

    def entry(self, name: Name) -> Entry:
        found = self.knowing.under(name[1], name[0])
        assert found is not None
        return found

    def ask(self, what: str, name: Name, *given: Any) -> Any:
        """A change of an entry, asked for in its own directory."""
        text = id_text(self.entry(name).id)
        return getattr(self.knowing, what)(text, *given, where=in_directory(name[0]))

    def settle(self) -> None:
        self.house.books.install(self.house.installer, self.house.redact)
        self.house.look_until_still()
        assert unexplained(self.house.books) == []

    # --- by hand ---

    @rule(name=NAMES, text=TEXTS, pin=st.sampled_from([None, True, False]))
    def remember(self, name: Name, text: str, pin: bool | None) -> None:
        paper = self.papers.setdefault(name, Paper())
        is_same = bool(paper.said) and paper.gone is None and paper.holds[0] == text and paper.holds[2]
        unchanged = is_same and pin in (None, paper.pinned)
        where = in_directory(name[0], workspace="default", project="alpha")
        answer = self.knowing.known(name[1], content=text, where=where, pinned=pin)
        assert answer["changed"] != unchanged
        if not unchanged:
            paper.say(text, 1.0, by_hand=True)
            paper.pinned = paper.pinned if pin is None else pin

    @precondition(lambda self: self.papers)
    @rule(data=st.data())
    def activate(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(list(self.papers)))
        paper = self.papers[name]
        number = data.draw(st.sampled_from([*paper.said, max(paper.said) + 1]))
        answer = self.ask("activate", name, number)
        if number not in paper.said:
            assert isinstance(answer, Refusal)
            return
        assert answer["changed"] == (paper.active != number or paper.gone is not None)
        paper.active, paper.gone = number, None

    @precondition(lambda self: self.papers)
    @rule(data=st.data(), pinned=st.booleans())
    def pin(self, data: st.DataObject, pinned: bool) -> None:
        name = data.draw(st.sampled_from(list(self.papers)))
        paper = self.papers[name]
        answer = self.ask("pin", name, pinned)
        assert isinstance(answer, Refusal) == (paper.gone is not None and pinned)
        if paper.gone is None:
            paper.pinned = pinned

    @precondition(lambda self: self.papers)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(list(self.papers)))
        paper = self.papers[name]
        if paper.gone is None:
            self.keep_file(name)
        assert self.ask("forget", name)["changed"] == (paper.gone is None)
        if paper.gone is None:
            paper.forget("hand")

    @precondition(lambda self: self.papers)
    @rule(data=st.data())
    def nobody_else_changes_it(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(list(self.papers)))
        foreign = in_directory(ELSEWHERE if name[0] == HOME else HOME)
        text = id_text(self.entry(name).id)
        for answer in (
            self.knowing.forget(text, where=foreign),
            self.knowing.pin(text, where=foreign),
            self.knowing.activate(text, 1, where=foreign),
        ):
            assert isinstance(answer, Refusal)
            assert answer.code == "not_found"

    # --- by tools ---

    @precondition(lambda self: self.papers)
    @rule(data=st.data(), text=TEXTS)
    def a_tool_writes_the_page(self, data: st.DataObject, text: str) -> None:
        name = data.draw(st.sampled_from(list(self.papers)))
        paper, path = self.papers[name], self.entry(name).page_path
        # What an agent sends may begin with a front matter of its own.
        assume(not text.startswith("---"))
        assert path is not None
        answer = self.house.books.apply(WritePage(workspace="default", project="alpha", path=path, body=text))
        assert not isinstance(answer, Refusal), answer
        if paper.gone is not None:
            paper.pinned = False
        if paper.holds[0] != text:
            paper.say(text, 1.0, by_hand=True)
        paper.gone = None

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def a_tool_deletes_the_page(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.known))
        path = self.entry(name).page_path
        assert path is not None
        self.keep_file(name)
        self.house.books.apply(DeletePage(workspace="default", project="alpha", path=path))
        self.papers[name].forget("hand")

    # --- in the files ---

    def keep_file(self, name: Name) -> None:
        """The file as it is now, for one who puts it back."""
        self.settle()
        self.files[name] = self.file(name).read_bytes()

    def file(self, name: Name) -> Path:
        path = self.entry(name).page_path
        assert path is not None
        return self.house.file(path)

    @precondition(lambda self: self.known)
    @rule(data=st.data(), text=TEXTS, meanwhile=st.sampled_from([None, "one\n", "five\n"]))
    def somebody_edits_the_file(self, data: st.DataObject, text: str, meanwhile: str | None) -> None:
        """`meanwhile` is remembered before anybody has seen the edit."""
        name = data.draw(st.sampled_from(self.known))
        self.settle()
        paper, file = self.papers[name], self.file(name)
        old = paper.holds[0]
        assume(text != old)
        whole = file.read_text()
        assert whole.endswith(old)
        file.write_text(whole.removesuffix(old) + text)
        if meanwhile is not None:
            self.remember(name, meanwhile, None)
        self.settle()
        if paper.holds[0] != text:
            paper.say(text, 1.0, by_hand=True)

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def somebody_deletes_the_file(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.known))
        self.keep_file(name)
        self.file(name).unlink()
        self.settle()
        self.papers[name].forget("hand")

    @precondition(lambda self: any(self.papers[name].gone for name in self.files))
    @rule(data=st.data())
    def somebody_puts_the_file_back(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from([each for each in self.files if self.papers[each].gone]))
        self.settle()
        paper, kept = self.papers[name], self.files.pop(name)
        assume(kept.decode().endswith(paper.holds[0]))
        file = self.file(name)
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(kept)
        self.settle()
        paper.gone, paper.pinned = None, b"pinned: true" in kept

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def somebody_renames_the_file(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.known))
        self.settle()
        self.renames += 1
        self.file(name).rename(self.house.file(f"knowledge/renamed-{self.renames}.md"))
        self.settle()
        assert self.entry(name).page_path == f"knowledge/renamed-{self.renames}.md"

    # --- by themselves ---

    @rule(name=NAMES, text=TEXTS, confidence=CONFIDENCES)
    def a_session_says(self, name: Name, text: str, confidence: float) -> None:
        source = self.knowing.job(self.knowing.session(name[0]), name[0])
        (done,) = self.knowing.distil(upsert(name[1], text, confidence), source=source)
        (again,) = self.knowing.distil(upsert(name[1], text, confidence), source=source)
        assert (again.action, again.version) == (done.action, done.version)
        paper = self.papers.get(name)
        if paper is None:
            paper = self.papers[name] = Paper()
            paper.say(text, confidence, by_hand=False)
            return
        held, sure, by_hand = paper.holds
        was_said = any(each[0] == text for each in paper.said.values())
        if paper.gone is not None:
            if not (paper.gone == "hand" and was_said):
                paper.say(text, confidence, by_hand=False)
            return
        if text == held and confidence <= sure:
            return
        gives_way = confidence >= sure if paper.pinned else True
        if by_hand:
            gives_way = not paper.pinned and confidence >= 0.7
        if gives_way or not was_said:
            paper.say(text, confidence, by_hand=False, active=gives_way)

    @rule(name=NAMES, confidence=CONFIDENCES)
    def a_session_takes_back(self, name: Name, confidence: float) -> None:
        source = self.knowing.job(self.knowing.session(name[0]), name[0])
        paper = self.papers.get(name)
        takes = (
            paper is not None
            and paper.gone is None
            and not paper.pinned
            and (not paper.holds[2] or confidence >= 0.7)
        )
        if takes:
            self.keep_file(name)
        (done,) = self.knowing.distil(tombstone(name[1], confidence), source=source)
        assert (done.action == "tombstoned") == takes
        if paper is not None and takes:
            paper.forget("session")

    @rule()
    def everything_grows_old(self) -> None:
        self.settle()
        for name in self.known:
            self.files[name] = self.file(name).read_bytes()
        now = self.house.books.clock.now_us()
        self.house.books.transact(lambda tx: tombstone_aged(tx, before=now, limit=100))
        for name in self.known:
            if not self.papers[name].pinned:
                self.papers[name].forget("age")

    @rule()
    def versions_are_pruned(self) -> None:
        self.house.books.transact(lambda tx: prune_versions(tx, kept=KEPT, limit=1_000))
        for paper in self.papers.values():
            newest = sorted(paper.said)[-KEPT:]
            if not paper.pinned:
                paper.said = {n: each for n, each in paper.said.items() if n in newest or n == paper.active}

    @rule()
    def the_files_are_looked_at(self) -> None:
        self.settle()

    # --- what is always true ---

    @invariant()
    def both_say_the_same(self) -> None:
        if not hasattr(self, "papers"):
            return
        assert self.house.books.query("SELECT count(*) AS n FROM knowledge") == [{"n": len(self.papers)}]
        for name, paper in self.papers.items():
            entry = self.entry(name)
            text = id_text(entry.id)
            assert {n: (c, s, o == "manual") for n, c, s, o in self.knowing.versions(text)} == paper.said
            assert (entry.version, entry.pinned) == (paper.active, paper.pinned)
            assert entry.is_forgotten == (paper.gone is not None) != entry.page_is_live
            assert len(self.knowing.tombstones(text)) == paper.tombstones
            if paper.gone is None:
                assert self.knowing.page(text)[1] == paper.holds[0]

    def teardown(self) -> None:
        if not hasattr(self, "papers"):
            return
        self.settle()
        anew = self.rebuilt()
        try:
            with anew.books.database.snapshot() as reading:
                for name in self.papers:
                    was, now = self.entry(name), knowledge.by_identity(reading, name[0], name[1])
                    assert (now is None) == was.is_forgotten
                    if now is not None:
                        for what in ("id", "content", "confidence", "origin", "pinned", "page_path"):
                            assert getattr(now, what) == getattr(was, what), what
        finally:
            anew.close()
            self.house.close()
            self.directory.cleanup()

    def rebuilt(self) -> House:
        """Another install that has nothing but the files."""
        directory = Path(self.directory.name) / "anew"
        directory.mkdir()
        shutil.copytree(self.house.root, directory / "wiki")
        anew = House(directory)
        anew.books.apply(StartReindex())
        anew.look_until_still()
        return anew


TestFacts = Facts.TestCase
TestFacts.settings = settings(
    max_examples=20,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
