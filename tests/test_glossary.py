"""One term for each idea: no message and no page uses a word that the glossary replaces."""

import re
from collections.abc import Iterator

import pytest
from babel.messages.pofile import read_po

from reference.examples import FENCE
from tests.catalogue import ROOT, messages
from tui_transformer.catalogues import FOLDER

GLOSSARY = ROOT / "docs" / "glossary.md"
REPORTS = ROOT / "docs" / "report-attention"  # written by the program
PAGES = [ROOT / "README.md", *(path for path in sorted((ROOT / "docs").rglob("*.md")) if REPORTS not in path.parents)]
NO_PROSE = re.compile(  # code, where links lead, gaps, options, keys, titles of papers
    r"`[^`\n]*`|\]\([^)\s]*\)|https?://\S+|\{[^}]*\}|<[^>]*>|--[\w-]+(?:[ =]\S+)?|[\w.]+=\S+"
    r"|\b[a-z]+\.[a-z_]+\b|\*[^*\n]+\*"
)
# Where a word has its ordinary meaning: the words around it, in a message or on a page.
ORDINARY = (
    "experiment with small models",  # what one does
    "job (24)",  # of a person in the biographies
    "24 jobs",
    "and restarts those",
    "experiment of Stanford",
    "array job",  # of Slurm
    "Slurm job",
    "the job's time",  # limit, of Slurm
    "Write the job",
    "config as text and hyperparameters",  # a tab of TensorBoard
    "hyperparameter sweeps",  # of W&B
    "test sets of standard benchmarks",
    "their own training sets",  # of those benchmarks
    "shared vocab",  # for want of room
    "not significant",  # what a test says before a verdict is made of it
    "hung, or crashed",  # a process
    "see “Hyperparameters” for",  # a section of reports
)
ORDINARY_CHINESE = (
    "“超参数”一节",
    "泄露了答案",  # what a text does, not a mask
)
HEADINGS = {"Hyperparameters", "超参数"}  # of a report, as course sheets have it


def table(head: str) -> dict[str, str]:
    """The rows of a table of two columns, by each of the words in the first."""
    rows = GLOSSARY.read_text(encoding="utf-8").partition(f"| {head} |")[2].partition("\n\n")[0]
    found = {}
    for line in rows.splitlines()[2:]:
        words, term = (cell.strip() for cell in line.strip("|").split("|"))
        found |= dict.fromkeys(re.split(r", |、", words), term)
    return found


NOT, NOT_CHINESE = table("not | but"), table("不用 | 用")


def english() -> Iterator[tuple[str, str]]:
    """Every message and page, with where it is."""
    for where, text in messages():
        yield from ((where, one) for one in ([text] if isinstance(text, str) else text) if one not in HEADINGS)
    for path in PAGES:
        if path != GLOSSARY:
            yield path.relative_to(ROOT).as_posix(), FENCE.sub("", path.read_text(encoding="utf-8"))


def used(text: str, words: re.Pattern[str]) -> list[str]:
    text = NO_PROSE.sub("`", " ".join(text.split()))
    for ordinary in ORDINARY:
        text = text.replace(ordinary, "")
    return [found[0] for found in words.finditer(text)]


def test_no_message_and_no_page_uses_a_word_that_has_a_term() -> None:
    assert len(NOT) >= 30
    words = re.compile(rf"\b(?:{'|'.join(map(re.escape, NOT))})(?:s|es|ed)?\b", re.IGNORECASE)
    wrong = [f"{where}: {word}" for where, text in english() for word in used(text, words)]
    assert not wrong, wrong


def test_no_chinese_message_uses_a_word_that_has_a_term() -> None:
    assert len(NOT_CHINESE) >= 25
    with (FOLDER / "zh" / "LC_MESSAGES" / "messages.po").open("rb") as file:
        catalogue = read_po(file, locale="zh")
    said = [one for message in catalogue for one in ([message.string] if message.id else []) if one]
    texts = [text for one in said for text in ([one] if isinstance(one, str) else one)]
    for ordinary in ORDINARY_CHINESE:
        texts = [text.replace(ordinary, "") for text in texts if text not in HEADINGS]
    wrong = [f"{text[:60]}: {word}" for text in texts for word in NOT_CHINESE if word in text]
    assert not wrong, wrong


@pytest.mark.parametrize(("text", "found"), [("two Experiments", ["Experiments"]), ("`experiment`s run", [])])
def test_a_word_is_found_in_prose_alone(text, found) -> None:
    assert used(text, re.compile(r"\bexperiments?\b", re.IGNORECASE)) == found


def test_a_term_replaces_a_word_and_is_not_one_itself() -> None:
    for words in (NOT, NOT_CHINESE):
        terms = {part for term in words.values() for part in re.split(r", (?:or )?|、", term)}
        assert not terms & words.keys()


def test_the_glossary_gives_a_chinese_word_for_each_term() -> None:
    text = GLOSSARY.read_text(encoding="utf-8").partition("## Words that are not used")[0]
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| ") and "中文" not in line]
    assert len(rows) >= 40
    assert all(re.search("[一-鿿]", cells[1]) for cells in rows)
