"""The corpus: draw sentences until there are enough, and assign them to splits.

Three kinds of unseen text are kept from training:

* `validation` and `test`: sentences that training does not have, in any language;
* `unseen_pairs`: sentences with a verb and an object that never meet in training (nor in the other two), though
  each occurs with others. They tell a model that composes from one that memorizes.

Every word form of a held-out sentence occurs in training.
"""

import re
from collections.abc import Sequence

from engine.data.synthetic.draws import Draws
from engine.data.synthetic.phrasebook import dutch, lexicon
from engine.data.synthetic.phrasebook.lexicon import Noun
from engine.data.synthetic.phrasebook.sentences import Sentence, VerbObject, draw_sentence

VERSION = "phrasebook@2"
VERSION_2 = "phrasebook-2@1"  # with Dutch
DEFAULT_SIZE = 21_500  # distinct sentences in all splits
# As single lines among thousands, everyday phrases are learned late or never. A model's answers to them say nothing
# about translation, and no held-out split has them.
PHRASES = tuple(
    Sentence(source, target, "phrase", dutch=other)
    for (source, target), other in zip(lexicon.EVERYDAY, dutch.EVERYDAY, strict=True)
)
PHRASE_REPEATS = 20  # per epoch
SPLITS = ("train", "validation", "test", "unseen_pairs")
HELD_OUT_PAIRS = 0.1  # share of the verbs and objects that could meet
VALIDATION_SHARE, TEST_SHARE = 0.1, 0.05  # of sentences without such a pair


def held_out_pairs(seed: int) -> frozenset[VerbObject]:
    """Return the verb-object pairs that are kept out of training.

    Every verb keeps at least three quarters of its objects, and no noun is kept from more than two verbs.
    """
    draws = Draws(seed)
    kept_from: dict[Noun, int] = dict.fromkeys(lexicon.NOUNS, 0)
    apart: list[VerbObject] = []
    for verb in (*lexicon.VERBS, lexicon.GEHOEREN):
        allowed = len(verb.objects) // 4
        for noun in verb.objects:
            if allowed and kept_from[noun] < 2 and draws.chance(HELD_OUT_PAIRS):
                allowed -= 1
                kept_from[noun] += 1
                apart.append((verb.english_lemma, noun.english))
    return frozenset(apart)


def generate(seed: int = 1, size: int = DEFAULT_SIZE, languages: Sequence[str] = ("de",)) -> dict[str, list[Sentence]]:
    """Return the splits of a corpus: `size` distinct sentences in all, and the phrases at the start of `train`. The
    same version, seed, size and target languages give the same corpus.
    """
    draws = Draws(seed)
    apart = held_out_pairs(seed)
    splits: dict[str, list[Sentence]] = {name: [] for name in SPLITS}
    splits["train"] += PHRASES * PHRASE_REPEATS
    sources = {phrase.source for phrase in PHRASES}
    split_of_target = {phrase.translation(language): "train" for phrase in PHRASES for language in languages}
    words: set[tuple[str, str]] = set()  # language and words of the training split
    while len(sources) < size + len(PHRASES):
        sentence = draw_sentence(draws)
        share = draws.random()  # always drawn, so that a repeated sentence changes nothing after it
        if sentence.source in sources:
            continue
        own_words = {("English", word) for word in re.findall(r"\w+", sentence.source)}
        targets = [sentence.translation(language) for language in languages]
        for language, target in zip(languages, targets, strict=True):
            own_words |= {(language, word) for word in re.findall(r"\w+", target)}
        # Two English sentences may share a translation; they stay together, or training would show the answer.
        known = {split_of_target[target] for target in targets if target in split_of_target}
        if len(known) > 1:
            continue
        if known:
            (split,) = known
        elif sentence.verb_object in apart:
            split = "unseen_pairs"
        elif share < VALIDATION_SHARE:
            split = "validation"
        else:
            split = "test" if share < VALIDATION_SHARE + TEST_SHARE else "train"
        if split != "train" and not own_words <= words:
            if split == "unseen_pairs" or known:
                continue
            split = "train"
        if split == "train":
            words.update(own_words)
        sources.add(sentence.source)
        split_of_target |= dict.fromkeys(targets, split)
        splits[split].append(sentence)
    return splits
