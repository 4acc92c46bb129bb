"""How much held-out data also appears in training: true overlap is found, natural repetition is not."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config.sections import DataConfig
from engine.data import overlap
from engine.data.catalogue import load_corpus
from engine.data.corpora import TextCorpus
from engine.data.corpus import END_OF_TEXT
from engine.data.documents.corpus import DocumentCorpus
from engine.data.overlap import (
    PASSAGE,
    Overlap,
    document_overlap,
    normalize_for_comparison,
    pair_overlap,
    question_overlap,
    text_overlap,
)
from engine.data.parallel.pairs import Pairs, ParallelCorpus
from engine.data.splits import Split, remaining_split_spans
from tests import repetitive_texts


def words(count: int, seed: int = 0) -> str:
    """Text that never repeats a passage."""
    draw = random.Random(seed)
    return " ".join("".join(draw.choices("abcdefghij", k=draw.randint(2, 9))) for _ in range(count))


def between(train: str, held_out: str) -> Overlap:
    found = text_overlap([train], held_out, "validation")
    assert found is not None
    return found


def of(text: str) -> Overlap:
    """As a run cuts it."""
    spans = remaining_split_spans(len(text), DataConfig(corpus="any.txt"), ())
    splits = {split: Split(text[start:stop]) for split, (start, stop) in spans.items()}
    return between(splits["train"].text, splits["validation"].text)


def units(count: int, size: int) -> list[str]:
    """Different ones, of `size` bytes each."""
    text = words(count * (size + 1) // 3)
    return [text[i * size : i * size + size].replace(" ", "-") for i in range(count)]


# Texts


def test_a_text_written_twice_overlaps_with_itself_completely() -> None:
    once = words(5_000)
    assert of(once).seen == 0 and not of(once).is_reportable
    twice = of(once * 2)
    assert twice.share == 1.0 and twice.voids_score
    assert twice.sentence.startswith(
        "100.0% of the validation text also appears word for word in the training text; for"
    )


def test_a_text_written_many_times_is_found_as_well() -> None:
    assert of(words(400) * 30).voids_score


@pytest.mark.parametrize("size", [30, 60, 100, 150, 190, 210])
@pytest.mark.parametrize(("mark", "of"), [("\n", "lines"), (END_OF_TEXT, "documents")])
def test_units_that_training_repeats_are_found_whatever_their_length(mark: str, of: str, size: int) -> None:
    held_out = units(200, size)
    train = held_out * 9
    random.Random(1).shuffle(train)
    found = between(mark.join(train) + mark, mark.join(held_out) + mark)
    assert getattr(found, f"{of}_seen") >= 0.99 * getattr(found, of) and getattr(found, of) >= 199
    assert (
        found.voids_score if of == "documents" else found.repeats_many_lines
    )  # lines: a warning, unless there are passages, too
    assert (found.share > 0.99) is (size >= PASSAGE or (of == "documents" and size + len(mark) >= PASSAGE))


@pytest.mark.parametrize(
    ("changed", "end"),
    [
        (str.upper, "\n"),
        (str, "\r\n"),
        (str, "\r"),
        (lambda text: text.replace(" ", " \t "), "  \n\n "),
        (lambda text: text.translate({c: c + 0xFEE0 for c in range(0x21, 0x7F)}), "\n"),  # full-width forms
    ],
)
@pytest.mark.parametrize("mark", ["", END_OF_TEXT])
def test_a_copy_in_other_case_or_with_other_white_space_is_found_by_whole_units(mark: str, changed, end) -> None:
    text = [one.replace("-", " ") for one in units(300, 72)]
    found = between(f"\n{mark}".join(text), f"{end}{mark}".join(map(changed, text)))
    assert found.lines_seen >= 0.99 * found.lines > 290
    assert found.documents_seen >= 0.99 * found.documents and found.voids_score is (found.documents > 290) is bool(mark)


@pytest.mark.parametrize(("every", "passages", "lines"), [(250, 0.99, 0.6), (200, 0.0, 0.5), (100, 0.0, 0.2)])
def test_a_copy_with_single_characters_changed_is_found_by_what_is_left_of_it(every, passages, lines) -> None:
    text = "\n".join(units(600, 72))
    changed = "".join("#" if i % every == every - 1 else one for i, one in enumerate(text))
    found = between(text, changed)
    assert found.share >= passages and found.repeated_line_share >= lines and found.repeats_many_lines


def test_short_lines_do_not_count_and_fewer_characters_are_enough_without_spaces() -> None:
    short, least = "nineteen characters", "twenty characters ok"
    thai, japanese = "\u0e01" * 8, "\u3053" * 8
    text = "\n".join((short, least, thai, japanese, thai[:7], japanese[:7], least.upper(), f"  {least} "))
    found = between(text, text)
    assert (len(short), len(least)) == (19, 20) and (found.lines, found.lines_seen) == (3, 3)


def test_of_very_many_lines_a_sample_is_looked_up_and_the_message_says_so(monkeypatch) -> None:
    monkeypatch.setattr(overlap, "MAX_UNITS", 400)
    seen, new = units(1_000, 40), [one[::-1] for one in units(3_000, 41)]
    found = between("\n".join(seen), "\n".join(seen + new))
    assert found.sampled and 200 <= found.lines <= 400 and 0.15 < found.repeated_line_share < 0.35
    assert "; only a sample of these was looked up; for example" in found.sentence
    pieces = [f"{one}\n" for one in seen + new]
    assert text_overlap(["\n".join(seen)], "".join(pieces), "validation", pieces) == replace(
        found, total=found.total + 1
    )


def test_an_endless_line_takes_bounded_memory_and_the_text_after_it_is_found(monkeypatch) -> None:
    monkeypatch.setattr(overlap, "MAX_UNIT_LENGTH", 1_000)
    monkeypatch.setattr(overlap, "PIECE", 128)
    lines = "\n".join(units(50, 60))
    found = between(f"{words(2_000)}\n{lines}", lines)
    assert found.lines_seen == found.lines >= 49


def test_what_was_looked_for_is_said() -> None:
    looked = "no passage of 200 bytes{} and no line of 20 characters or more of the validation text appears in the "
    assert between("other", words(50)).sentence == looked.format("") + "training text"
    documents = END_OF_TEXT.join(units(9, 60))
    assert between("other", documents).sentence == looked.format(", no document") + "training text"
    found = between(documents, f"{END_OF_TEXT}\n".join(units(9, 60)[:3]))
    assert found.sentence.startswith(
        "no passage of 200 bytes of the validation text appears in the training text; distinct documents found "
        "there whole: 3 of 3 (100.0%); distinct lines of 20 characters or more found there whole: 3 of 3 (100.0%); "
        "for example “"
    )


@pytest.mark.parametrize("make", [repetitive_texts.chinese, repetitive_texts.log])
def test_simple_sentences_and_logs_share_no_passage(make) -> None:
    found = of(make())
    assert found.share < 0.01 and found.repeats_many_lines is (
        make is repetitive_texts.chinese
    )  # its sentences do repeat


def test_code_overlaps_too_little_for_a_badge() -> None:
    found = of(repetitive_texts.code())
    assert not found.voids_score and not found.repeats_many_lines and found.lines_seen > 50


def test_generated_text_shares_no_passage_and_its_lines_are_its_grammars() -> None:
    corpus = load_corpus(TextCorpus, DataConfig(corpus="playlets", corpus_size=300_000))
    for found in corpus.overlaps():
        assert found is not None and found.seen == 0 and found.lines_seen and found.generated
        repeated = replace(found, lines_seen=found.lines, documents=9, documents_seen=9)
        for one in (found, repeated):
            assert not one.is_reportable and not one.voids_score and one.verdict.verdict == "ok"
            assert "found there whole" in one.verdict.why


def by_hand(train: bytes, held_out: bytes, width: int) -> int:
    """The bytes that lie in a passage of the training text, looked for one by one."""
    starts = [i for i in range(len(held_out) - width + 1) if held_out[i : i + width] in train]
    return len({i + k for i in starts for k in range(width)})


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text("ab。", max_size=40), max_size=5), st.text("ab。", min_size=1, max_size=60))
def test_every_byte_in_a_common_passage_counts_and_no_other(train: list[str], held_out: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlap, "PASSAGE", 4)
        patch.setattr(overlap, "PIECE", 7)  # passages lie across pieces
        found = text_overlap(train, held_out, "validation")
    raw = held_out.encode()
    assert found is not None and found.total == len(raw)
    assert found.seen == by_hand("".join(train).encode(), raw, min(4, len(raw)))


def test_a_long_text_is_sampled_in_evenly_spaced_stretches(monkeypatch) -> None:
    monkeypatch.setattr(overlap, "MAX_SAMPLE_BYTES", 40_000)
    monkeypatch.setattr(overlap, "STRETCH", 2_000)
    train, new = words(30_000, seed=1), words(30_000, seed=2)
    middle = len(new) // 2
    found = text_overlap([train], train[:middle] + new[middle:], "validation")
    assert found is not None and found.total == 40_000 and 0.4 < found.share < 0.6


def test_no_text_says_nothing() -> None:
    assert text_overlap(["abc"], "", "validation") is None
    assert pair_overlap(Pairs(("a",), ("b",)), Pairs((), ()), "validation") is None
    assert question_overlap(["a"], [], "validation") is None
    assert document_overlap(["a"], [], "validation") is None


def test_an_example_is_short_and_cannot_reach_a_terminal() -> None:
    evil = words(100) + "\x1b[2J\x07\u202e" + words(40)
    found = text_overlap([evil], evil, "validation")
    assert found is not None and len(found.example) <= 60 and found.example.isprintable() and found.example[-1] == "…"
    short = question_overlap(["\x1b[31mwho?"], ["\x1b[31mwho?"], "validation")
    assert short is not None and short.example == "[31mwho?"


# Sentences, questions, documents

TRAIN = Pairs(
    ("Tom, come here.", "I'm sure that he'll come.", "Yes, I do.", *(f"It is {i} o'clock." for i in range(30))),
    ("Tom, komm her.", "Ich bin sicher, dass er kommt.", "Ja, doch.", *(f"Es ist {i} Uhr." for i in range(30))),
)
COMMAS = Pairs(
    ("Tom come here.", "I’m sure that he’ll come!", "Yes I do."),
    ("Tom komm her.", "Ich bin sicher dass er kommt.", "Ja doch."),
)


def test_three_pairs_that_differ_in_a_comma_overlap() -> None:
    others = Pairs(tuple(f"We saw {i} cats." for i in range(17)), tuple(f"Wir sahen {i} Katzen." for i in range(17)))
    held_out = Pairs(COMMAS.sources + others.sources, COMMAS.targets + others.targets)
    found = pair_overlap(TRAIN, held_out, "validation")
    assert found == Overlap("pairs", "validation", 3, 20, "Tom come here.", both=3) and found.voids_score
    assert found.sentence == (
        "15.0% of the validation pairs (3 of 20) share a sentence with the training pairs, ignoring case and "
        "punctuation, 3 of them on both sides; for example “Tom come here.”"
    )
    none = pair_overlap(TRAIN, others, "validation")
    assert none is not None and none.seen == 0 and none.sentence.startswith("none of the 17 validation pairs share")


@pytest.mark.parametrize(("source", "target"), [("tom COME here", "Etwas anderes."), ("Else.", "„Tom, komm her!“")])
def test_one_side_is_enough(source: str, target: str) -> None:
    found = pair_overlap(TRAIN, Pairs((source,), (target,)), "test")
    assert found is not None and (found.seen, found.both) == (1, 0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I'm “here”…", "i’m here"),
        ("¿Qué? ¡Sí!", "qué sí"),
        ("你好，世界！", "你好，世界。"),
        ("Straße – nein", "STRASSE nein"),
        ("ｆｕｌｌ　ｗｉｄｔｈ", "full width"),
    ],
)
def test_sentences_are_equal_but_for_case_and_punctuation_of_any_script(one: str, other: str) -> None:
    assert normalize_for_comparison([one]) == normalize_for_comparison([other])


@pytest.mark.parametrize(
    ("one", "other"), [("कि", "की"), ("2 + 2", "2 - 2 = 0"), ("?", "!"), ("café", "cafe"), ("$5", "€5")]
)
def test_different_sentences_stay_different(one: str, other: str) -> None:
    assert normalize_for_comparison([one]) != normalize_for_comparison([other])


def test_questions_that_training_asks_too_are_counted() -> None:
    found = question_overlap(["Where was P1 born?", "Where was P2 born?"], ["where was  P1 born", "P3?"], "validation")
    assert found == Overlap("questions", "validation", 1, 2, "where was P1 born")


def test_a_document_that_differs_in_a_comma_is_seen_as_a_whole() -> None:
    train = ["Ada Lovelace, a mathematician, was born in London.", "Somebody else."]
    found = document_overlap(train, ["Ada Lovelace a mathematician was born in London", "Nobody knows."], "validation")
    assert (
        found is not None
        and found.seen == len("Ada Lovelace a mathematician was born in London\n")
        and found.voids_score
    )
    long = words(200)
    part = document_overlap([f"One. {long}"], [f"Two. {long}"], "validation")
    assert part is not None and 0.9 < part.share < 1.0 and (part.documents, part.documents_seen) == (1, 0)


def test_distinct_documents_count_however_little_of_the_text_they_are() -> None:
    known, long = units(20, 60), words(5_000)
    found = document_overlap(known, [*known, *known, long, "short"], "validation")
    assert found is not None and (found.documents, found.documents_seen) == (21, 20)
    assert found.share < 0.12 and found.voids_score and "found there whole: 20 of 21 (95.2%)" in found.sentence


# Corpora that come with this, and real ones


@pytest.mark.parametrize("name", ["biographies", "biographies-named"])
def test_built_in_documents_and_questions_overlap_with_nothing(name: str) -> None:
    corpus = load_corpus(DocumentCorpus, DataConfig(corpus=name))
    documents = document_overlap(corpus.documents["train"], corpus.documents["validation"], "validation")
    asked = [[q.text for q in corpus.questions[split]] for split in ("train", "validation")]
    questions = question_overlap(*asked, "validation")
    assert documents is not None and questions is not None and documents.seen == questions.seen == 0


def test_the_phrasebook_overlaps_with_nothing() -> None:
    splits = load_corpus(ParallelCorpus, DataConfig(corpus="phrasebook", corpus_size=6_000)).splits
    found = pair_overlap(splits["train"], splits["validation"], "validation")
    assert found is not None and found.seen == 0


def test_real_corpora_get_no_badge_and_their_overlap_is_reported(real_data) -> None:
    def pairs(name: str) -> Overlap:
        splits = load_corpus(ParallelCorpus, DataConfig(corpus=name), real_data).splits
        found = pair_overlap(splits["train"], splits["validation"], "validation")
        assert found is not None
        return found

    tatoeba, multi30k = pairs("tatoeba-en-de"), pairs("multi30k")
    assert (tatoeba.seen, tatoeba.both) == (28, 3) and tatoeba.is_reportable and not tatoeba.voids_score
    assert (multi30k.seen, multi30k.both) == (2, 0) and not multi30k.voids_score
    for path in ("wikitext-2-sample/test.txt", "wikitext-2-sample/valid.txt", "ptb-sample/test.txt"):
        found = of((real_data / path).read_text())
        assert found.share < 0.01 and not found.repeats_many_lines, path
    assert of((real_data / "ptb-sample/valid.txt").read_text()).share < 0.02
    shakespeare = of((real_data / "tiny-shakespeare/input.txt").read_text())
    assert shakespeare.seen == shakespeare.lines_seen == 0 < shakespeare.lines
    people = load_corpus(DocumentCorpus, DataConfig(corpus="cs224n-birthplaces"), real_data)
    asked = [[q.text for q in people.questions[split]] for split in ("train", "validation")]
    assert question_overlap(*asked, "validation") == Overlap(
        "questions", "validation", 1, 500, "Where was George Stone born?"
    )
