"""Bulletins: what the grammar says of its texts is true of them."""

import re
from collections import Counter
from itertools import product
from pathlib import Path

import pytest

from engine.base.errors import InputError
from engine.config.sections import DataConfig
from engine.data.catalogue import load_corpus
from engine.data.labelled.corpus import LabelledCorpus
from engine.data.synthetic import bulletins
from engine.data.synthetic.bulletins import (
    CLASSES,
    HEADLINES,
    KINDS,
    ORDER_ONLY_CLASSES,
    SENTENCES,
    WORDS,
    best_accuracy,
    generate,
    joint_probabilities,
    likeliest_class,
)


def patterns() -> list[tuple[str, re.Pattern[str]]]:
    """A sentence of each kind, written down again as patterns."""
    words = {name: "|".join(map(re.escape, options)) for name, options in WORDS.items()}
    words |= {
        "Sky": "|".join(w.capitalize() for w in WORDS["sky"]),
        "People": "|".join(map(str.capitalize, WORDS["people"])),
    }
    found = []
    for kind, templates in SENTENCES.items():
        for winner, of in (
            (("favourite", "result"), ("outsider", "upset")) if kind == "match" else (("favourite", kind),)
        ):
            loser = "outsider" if winner == "favourite" else "favourite"
            fill = words | {"winner": words[winner], "loser": words[loser]}
            found += [
                (of, re.compile(t.replace(".", r"\.").format(**{k: f"(?:{v})" for k, v in fill.items()})))
                for t in templates
            ]
    return found


PATTERNS = patterns()


def kinds_of(text: str) -> tuple[str, ...]:
    sentences = re.findall(r"[^.]+\.", text)
    found = [[kind for kind, pattern in PATTERNS if pattern.fullmatch(one.strip())] for one in sentences]
    assert all(len(kinds) == 1 for kinds in found), text
    return tuple(kinds[0] for kinds in found)


def test_every_sentence_says_by_itself_which_kind_it_is() -> None:
    for item in generate(5, 2_000):
        assert kinds_of(item.text) == item.kinds and item.label in CLASSES


def test_the_best_reader_is_as_good_as_counted_over_many_texts() -> None:
    items, chance = generate(6, 40_000), 0.01  # four standard errors
    for ordered in (True, False):
        right = sum(likeliest_class(item.kinds, ordered=ordered) == item.label for item in items) / len(items)
        assert right == pytest.approx(best_accuracy(ordered=ordered), abs=chance)
    assert best_accuracy() > best_accuracy(ordered=False) + 0.1


def test_the_probabilities_of_all_texts_add_up() -> None:
    assert sum(CLASSES.values()) == pytest.approx(1.0)
    for length in bulletins.LENGTHS:
        assert sum(
            sum(joint_probabilities(kinds).values()) for kinds in product(KINDS, repeat=length)
        ) == pytest.approx(1.0)


def test_no_rule_of_kinds_beats_the_best_reader() -> None:
    """The best reader's choice is the likeliest class of each text, counted from the other side."""
    for kinds in product(KINDS, repeat=2):
        weights = dict(CLASSES)
        for kind in kinds:
            weights = {label: w * bulletins.kind_probability(kind, label) for label, w in weights.items()}
        assert weights[likeliest_class(kinds)] == max(weights.values())


def test_a_result_and_an_upset_have_the_same_words_equally_often() -> None:
    """Turned round, a result is an upset of the same words: no reader of words alone can tell which it was."""
    turned = {"result": "upset", "upset": "result"}
    for item in generate(7, 500):
        words = Counter(re.findall(r"\w+", item.text))
        sides = {name: words[name] for side in ("favourite", "outsider") for name in WORDS[side]}
        matches = sum(kind in ORDER_ONLY_CLASSES for kind in item.kinds)
        assert sum(sides[name] for name in WORDS["favourite"]) == matches == sum(sides[n] for n in WORDS["outsider"])
        other = tuple(turned.get(kind, kind) for kind in item.kinds)
        assert likeliest_class(item.kinds, ordered=False) == likeliest_class(other, ordered=False)


def test_the_corpus_is_the_same_for_the_same_seed_and_its_splits_do_not_depend_on_their_sizes() -> None:
    def load(**changes: object) -> LabelledCorpus:
        return load_corpus(LabelledCorpus, DataConfig(corpus="bulletins", corpus_size=400, **changes))

    one, same, other = load(), load(), load(corpus_seed=2)
    assert one.sha256 == same.sha256 != other.sha256
    assert [len(split) for split in one.splits.values()] == [360, 40]
    tested = load(test_fraction=0.1)
    assert [len(split) for split in tested.splits.values()] == [320, 40, 40]
    assert tested.splits["train"].texts == one.splits["train"].texts[:320]
    assert one.reader_accuracies["validation"].expected == best_accuracy()
    assert one.reader_accuracies["validation"].best >= one.reader_accuracies["validation"].unordered


def test_too_few_texts_for_all_classes_are_refused() -> None:
    with pytest.raises(InputError, match="corpus_size = 20"):
        load_corpus(LabelledCorpus, DataConfig(corpus="bulletins", corpus_size=20, validation_fraction=0.9))


def test_the_page_says_what_the_grammar_says() -> None:
    page = (Path(bulletins.__file__).parents[3] / "docs" / "explanation" / "bulletins.md").read_text(encoding="utf-8")
    assert f"{best_accuracy():.2%}".replace("%", " %") in page
    assert f"{best_accuracy(ordered=False):.2%}".replace("%", " %") in page


def test_the_headline_is_of_the_first_sentence_that_is_not_colour() -> None:
    """Each headline is made again from the words that stand in its sentence."""
    colour_alone = 0
    for item in generate(4, 2_000):
        told = next((i for i, kind in enumerate(item.kinds) if kind != "colour"), 0)
        kind = "match" if item.kinds[told] in ORDER_ONLY_CLASSES else item.kinds[told]
        sentence = re.findall(r"[^.]+\.", item.text)[told].strip()
        made = set()
        for template, headline in zip(SENTENCES[kind], HEADLINES[kind], strict=True):
            pattern = re.sub(r"{(\w+)}", r"(?P<\1>.+)", template.replace(".", r"\."))
            if found := re.fullmatch(pattern, sentence):
                words = {name.lower(): word.lower() for name, word in found.groupdict().items()}
                words |= {name.capitalize(): word.capitalize() for name, word in words.items()}
                as_they_stand = {name: found[name] for name in ("winner", "loser", "firm", "day") if name in words}
                beat = "stun" if as_they_stand.get("winner") in WORDS["outsider"] else "beat"
                made.add(headline.format(**words | as_they_stand, beat=beat))
        assert made == {item.headline}, item
        colour_alone += set(item.kinds) == {"colour"}
    assert colour_alone > 10


def test_a_headline_belongs_to_one_kind_of_sentence_and_keeps_its_order_of_words() -> None:
    assert {kind: len(lines) for kind, lines in HEADLINES.items()} == {kind: len(s) for kind, s in SENTENCES.items()}
    assert all("{beat}" in line and line.index("{winner}") < line.index("{loser}") for line in HEADLINES["match"])
