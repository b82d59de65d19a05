"""A rewrite changes what has to change in a front matter, and not one other character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.domain.front_matter import WRITTEN_KEYS, PageFacts, facts_from
from memory_core.domain.page import Tier
from memory_core.wiki import front_matter
from memory_core.wiki.front_matter import FrontMatter

FACTS = PageFacts(title="New", tier=Tier.SEMANTIC)


def head_of(text: str) -> FrontMatter:
    return front_matter.read(f"---\n{text}---\n")


def rewritten(head: str, facts: PageFacts = FACTS, **more: str) -> str:
    content, body_start = front_matter.render(facts, "body", older=head_of(head), **more)
    assert front_matter.read(content).body_start == body_start
    return content.removesuffix("body").removeprefix("---\n").removesuffix("---\n")


def test_a_key_that_says_so_already_stays_as_it_is_written():
    head = "title: 'New'   # mine\ntier: \"Semantic\"\ntags:\n- a   # why\n# between\n- b\npinned: no\n"

    assert rewritten(head, PageFacts(title="New", tier=Tier.SEMANTIC, tags=("a", "b"))) == head


def test_a_key_that_says_something_else_is_written_anew_at_its_place():
    head = "# first\nx: 1\n\ntags:\n- a\n# between\n- b\n# behind\n\ny: 2\n"

    assert rewritten(head, PageFacts(title="T", tier=Tier.WORKING, tags=("c",))) == (
        "# first\nx: 1\n\ntags: [c]\n# behind\n\ny: 2\ntitle: T\ntier: working\n"
    )


def test_what_is_not_true_any_more_goes():
    head = "pinned: true\ntags: [a]\nexpires_at: 2031-05-01\nkind: decision\nx: 1\n"

    assert rewritten(head, implied_kind="note") == "x: 1\ntitle: New\ntier: semantic\n"


def test_a_kind_that_only_repeats_the_path_may_stay_and_is_not_added():
    assert "kind: note" in rewritten("kind: note\n", implied_kind="note")
    assert "kind" not in rewritten("", implied_kind="note")


@pytest.mark.parametrize(
    "unknown",
    [
        "aliases: [one, 'two']   # mine\n",
        "cover: >-\n  folded\n  text\n\n",
        "script: |\n  title: not this\n  # nor this\n\n  tags: no\n",
        "quoted: \"two\n\n  lines\"\n",
        "odd: {a: 1,\ntitle: 2}\n",
        "'quoted key': x\n",
        "? complex\n: value\n",
        "empty:\n",
        "date: 2031-05-01\n",
        "not-a-date: 2031-13-45\n",
        "12: number\n",
        "yes: no\n",
        "\u65e5\u672c: \u8a9e\n",
        "tail: x # c\n# end\n\n\n",
        "a: &anchor 1\nb: *anchor\n",
        "a: !custom x\n",
        "<<: {m: 1}\n",
        "a:\n  <<: {m: 1}\n",
        "x: 1\nx: 2\n",
    ],
)  # fmt: skip
def test_the_lines_of_every_other_key_stay(unknown: str):
    content = rewritten(f"first: 1\n{unknown}title: Old\nlast: 1\n")

    assert content == f"first: 1\n{unknown}title: New\nlast: 1\ntier: semantic\n"


@pytest.mark.parametrize(
    ("head", "says"),
    [
        ("a: &x 1\n", "a: anchors"),
        ("b: 1\na: *x\n", "undefined alias"),
        ("a: !!python/name:os.system\n", "a: tags"),
        ("<<: {m: 1}\n", "<<: merge keys"),
        ("a: [{<<: {m: 1}}]\n", "a: merge keys"),
        ("a: 2031-13-45\n", "a: cannot be read"),
        ("? {a: 1}\n: x\nb: !t 1\n", "b: tags"),
    ],
)  # fmt: skip
def test_what_is_refused_is_named_and_the_page_can_be_read(head: str, says: str):
    read = front_matter.read(f"---\n{head}title: Mine\n---\nbody")

    assert says in (read.problem or "")
    assert "undefined" in says or read.values["title"] == "Mine"
    assert read.body_start == len(f"---\n{head}title: Mine\n---\n")


def test_an_anchor_whose_key_is_rewritten_takes_nothing_with_it():
    content = rewritten("title: &t Old\nother: *t\nx: 1\n")

    assert content == "# title: &t Old\n# other: *t\nx: 1\ntitle: New\ntier: semantic\n"


def test_a_head_in_one_piece_keeps_its_values():
    content = rewritten("{a: [1, 2], title: Old, tags: [x]}\n", PageFacts(title="New", tier=Tier.WORKING))

    assert content == "a:\n- 1\n- 2\ntitle: New\ntier: working\n"


def test_a_head_that_nobody_can_read_stays_as_comments():
    assert rewritten("a: [1\nb: 2\n") == "# a: [1\n# b: 2\ntitle: New\ntier: semantic\n"


def test_an_indented_head_stays_indented():
    assert rewritten("  x: 1\n  title: Old\n") == "  x: 1\n  title: New\n  tier: semantic\n"


def test_lines_that_end_as_on_windows_go_on_so():
    content, _ = front_matter.render(FACTS, "body", older=head_of("x: 1\r\ntitle: Old\r\n"))

    assert content == "---\r\nx: 1\r\ntitle: New\r\ntier: semantic\r\n---\r\nbody"


def test_a_newer_head_changes_what_it_says_and_keeps_the_rest():
    content, _ = front_matter.render(
        FACTS,
        "",
        older=head_of("a: 1 # one\nb: 'two'\nc: 3\n"),
        head=head_of('b: "two"\nc: 4\nd: 5\ntitle: Mine\n'),
    )

    assert content == "---\na: 1 # one\nb: 'two'\nc: 4\nd: 5\ntitle: New\ntier: semantic\n---\n"


def test_of_a_key_that_stands_twice_the_last_one_counts():
    assert facts_from(front_matter.read("---\ntitle: A\ntitle: B\n---\n").values)[0].title == "B"
    assert rewritten("title: A\ntitle: B\n") == "title: New\ntier: semantic\n"
    assert rewritten("title: A\ntitle: New\n") == "title: New\ntier: semantic\n"


LINES = [
    "# comment\n", "\n", "a: 1\n", "b:\n- x\n# in\n- y\n", "c: |\n  title: no\n\n", "title: Old\n", "'title': Quoted\n", "tags:\n- t\n",
    "tags: [t, u]\n", "pinned: yes\n", "tier: eternal\n", "kind: decision\n", "expires_at: 2031-05-01\n", "expires_at: never\n",
    "e: {f: 1,\ng: 2}\n", "aliases: []\n", "h: &i 1\n", "j: !t x\n", "  k: deep\n", "l: [1\n", "- m\n", "n: \"o\n", "...\n", "é: ü\n",
]  # fmt: skip


@given(
    st.lists(st.sampled_from(LINES), max_size=8).map("".join),
    st.lists(st.sampled_from(LINES), max_size=3).map("".join),
    st.booleans(),
    st.sampled_from([(), ("t",), ("t", "u"), ("new one",)]),
)
def test_any_heads_are_joined_without_loss(older: str, newer: str, pinned: bool, tags: tuple[str, ...]):
    facts = PageFacts(title="Old", tier=Tier.EPISODIC, tags=tags, pinned=pinned)
    before = [front_matter.read(f"---\n{head}---\n") for head in (older, newer)]
    content, body_start = front_matter.render(facts, "body", older=before[0], head=before[1])
    read = front_matter.read(content)
    again, problems = facts_from(read.values)

    assert content[body_start:] == "body"
    assert read.body_start == body_start
    assert problems == ()
    assert (again.title, again.tier, again.tags or (), bool(again.pinned)) == (
        "Old",
        "episodic",
        tags,
        pinned,
    )
    expected = {**before[0].values, **before[1].values}
    assert {k: v for k, v in read.values.items() if k not in WRITTEN_KEYS} == {
        k: v for k, v in expected.items() if k not in WRITTEN_KEYS
    }
    assert front_matter.render(facts, "body", older=read)[0] == content


def test_entities_slot_kind_and_author_are_read_leniently():
    facts, problems = facts_from(
        {
            "entities": [" Redis  Stream ", "redis stream", 7],
            "slot_kind": "State",
            "last_modified_by": {"name": "Ada"},
        }
    )

    assert (facts.entities, facts.slot_kind, facts.last_modified_by) == (
        ("redis stream", "7"),
        "state",
        "Ada",
    )
    assert problems == ()


@pytest.mark.parametrize(
    "values",
    [
        {"entities": "one, two"},
        {"entities": [str(number) for number in range(11)]},
        {"entities": ["x" * 65]},
        {"entities": ["a\x00b"]},
        {"slot_kind": "other"},
    ],
)
def test_entities_and_slot_kinds_that_are_none_are_named(values: dict[str, object]):
    facts, problems = facts_from(values)

    assert facts == PageFacts()
    assert len(problems) == 1
