"""A PO file is compiled to what babel compiles it to; one with a mistake is refused, by its line."""

import subprocess
import sys
from gettext import GNUTranslations
from io import BytesIO

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from hypothesis import given, settings
from hypothesis import strategies as st

from tui_transformer.catalogues import COMPILER, FOLDER, Messages
from tui_transformer.languages import LANGUAGES
from tui_transformer.msgfmt import compile_po

HEADER = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=utf-8\\nPlural-Forms: nplurals=2; plural=n>1;\\n"\n\n'
Found = dict[str | tuple[str, int], str]


def translations(mo: bytes) -> Found:
    """All that gettext finds in an MO file: translations by message, those of a plural by message and form."""
    return dict(GNUTranslations(BytesIO(mo))._catalog)


def of(po: str) -> Found:
    """What is found in the MO file of a PO file, whose header is written here."""
    found = translations(compile_po((HEADER + po).encode()))
    del found[""]
    return found


def by_babel(catalogue: Catalog) -> bytes:
    made = BytesIO()
    write_mo(made, catalogue)
    return made.getvalue()


@pytest.mark.parametrize("code", LANGUAGES[1:])
def test_our_catalogue_is_compiled_as_babel_compiles_it(code) -> None:
    text = (FOLDER / code / "LC_MESSAGES" / "messages.po").read_bytes()
    ours, babels = compile_po(text), by_babel(read_po(BytesIO(text), locale=code))
    assert len(translations(ours)) > 1_900
    assert translations(ours) == translations(babels)
    assert list(Messages(ours).pairs()) == list(Messages(babels).pairs())


SIGNS = ['"', "\\", "\n", "\t", "\r", "\\n", "#", "msgid ", '"\n"', "\x85", "\u2028", "\x1c", "{n}", "，", " " * 40]
PIECE = st.sampled_from(SIGNS) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
TEXT = st.lists(PIECE, min_size=1, max_size=5).map("".join).filter(bool)
COMMENTS = st.lists(st.sampled_from(["fuzzy", ", fuzzy", "msgid", "~ msgid", '"']), max_size=2)


@st.composite
def catalogues(draw) -> Catalog:
    code = draw(st.sampled_from(["zh", "de", "pl"]))  # whose plurals have one, two and three forms
    made = Catalog(locale=code, charset="utf-8", fuzzy=draw(st.booleans()))
    for message in draw(st.lists(TEXT, max_size=4, unique=True)):
        plural, forms = draw(st.booleans()), made.num_plurals
        untranslated = draw(st.booleans())
        made.add(
            (message, draw(TEXT)) if plural else message,
            tuple("" if untranslated else draw(TEXT) for _ in range(forms)) if plural else draw(TEXT | st.just("")),
            locations=draw(st.lists(st.just(("a file.py", 1)), max_size=2)),
            flags=draw(st.lists(st.sampled_from(["fuzzy", "not-fuzzy", "python-format"]), max_size=2, unique=True)),
            user_comments=draw(COMMENTS),
            auto_comments=draw(COMMENTS),
            previous_id=draw(TEXT),
            context=draw(st.none() | TEXT),
        )
    for message in draw(st.lists(TEXT, max_size=2, unique=True)):
        made.obsolete[message] = Message(message, draw(TEXT))
    return made


@settings(max_examples=60)
@given(catalogues(), st.sampled_from([0, 20, 76]))
def test_any_catalogue_is_compiled_as_babel_compiles_it(catalogue, width) -> None:
    """But for plurals without a translation: there babel writes the English forms, which gettext falls back to."""
    po = BytesIO()
    write_po(po, catalogue, width=width, include_previous=True)
    read = read_po(BytesIO(po.getvalue()), locale=catalogue.locale)
    found = translations(by_babel(read))
    for message in read:
        if message.pluralizable and not any(message.string):
            key = message.id[0] if message.context is None else f"{message.context}\x04{message.id[0]}"
            for form in range(len(message.string)):
                found.pop((key, form), None)  # not there if it is fuzzy
    assert translations(compile_po(po.getvalue())) == found


@pytest.mark.parametrize(
    ("po", "found"),
    {
        "no line between two": ('msgid "a"\nmsgstr "b"\nmsgid "c"\nmsgstr "d"', {"a": "b", "c": "d"}),
        "Windows": ('msgid "a"\r\nmsgstr ""\r\n"b"\r\n', {"a": "b"}),
        "in pieces": ('msgid ""\n"a\\n"\n  "\\"b\\""\nmsgstr "c\\\\n" \n"\\td"', {'a\n"b"': "c\\n\td"}),
        "a context": (
            'msgctxt "menu"\nmsgid "a"\nmsgstr "b"\nmsgid "a"\nmsgstr "c"\n',
            {"menu\x04a": "b", "a": "c"},
        ),
        "a plural": (
            'msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\n"c"\nmsgstr[1] "d"\n',
            {("a", 0): "c", ("a", 1): "d"},
        ),
        "a form is missing": ('msgid "a"\nmsgid_plural "b"\nmsgstr[0] "c"\nmsgstr[1] ""\n', {}),
        "fuzzy": ('#, python-format, fuzzy\n#| msgid "z"\nmsgid "a"\nmsgstr "b"\n', {}),
        "fuzzy in a comment": ('# fuzzy\n#. fuzzy\n#: fuzzy\n#, not-fuzzy\nmsgid "a"\nmsgstr "b"', {"a": "b"}),
        "fuzzy of the one above": ('#, fuzzy\nmsgid "a"\nmsgstr "b"\nmsgid "c"\nmsgstr "d"', {"c": "d"}),
        "fuzzy and obsolete": ('#, fuzzy\n#~ msgid "a"\n#~ msgstr "b"\nmsgid "c"\nmsgstr "d"', {"c": "d"}),
        "obsolete": ('#~ msgid "a"\n#~ msgstr ""\n#~ "b"\n', {}),
        "another line's end in a text": ('msgid "a\u2028b\x85"\nmsgstr "c\x0bd"\n', {"a\u2028b\x85": "c\x0bd"}),
    }.values(),
)
def test_a_message_is_read_however_it_is_written(po, found) -> None:
    assert of(po) == found


def test_the_header_counts_even_if_it_is_fuzzy_and_after_a_byte_order_mark() -> None:
    found = translations(compile_po(("\ufeff#, fuzzy\n" + HEADER + 'msgid "a"\nmsgstr "b"').encode()))
    assert found["a"] == "b" and "charset=utf-8" in found[""]


@pytest.mark.parametrize(
    ("po", "line", "problem"),
    {
        "no end": ('msgid "a\nmsgstr "b"\n', 4, "cannot be read: 'msgid \"a'"),
        "more after it": ('msgid "a" "b"\n', 4, "cannot be read"),
        "an escape": ('msgid "a"\nmsgstr "\\x41"\n', 5, "cannot be read"),
        "a zero byte": ('msgid "a\0b"\nmsgstr "c"\n', 4, "cannot be read"),
        "a context alone": ('msgctxt "menu"\nmsgstr "b"\n', 5, "must have msgid and msgstr"),
        "a context too late": ('msgid "a"\nmsgctxt "menu"\nmsgstr "b"\n', 4, "must have msgid and msgstr"),
        "a merge": ('<<<<<<< HEAD\nmsgid "a"\nmsgstr "b"\n', 4, "cannot be read"),
        "a text alone": ('"a"\n', 4, "cannot be read"),
        "two translations": ('msgid "a"\nmsgstr "b"\nmsgstr "c"\n', 6, "cannot be read"),
        "no translation": ('msgid "a"\n\nmsgid "b"\nmsgstr "c"\n', 4, "must have msgid and msgstr"),
        "no message": ('msgstr "a"\n', 4, "must have msgid and msgstr"),
        "no forms": ('msgid "a"\nmsgid_plural "b"\nmsgstr "c"\n', 6, "must have msgid and msgstr"),
        "forms missing": ('msgid "a"\nmsgid_plural "b"\n', 5, "must have msgid and msgstr"),
        "forms in disorder": ('msgid "a"\nmsgid_plural "b"\nmsgstr[1] "c"\nmsgstr[0] "d"', 7, "must have msgid"),
        "twice": ('msgid "a"\nmsgstr "b"\n\nmsgid "a"\nmsgid_plural "c"\nmsgstr[0] "d"\n', 9, "'a' is defined twice"),
    }.values(),
)
def test_a_mistake_is_named_by_its_line(po, line, problem) -> None:
    with pytest.raises(ValueError, match=f"^line {line}: .*{problem}"):
        of(po)


@pytest.mark.parametrize("text", ["", 'msgid "a"\nmsgstr "b"\n', HEADER.replace("utf-8", "gbk")])
def test_a_header_without_the_encoding_is_refused(text) -> None:
    with pytest.raises(ValueError, match="header must say charset=utf-8"):
        compile_po(text.encode())


def test_what_is_not_utf_8_is_refused() -> None:
    with pytest.raises(ValueError, match="utf-8"):
        compile_po(HEADER.encode() + 'msgid "a"\nmsgstr "中"'.encode("gbk"))


def test_the_compiler_runs_by_itself() -> None:
    """As when a wheel is built: without the package around it, or any other."""
    code = f"import runpy; print(len(runpy.run_path({str(COMPILER)!r})['compile_po']({HEADER.encode()!r})))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == f"{len(compile_po(HEADER.encode()))}\n", done.stderr
