"""The noise of test sentences: sacreBLEU's own command line is the oracle."""

import json
import random
import subprocess
import sys

import pytest

from engine.base.errors import InputError
from engine.data.synthetic.phrasebook import corpus as phrasebook
from engine.evaluation.translation import paired_bootstrap


def sentences(n=80):
    return [pair.target for pair in phrasebook.generate(1, 600)["validation"]][:n]


def worse(texts, share, seed):
    """The same texts with words left out of a share of them."""
    draws = random.Random(seed)
    return [" ".join(text.split()[:-2]) or text if draws.random() < share else text for text in texts]


def test_p_and_difference_are_those_of_the_sacrebleu_command(tmp_path):
    references = sentences()
    ours, baseline = worse(references, 0.2, 1), worse(references, 0.35, 2)
    files = {"ref": references, "base": baseline, "ours": ours}
    for name, texts in files.items():
        (tmp_path / name).write_text("\n".join(texts) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "ref", "-i", "base", "ours", "--paired-bs", "--format", "json"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    theirs = json.loads(said)
    found = paired_bootstrap(references, ours, baseline)
    before, after = (row["BLEU"] for row in theirs)
    assert found.p == pytest.approx(after["p_value"], abs=1e-4)
    assert found.difference == pytest.approx(after["score"] - before["score"], abs=2e-4)
    assert found.half == pytest.approx(after["ci"], abs=1e-4)


def test_the_same_outputs_differ_by_nothing():
    references = sentences()
    ours = worse(references, 0.3, 1)
    found = paired_bootstrap(references, ours, ours)
    assert found.difference == 0
    assert found.p > 0.9
    assert found == paired_bootstrap(references, ours, ours)


def test_a_large_difference_is_more_than_the_sentences():
    references = sentences()
    assert paired_bootstrap(references, references, worse(references, 0.9, 3)).p < 0.01


def test_two_systems_must_have_translated_the_same_sentences():
    with pytest.raises(InputError, match="same sentences"):
        paired_bootstrap(["a", "b"], ["a"], ["a", "b"])
