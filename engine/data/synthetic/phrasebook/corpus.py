"""The corpus: sentences drawn until there are enough, and dealt out to its splits.

Three kinds of unseen text are kept from training:

* `validation` and `test`: sentences that training does not have, in either language;
* `unseen_pairs`: sentences with a verb and an object that never meet in training (nor in the other two), though
  both are known from other company. They tell a model that composes from one that remembers.

Every word form of a held-out sentence occurs in training.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from engine.data.synthetic.draws import Draws
from engine.data.synthetic.phrasebook import lexicon
from engine.data.synthetic.phrasebook.clause import NounPhrase
from engine.data.synthetic.phrasebook.lexicon import Adjective, Noun
from engine.data.synthetic.phrasebook.sentences import Sentence, draw_sentence

VERSION = "phrasebook@2"
DEFAULT_SIZE = 21_500  # different sentences in all splits
# As single lines among thousands the everyday phrases are learned late or never. What a model answers to them says
# nothing about translation, and no held-out split has them.
PHRASE_REPEATS = 20  # an epoch
SPLITS = ("train", "validation", "test", "unseen_pairs")
HELD_OUT_PAIRS = 0.1  # share of the verbs and objects that could meet
VALIDATION_SHARE, TEST_SHARE = 0.1, 0.05  # of the sentences without such a pair

VerbObject = tuple[str, str]  # English: look for, key


@dataclass(frozen=True)
class Pair:
    """A sentence and its translation.

    Attributes:
        source: English.
        target: German.
        construction: its name in `sentences.CONSTRUCTIONS`, or "phrase".
        verb_object: the verb and the noun that is its object, where there are both.
        lexemes: the English verbs, nouns and adjectives in it, each once, as a dictionary has them.
    """

    source: str
    target: str
    construction: str
    verb_object: VerbObject | None = None
    lexemes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Phrasebook:
    """A generated corpus.

    Attributes:
        version: name of the grammar and its version; the same version, seed and size give the same corpus.
        splits: the pairs of each split. `train` begins with the phrases, each PHRASE_REPEATS times.
        phrases: what is to be known by heart: `everyday` in the lexicon.
    """

    version: str
    splits: Mapping[str, tuple[Pair, ...]]
    phrases: tuple[Pair, ...]

    @cached_property
    def sha256(self) -> dict[str, str]:
        """The hash of each split as tab-separated lines."""
        return {
            name: hashlib.sha256("".join(f"{pair.source}\t{pair.target}\n" for pair in pairs).encode()).hexdigest()
            for name, pairs in self.splits.items()
        }


def held_out_pairs(seed: int) -> frozenset[VerbObject]:
    """Return the verbs and objects that are kept apart in training.

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
                apart.append((verb.lemma, noun.english))
    return frozenset(apart)


def generate(seed: int = 1, size: int = DEFAULT_SIZE) -> Phrasebook:
    """Draw a corpus.

    Args:
        seed: decides about every sentence, and about the pairs of verb and object that are held out.
        size: different sentences in all splits together, not counting the phrases.
    """
    draws = Draws(seed)
    apart = held_out_pairs(seed)
    phrases = tuple(Pair(source, target, "phrase") for source, target in lexicon.EVERYDAY)
    splits: dict[str, list[Pair]] = {name: [] for name in SPLITS}
    sources = {phrase.source for phrase in phrases}
    split_of_target = {phrase.target: "train" for phrase in phrases}
    words: set[tuple[str, str]] = set()  # languages and words of the training split
    while len(sources) < size + len(phrases):
        sentence = draw_sentence(draws)
        share = draws.random()  # drawn always, so that a sentence known already changes nothing after it
        if sentence.source in sources:
            continue
        pair = _pair(sentence)
        own_words = {("English", word) for word in re.findall(r"\w+", pair.source)}
        own_words |= {("German", word) for word in re.findall(r"\w+", pair.target)}
        # Two English sentences may have one German; they stay together, or training would show the answer.
        if pair.target in split_of_target:
            split = split_of_target[pair.target]
        elif pair.verb_object in apart:
            split = "unseen_pairs"
        elif share < VALIDATION_SHARE:
            split = "validation"
        else:
            split = "test" if share < VALIDATION_SHARE + TEST_SHARE else "train"
        if split != "train" and not own_words <= words:
            if split == "unseen_pairs" or pair.target in split_of_target:
                continue
            split = "train"
        if split == "train":
            words.update(own_words)
        sources.add(pair.source)
        split_of_target[pair.target] = split
        splits[split].append(pair)
    complete = {name: tuple(pairs) for name, pairs in splits.items()}
    complete["train"] = phrases * PHRASE_REPEATS + complete["train"]
    return Phrasebook(VERSION, MappingProxyType(complete), phrases)


def _pair(sentence: Sentence) -> Pair:
    verb_object: VerbObject | None = None
    lexemes: list[str] = []
    for clause in sentence.clauses:
        if verb_object is None and isinstance(clause.object, NounPhrase):
            verb_object = (clause.verb.lemma, clause.object.noun.english)
        lexemes.append(clause.verb.lemma)
        circumstance = clause.circumstance.nominal if clause.circumstance else None
        place = clause.place.nominal if clause.place else None
        for part in (clause.subject, clause.object, clause.recipient, clause.predicate, circumstance, place):
            if isinstance(part, NounPhrase):
                lexemes.append(part.noun.english)
            adjective = part.adjective if isinstance(part, NounPhrase) else part
            if isinstance(adjective, Adjective):
                lexemes.append(adjective.english)
    return Pair(sentence.source, sentence.target, sentence.construction, verb_object, tuple(dict.fromkeys(lexemes)))
