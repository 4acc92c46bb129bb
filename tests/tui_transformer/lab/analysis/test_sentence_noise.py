import json

import pytest

from tests.tui_transformer.lab.analysis.studies import attention, standings
from tui_transformer.lab.analysis.sentences import bleu_noise_sentences

REFERENCES = [f"Der Hund Nummer {i} sieht die kleine Katze im Garten." for i in range(40)]


def write(run, outputs, references=REFERENCES):
    (run / "translations.json").write_text(json.dumps({"references": references, "outputs": outputs}))


def spoiled(every):
    return [text.replace("kleine Katze", "Katze") if i % every == 0 else text for i, text in enumerate(REFERENCES)]


def window(root):
    return standings(root)["win16"]


@pytest.fixture
def root(tmp_path):
    attention(tmp_path)
    return tmp_path


def test_each_seed_has_the_noise_of_its_sentences(root):
    for seed in (1, 2, 3):
        write(root / f"att.global.s{seed}", spoiled(7))
        write(root / f"att.win16.s{seed}", spoiled(2))
    (said,) = bleu_noise_sentences(window(root))
    assert "1,000 draws of 40 test sentences" in said
    assert said.count("BLEU, p 0.0") == 3 and "seed 1 -" in said


def test_what_is_damaged_or_of_other_sentences_is_left_out(root):
    for seed in (1, 2, 3):
        write(root / f"att.global.s{seed}", spoiled(7))
    write(root / "att.win16.s1", spoiled(2), [*REFERENCES[1:], "Ein anderer Satz."])
    write(root / "att.win16.s2", [1, *spoiled(2)[1:]])
    (root / "att.win16.s3" / "translations.json").write_text("{")
    assert list(bleu_noise_sentences(window(root))) == []


def test_a_text_has_no_sentences(root):
    assert list(bleu_noise_sentences(window(root))) == []
