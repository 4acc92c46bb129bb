"""The reference made from the code lists everything that there is, and shows every text as it is written."""

import re
from functools import cache
from html.parser import HTMLParser
from typing import Any, get_args

import markdown
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import presets
from engine.config.keys import all_keys, sentence_of
from engine.config.measures import MEASURES
from engine.config.model import PARTS
from engine.config.schemes import SCHEMES
from engine.data.known import CORPORA
from engine.runs.records import SCHEMAS
from reference import comments, examples, markup, records
from reference.pages import PAGES
from tests.tui_transformer.loaded import loaded
from tui_transformer.cli.output import ExitCode
from tui_transformer.lab.play.prompt import COMMANDS, TRANSLATING
from tui_transformer.lab.records import badges
from tui_transformer.lab.work.study import StudyFileModel, read_study, shipped_studies
from tui_transformer.studio.shared.keys import PANE_BINDINGS

TAGS = {"h1", "h2", "h3", "p", "pre", "code", "em", "strong", "a", "br", "kbd", "div"}
TAGS |= {"table", "thead", "tbody", "tr", "th", "td", "ul", "li"}
MATHML = re.compile(r"<math.*?</math>", re.DOTALL)
EMPTY = {"br"}


class Read(HTMLParser):
    """The text of a page, with its tables as rows of cells, and the texts of each heading's part."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.ids: set[str] = set()
        self.rows: list[list[str]] = []
        self.parts: dict[str, str] = {}
        self.part = ""
        self.text = ""
        self.feed(MATHML.sub("∫", html))
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag in EMPTY:
            self.handle_data("\n")
        else:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        if id := dict(attrs).get("id"):
            self.ids.add(id)
            self.part = id

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag in ("td", "th"):
            self.handle_data("\n")

    def handle_data(self, data: str) -> None:
        self.text += data
        self.parts[self.part] = self.parts.get(self.part, "") + data
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def read(text: str) -> Read:
    return Read(markdown.markdown(text, extensions=["attr_list", "fenced_code", "md_in_html", "tables", "toc"]))


@cache
def rendered(name: str) -> Read:
    return read(PAGES[f"reference/{name}.md"]())


def rows(name: str) -> dict[str, list[str]]:
    """The rows of a page's tables by their first cell; the first of several."""
    return {row[0]: row for row in reversed(rendered(name).rows) if row}


def begun(sentence: str) -> str:
    """As a table begins a sentence, without its code marks and last sign."""
    plain = sentence.replace("`", "")
    return (plain if sentence.startswith("`") else plain[:1].upper() + plain[1:]).rstrip(".")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole_and_holds_no_other_tags(name: str) -> None:
    found = rendered(name.removeprefix("reference/").removesuffix(".md"))
    assert found.tags <= TAGS and found.text.strip()


def test_every_command_is_there_with_its_options_and_an_example() -> None:
    page = rendered("commands")

    def check(name: str, command: Any) -> None:
        said = page.parts[name.replace(" ", "-")]
        below = [one for one in getattr(command, "commands", {}).values() if not one.hidden]
        assert " ".join(command.help.replace("`", "").split()) in " ".join(said.split())
        for option in command.params:
            shown = any(word in said for word in option.opts) and option.help.replace("`", "") in said
            assert option.hidden or shown, (name, option.opts)
        assert below or examples.guide_examples(name) or name == "presets schema", name
        for one in below:
            check(f"{name} {one.name}", one)

    public = [one for one in loaded().commands.values() if not one.hidden]
    for command in public:
        check(command.name, command)
    assert len(public) >= 26
    assert {option for one in loaded().params for option in one.opts} <= set(re.findall(r"--?[\w-]+", page.text))
    for hidden in (one for one in loaded().commands.values() if one.hidden):
        assert hidden.name not in page.ids


def test_every_exit_code_says_what_it_means() -> None:
    assert {code: bool(row[1]) for code, row in rows("exit-codes").items()} == {"code": True} | {
        str(int(one)): True for one in ExitCode
    }


@pytest.mark.parametrize("key", all_keys())
def test_every_setting_says_what_it_does_with_its_default_and_values(key: str) -> None:
    from engine.config.schema import RunConfig

    said = rendered("settings").parts[key]
    assert sentence_of(key) and len(sentence_of(key)) <= 130
    assert begun(sentence_of(key)) in said and "Default: " in said
    section, _, name = key.rpartition(".")
    kind: Any = RunConfig.model_fields[section].annotation if section else RunConfig
    field = next(one for other, one in kind.model_fields.items() if name in (other, one.alias))
    values = get_args(field.annotation) if "Literal" in str(field.annotation) else ()
    assert all(f"{value}" in said for value in values) and (len(values) > 1 or "Values: " in said)


def test_every_named_value_says_what_it_does() -> None:
    page = rendered("settings")
    assert [row for row in page.rows if row[0] != "value" and not row[1:]] == []
    assert [row for row in page.rows if not all(row)] == []


@pytest.mark.parametrize(("key", "name"), [(key, name) for key, named in SCHEMES.items() for name in named])
def test_every_scheme_is_there_with_its_paper_and_formula(key: str, name: str) -> None:
    scheme, said = SCHEMES[key][name], rendered("schemes").parts[f"{key}.{name}"]
    assert begun(scheme.sentence) in said and scheme.citation in said
    assert ("∫" in said) == (name != "none")


@pytest.mark.parametrize("name", PARTS)
def test_every_part_is_there_with_its_paper_and_formula(name: str) -> None:
    said = rendered("schemes").parts[f"model.{name}"]
    assert begun(PARTS[name].sentence) in said and PARTS[name].citation in said and "∫" in said
    assert all(what.replace("`", "") in said for what in PARTS[name].options.values())


def test_every_preset_is_there_with_its_file() -> None:
    page = rendered("presets")
    for preset in presets.list_presets():
        assert preset.description.replace("`", "") in rows("presets")[preset.name]
        assert (presets.folder() / f"{preset.name}.toml").read_text(encoding="utf-8").strip() in page.parts[preset.name]


def test_every_study_is_there_with_its_variants_and_what_is_expected() -> None:
    for name, path in shipped_studies().items():
        study, said = read_study(path), rendered("studies").parts[name]
        assert rows("studies")[name][1] == study.description.replace("`", "")
        for variant in study.variants:
            assert variant.name in said and variant.why.replace("`", "") in said
            assert set(variant.expect) <= set(said.split())
        assert all(stage.name in said for stage in study.stages)
    fields = {field.alias or key for key, field in StudyFileModel.model_fields.items()}
    assert fields <= set(rows("studies")) and all(rows("studies")[key][-1] for key in fields)


def test_every_corpus_is_there() -> None:
    assert {entry.name: entry.description.replace("`", "") for entry in CORPORA.values()} == {
        name: row[2] for name, row in rows("corpora").items() if name != "corpus"
    }


def test_every_file_of_a_run_is_there_and_every_field_says_what_it_is() -> None:
    page, seen = rendered("run-directory"), set()
    assert set(SCHEMAS) | set(records.OTHERS) <= set(rows("run-directory"))

    def check(kind: Any, part: str) -> None:
        if part in seen:
            return
        seen.add(part)
        said = comments.field_comments(kind)
        for name, field in kind.model_fields.items():
            assert said.get(name), f"{kind.__name__}.{name} has no comment"
            assert (field.alias or name) in page.parts[part] and begun(said[name]) in page.parts[part]
            for below in _records(field.annotation):
                check(below, below.__name__)

    for file, kind in SCHEMAS.items():
        for one in get_args(kind) or (kind,):
            check(one, one.__name__ if get_args(kind) else file)
    assert {"Attempt", "Floor", "OverlapFacts", "ValidationRecord", "ModelOutput"} <= seen


def _records(annotation: Any) -> list[Any]:
    found = [annotation] if hasattr(annotation, "model_fields") else []
    return found + [kind for part in get_args(annotation) for kind in _records(part)]


def test_every_measure_is_there() -> None:
    for measure in MEASURES:
        row = rows("measures")[measure.key]
        assert row[1] == measure.name and row[3] == ("lower" if measure.lower_is_better else "higher")
        assert measure.question in row[2] and (row[-1] == "not compared") == (not measure.is_compared)


def test_every_badge_says_what_it_means_and_what_to_do() -> None:
    for name, badge in badges.BADGES.items():
        said = rendered("badges").parts[name]
        assert badge.means.replace("`", "") in said and badge.advice.replace("`", "") in said
        assert rows("badges")[name][1] == ("red" if badge.void else "amber")


def test_every_key_of_the_studio_is_there() -> None:
    for pane, bindings in PANE_BINDINGS.items():
        for binding in bindings:
            said = rendered("keys").parts[pane]
            assert binding.id in said and begun(binding.tooltip) in said


def test_every_prompt_command_is_there() -> None:
    for part, commands in (("text", COMMANDS), ("translation", TRANSLATING.commands)):
        for name, command in commands.items():
            said = rendered("prompt").parts[part]
            assert f"/{name.replace('_', '-')}" in said and begun(command.what) in said
            assert all(why.replace("`", "") in said for why in command.why_not.values())


# Letters, spaces and every sign that Markdown or HTML gives a meaning; no backticks, which mark code.
TEXTS = st.text(st.sampled_from("ab1 .,*_[](){}<>#+-!|&~^$:;=\"'@/\\é中"), min_size=1, max_size=40)


@given(TEXTS)
def test_a_text_of_the_code_is_never_markup(text: str) -> None:
    page = markup.page(
        "Page",
        markup.table(("a", "b"), [(markup.code(text), markup.inline_html(text))]),
        markup.paragraphs(f"x{text}x"),
        markup.listing([markup.inline_html(text)]),
        markup.fence(f"x{text}\n```\nx"),
    )
    found = read(page)
    assert found.rows[1] == [text, text] and found.tags <= TAGS
    assert " ".join(f"x{text}x".split()) in found.text and f"x{text}\n```\nx" in found.text


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", 'a | b `c|d` & "e"', "*[x](y)* {: #z } &lt;", "</td>"])
def test_a_badge_with_markup_is_shown_as_written(text: str, monkeypatch) -> None:
    poisoned = badges.Badge("LEAK", "LEAK", text, text, text)
    monkeypatch.setitem(records.BADGES, "LEAK", poisoned)
    found = read(records.badges())
    assert found.tags <= TAGS and found.parts["LEAK"].count(text.replace("`", "")) == 2


def test_a_heading_that_could_be_markup_is_refused() -> None:
    with pytest.raises(ValueError, match="not a plain name"):
        markup.heading(2, "a`b")


def test_a_comment_is_found_beside_or_above_its_field() -> None:
    from engine.runs.records import Run, TrainRecord

    assert comments.field_comments(Run)["origin"] == "the checkpoint whose weights it started from"
    assert comments.field_comments(TrainRecord)["grad_norm"] == "gradient norm before clipping"
