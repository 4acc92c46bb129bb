"""BLEU and chrF are those of the `sacrebleu` command; what collapses, what is empty, what is long."""

import json
import random
import subprocess
import sys

import pytest

from engine.base.errors import InputError
from engine.evaluation import translation
from engine.evaluation.translation import TranslationScores, score_translations

NOUNS = ["Hund", "Katze", "Baum", "Haus", "Frau", "Straße", "Apfel", "Fahrrad", "Junge", "Brücke"]
VERBS = ["sieht", "sucht", "findet", "malt", "kauft", "hört", "trägt", "mag"]


def corpus(n: int = 200, wrong: float = 0.3) -> tuple[list[str], list[str], list[str]]:
    """Sources, references, and outputs with some wrong words, some of them empty."""
    drawn = random.Random(5)
    sources, references, outputs = [], [], []
    for i in range(n):
        words = [
            "Der",
            *(drawn.choice(NOUNS + VERBS) for _ in range(6)),
            "den",
            drawn.choice(NOUNS) + ",",
            "sagt er zu",
        ]
        words.append(f"{drawn.randrange(99)},{drawn.randrange(9)} %")
        said = [drawn.choice(NOUNS) if drawn.random() < wrong else word for word in words]
        sources.append(f"sentence {i}")
        references.append(" ".join(words) + ".")
        outputs.append("" if i % 17 == 3 else " ".join(said) + ".")
    return sources, references, outputs


def command(tmp_path, references: list[str], outputs: list[str]) -> dict[str, tuple[float, str]]:
    """What the command makes of written files: metric → score and signature."""
    for name, texts in (("references", references), ("outputs", outputs)):
        (tmp_path / name).write_text("".join(text.replace("\n", " ") + "\n" for text in texts), encoding="utf-8")
    asked = ["references", "-i", "outputs", "-m", "bleu", "chrf", "-w", "10", "--force"]
    done = subprocess.run(
        [sys.executable, "-m", "sacrebleu", *asked], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    return {line["name"]: (line["score"], line["signature"]) for line in json.loads(done.stdout)}


@pytest.mark.parametrize("kind", ["many", "one", "odd"])
def test_scores_are_those_of_the_sacrebleu_command(tmp_path, kind: str) -> None:
    sources, references, outputs = corpus()
    if kind == "one":
        sources, references, outputs = sources[:1], references[:1], outputs[:1]
    if kind == "odd":
        outputs[0] = "Der Hund-\nhütte sieht\nden Baum. "
        outputs[1] = " &quot;Der\u2028Baum\r&lt;skipped>\x0b 犬 🐕 ️ "
        references[2] = "  Er sagte: »Nein!«\t "
    found = score_translations(sources, references, outputs)
    expected = command(tmp_path, references, outputs)
    assert found.bleu == pytest.approx(expected["BLEU"][0], abs=1e-8)
    assert found.chrf == pytest.approx(expected["chrF2"][0], abs=1e-8)
    assert (found.bleu_signature, found.chrf_signature) == (expected["BLEU"][1], expected["chrF2"][1])


def test_signatures_say_cased_and_13a() -> None:
    found = score_translations(*corpus(5))
    assert "case:mixed" in found.bleu_signature and "tok:13a" in found.bleu_signature
    assert "smooth:exp" in found.bleu_signature and "nc:6" in found.chrf_signature
    lowered = score_translations(*corpus(50)[:2], [text.lower() for text in corpus(50)[2]])
    assert lowered.bleu < score_translations(*corpus(50)).bleu - 5


def test_shuffled_references_collapse_the_scores() -> None:
    sources, references, _ = corpus()
    perfect = score_translations(sources, references, references)
    shuffled = references[1:] + references[:1]
    broken = score_translations(sources, shuffled, references)
    assert perfect.bleu == perfect.chrf == 100.0 and perfect.exact_match == 1.0
    assert broken.bleu < 25 and broken.exact_match == 0.0, broken.bleu


def test_rows_keep_order_and_text_and_know_best_and_worst() -> None:
    sources, references, outputs = corpus(40, wrong=0.8)
    outputs[7] = references[7] + " "
    found = score_translations(sources, references, outputs)
    assert found.n == len(found.rows) == 40 and TranslationScores.metric == "chrF"
    assert [(r.source, r.reference, r.output) for r in found.rows] == list(
        zip(sources, references, outputs, strict=True)
    )
    best, worst = found.best(3), found.worst(3)
    assert best[0].source == "sentence 7" and best[0].score == 100.0
    assert [row.source for row in worst] == ["sentence 3", "sentence 20", "sentence 37"]  # the empty ones, in order
    scores = sorted(row.score for row in found.rows)
    assert [row.score for row in worst] == scores[:3] and [row.score for row in best] == scores[:-4:-1]
    assert found.best(100) == sorted(found.rows, key=lambda row: -row.score)
    assert found.exact_match == pytest.approx(1 / 40)


def test_case_and_punctuation_are_part_of_an_exact_match() -> None:
    found = score_translations(["a"] * 4, ["Ja."] * 4, ["Ja.", " Ja.\n", "ja.", "Ja"])
    assert found.exact_match == 0.5


def test_empty_outputs_score_nothing() -> None:
    sources, references, _ = corpus(6)
    found = score_translations(sources, references, [""] * 6)
    assert (found.bleu, found.chrf, found.exact_match) == (0.0, 0.0, 0.0)


def test_a_very_long_sentence_is_scored() -> None:
    text = "Wort und noch eins, " * 5_000
    assert score_translations(["x"], [text], [text + "zu viel"]).bleu > 99


def test_nothing_to_score_or_uneven_lists_are_refused() -> None:
    with pytest.raises(InputError, match="no sentence"):
        score_translations([], [], [])
    with pytest.raises(InputError, match="2 sources, 1 references and 2 outputs"):
        score_translations(["a", "b"], ["c"], ["d", "e"])


def test_nothing_is_written_to_the_terminal(capfd, caplog) -> None:
    """Not even a warning about what looks tokenised: a full-screen app owns the terminal."""
    score_translations(["x"] * 150, ["Ja ."] * 150, ["Ja ."] * 150)
    assert capfd.readouterr() == ("", "") and not caplog.records


def test_sacrebleu_is_not_imported_before_it_is_needed() -> None:
    code = "import sys; import engine.evaluation.translation; print('sacrebleu' in sys.modules, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_each_language_has_its_own_words() -> None:
    """Chinese is not one word a sentence; several languages are scored apart, and their mean is the score."""
    references, outputs = ["我们明天去火车站。", "他喜欢读书。"], ["我们明天去学校。", "他喜欢读书。"]
    chinese = score_translations(["a", "b"], references, outputs, "zh")
    assert "tok:zh" in chinese.bleu_signature and 30 < chinese.bleu < 100
    assert score_translations(["a", "b"], references, outputs, "en").bleu < chinese.bleu
    sources = ["<zh> a", "<de> a", "<zh> b", "<de> b"]
    german = ["Wir gehen morgen zum Bahnhof.", "Er liest gern Bücher."]
    mixed = [text for pair in zip(references, german, strict=True) for text in pair]
    written = [text for pair in zip(outputs, german, strict=True) for text in pair]
    both = score_translations(sources, mixed, written)
    assert both.by_target["zh"] == (chinese.bleu, 0.5, 2) and both.by_target["de"][1:] == (1.0, 2)
    assert both.bleu == pytest.approx((chinese.bleu + both.by_target["de"][0]) / 2)
    assert both.bleu_signature.startswith("de: ") and "; zh: " in both.bleu_signature


@pytest.mark.parametrize("here", [True, False])
def test_japanese_is_scored_by_characters_where_its_package_is_missing(monkeypatch, here) -> None:
    monkeypatch.setattr(translation, "find_spec", lambda name: here or None)
    assert [translation.bleu_tokenizer(one) for one in ("ja", "ja-JP", "zh_CN", "de", "")] == [
        *(["ja-mecab"] * 2 if here else ["char"] * 2),
        *("zh", "13a", "13a"),
    ]


@pytest.mark.parametrize(
    ("languages", "now", "before"),
    [
        ("zh cmn yue zho chi-Hans", "zh", ["zh", *["13a"] * 4]),
        ("th lao km_KH Burmese", "char", ["13a"] * 4),
        ("ko kor vi de", "13a", ["13a"] * 4),
        ("ja jpn", "ja-mecab", ["ja-mecab", "13a"]),
    ],
)
def test_languages_without_spaces_are_not_one_word_a_sentence(languages: str, now: str, before: list[str]) -> None:
    """Runs with earlier records keep the tokenizers that they began with."""
    names = languages.split()
    assert [translation.bleu_tokenizer(one, installed=False) for one in names] == [now] * len(names)
    assert [translation.bleu_tokenizer(one, 2, installed=False) for one in names] == before
    thai = ["ฉันจะไปสถานีรถไฟ"], ["ฉันจะไปโรงเรียน"]
    found, earlier = (score_translations(["a"], *thai, "th", records) for records in (3, 2))
    assert "tok:char" in found.bleu_signature and "tok:13a" in earlier.bleu_signature and found.bleu > earlier.bleu
