"""What a person's file looks like stays: line ends, byte order mark, front matter; what could not be kept is not rewritten."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_core import limits
from memory_core.commands.versions import PageDraft, new_version
from memory_core.domain.command import Refusal
from memory_core.domain.front_matter import PageFacts, facts_from
from memory_core.domain.page import Tier, page_path
from memory_core.store.pages import StoredPage
from memory_core.wiki import front_matter
from tests.wiki.house import House

BOM = "\ufeff"


@pytest.fixture
def house(tmp_path: Path) -> Generator[House]:
    made = House(tmp_path)
    made.write_page("notes/b.md", "other\n")
    made.look_until_still()
    yield made
    made.close()


def saved(house: House, text: str | bytes) -> None:
    house.save("notes/a.md", text)
    house.look_until_still()


def on_disk(house: House) -> str:
    return house.file("notes/a.md").read_bytes().decode()


def bare(text: str) -> int:
    """Line ends that are not CRLF."""
    return text.replace("\r\n", "").count("\n")


# --- line ends and the byte order mark ---

HEADS = {
    "none": "",
    "of the person's own": "---\r\n# mine\r\nx: 1\r\ntags: [a]\r\n---\r\n",
    "in one piece": "---\r\n{x: 1, y: [2]}\r\n---\r\n",
    "no YAML": "---\r\nx: [1\r\n---\r\n",
    "with an anchor": "---\r\ntitle: &t Old\r\ny: *t\r\n---\r\n",
}
BODIES = [
    "# New\n\none\ntwo\n",
    "---\ntags: [b, c]\nz: 3\n---\n# New\n\none\n",
    "---\r\nz: 3\r\n---\r\none\n\r\ntwo\n",
]


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("mark", ["", BOM])
def test_a_file_with_crlf_keeps_it_throughout(house: House, head: str, body: str, mark: str):
    saved(house, mark + HEADS[head] + "# Old\r\n\r\ntext\r\n")

    assert not isinstance(house.write_page("notes/a.md", body), Refusal)

    text = on_disk(house)
    assert bare(text) == 0
    assert text.startswith(mark + "---\r\n")
    assert text.count(BOM) == len(mark)
    assert front_matter.read(text).problem is None
    assert text.endswith("one\r\n" if "two" not in body else "two\r\n")


@pytest.mark.parametrize("mark", ["", BOM])
def test_a_file_with_lf_gets_no_crlf_from_a_client_on_windows(house: House, mark: str):
    saved(house, mark + "---\nx: 1\n---\n# Old\n\ntext\n")

    house.write_page("notes/a.md", "---\r\ny: 2\r\n---\r\n# New\r\n\r\ntext\r\n")

    assert "\r" not in on_disk(house)
    assert on_disk(house).startswith(mark + "---\nx: 1\n")


def test_the_same_text_with_other_line_ends_is_no_new_version(house: House):
    saved(house, "---\r\ntitle: A\r\ntier: semantic\r\n---\r\ntext\r\n")

    assert house.write_page("notes/a.md", "text\n")["changed"] is False


def test_a_new_page_whose_text_has_crlf_has_it_in_its_front_matter_too(house: House):
    house.write_page("notes/a.md", "# New\r\n\r\ntext\r\n")

    assert bare(on_disk(house)) == 0


def test_a_heading_behind_a_byte_order_mark_is_the_title(house: House):
    saved(house, BOM + "# The title\n\ntext\n")

    assert house.books.query("SELECT title FROM page_versions ORDER BY seq DESC LIMIT 1") == [
        {"title": "The title"}
    ]
    assert house.pages()["notes/a.md"] == "# The title\n\ntext\n"


def test_lines_that_a_person_mixed_stay_as_they_are(house: House):
    saved(house, "---\r\nx: 1\ny: 2\r\n---\r\n# Old\r\ntext\r\n")

    house.write_page("notes/a.md", "# New\ntext\n")

    assert on_disk(house).startswith("---\r\nx: 1\ny: 2\r\n")
    assert on_disk(house).endswith("# New\r\ntext\r\n")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=200)
@given(
    keys=st.dictionaries(
        st.from_regex(r"k[a-z]{0,5}", fullmatch=True), st.text("ab c:#'\"-", max_size=8), max_size=4
    ),
    body=st.text("ab\n", max_size=20),
    windows=st.booleans(),
)
def test_any_file_that_ends_its_lines_in_one_way_goes_on_so(keys: dict[str, str], body: str, windows: bool):
    newline = "\r\n" if windows else "\n"
    head = "".join(f"{key}: {value}\n" for key, value in keys.items())
    old = front_matter.with_newlines(f"---\n{head}---\n# Old\n", newline)
    draft = PageDraft(path=page_path("notes/a.md"), body=f"# New\n{body}")

    made = new_version(draft, _stored(old), "ada").content

    assert (bare(made) == 0) if windows else ("\r" not in made)


def _stored(content: str):
    return StoredPage(
        id=bytes(16), number=1, project_id=bytes(16), path="notes/a.md", version_id=bytes(16), title="Old", kind="note",
        tier=Tier.SEMANTIC, tags=(), pinned=False, content=content, body_start=front_matter.read(content).body_start,
        sha256=bytes(32), created_at=0, updated_at=0, expires_at=None,
    )  # fmt: skip


# --- what cannot be kept ---


def _long(lines: int, line: str) -> str:
    return "".join(f"{line.format(number)}\n" for number in range(lines))


TOO_LONG = {
    "longer than can be read": _long(2_000, "key-{}: value"),
    "no YAML, and too long as comments": "x: [1\n" + _long(1_300, "key-{}: v"),
    "keys with anchors, and too long as comments": "a: &x 1\nz: {b: 1,\n"
    + _long(1_400, "  k{}: 2,")
    + "  c: *x}\n",
}


@pytest.mark.parametrize("what", TOO_LONG)
def test_a_front_matter_that_could_not_be_kept_refuses_the_write(house: House, what: str):
    text = f"---\n{TOO_LONG[what]}---\n# Old\n"
    saved(house, text)

    answer = house.write_page("notes/a.md", "---\na: 5\n---\n# New\n")

    if isinstance(answer, Refusal):
        assert "16 KB" in answer.message
        assert "shorten" in answer.message
        assert on_disk(house) == text
    else:  # no line is missing but the one that the writer named
        assert all(line in on_disk(house) for line in TOO_LONG[what].splitlines() if line != "a: &x 1")
    if what == "longer than can be read":
        assert isinstance(answer, Refusal)
        assert "notes/a.md" in answer.message


def test_a_write_may_not_make_the_front_matter_too_long_to_be_read(house: House):
    saved(house, f"---\n{_long(700, 'key-{}: value')}---\n# Old\n")
    before = on_disk(house)

    answer = house.write_page("notes/a.md", f"---\n{_long(700, 'other-{}: value')}---\n# New\n")

    assert isinstance(answer, Refusal)
    assert on_disk(house) == before


def test_nothing_is_lost_silently_at_any_length(house: House):
    for number in (300, 600, 700, 800, 900, 1_000, 1_500):
        text = f"---\nbad: [\n{_long(number, 'key-{}: value')}---\n# Old {number}\n"
        saved(house, text)
        answer = house.write_page("notes/a.md", f"# New {number}\n")
        kept = on_disk(house)
        assert kept == text if isinstance(answer, Refusal) else f"key-{number - 1}: value" in kept
    assert isinstance(answer, Refusal)
    assert len(text) < 3 * limits.FRONT_MATTER_MAX_BYTES


# --- texts as they are written ---

WRITTEN = ["no", "Yes", "2024-01-01", "1.0", "1e3", "0x1F", "1_000", "12:30:45", "~", "null", ".inf", "{{title}}", "[[A link]]", "on"]  # fmt: skip


@pytest.mark.parametrize("text", WRITTEN)
def test_a_title_is_what_somebody_wrote(house: House, text: str):
    saved(house, f"---\ntitle: {text}  # a remark\nx: 1\n---\n# Heading\n")
    house.write_page("notes/a.md", "text\n")

    titles = [row["title"] for row in house.books.query("SELECT title FROM page_versions ORDER BY seq")]
    assert titles[1:] == [text, text]
    assert f"title: {text}  # a remark\n" in on_disk(house)


@pytest.mark.parametrize("text", [each for each in WRITTEN if each[0] not in "[{"])
def test_tags_and_entities_are_what_somebody_wrote(text: str):
    head = f"---\ntags: [{text}, plain]\nentities:\n- {text}\n---\n"

    facts, problems = facts_from(front_matter.read(head).values)

    assert problems == ()
    assert facts.tags == (text, "plain")
    assert facts.entities == (text.lower(),)


@pytest.mark.parametrize("text", ["no", "1.0", "2024-01-01"])
def test_other_words_are_what_somebody_wrote(text: str):
    values = front_matter.read(f"---\nlast_modified_by: {{name: {text}}}\ntags: {text}\n---\n").values

    facts, _ = facts_from(values)
    assert (facts.last_modified_by, facts.tags) == (text, (text,))


def test_nothing_said_is_nothing_said():
    head = "---\ntitle:\ntags: null\nentities: ~\nkind: ~\ntier:\n---\n"

    assert facts_from(front_matter.read(head).values) == (PageFacts(), ())


def test_what_is_no_text_is_still_read():
    head = "---\npinned: yes\nexpires_at: 2031-05-01\nx: 1.0\n---\n"
    read = front_matter.read(head)

    assert facts_from(read.values)[0].pinned is True
    assert facts_from(read.values)[0].expires_at is not None
    assert read.values["x"] == 1.0
