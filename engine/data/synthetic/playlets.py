"""Playlets: short scenes of rhymed stage dialogue, whose dependencies have known reach and a known optimum.

    == the mill, at dusk ==
    enter * Lear, + Viola, @ Juno.

    1 + Viola: (hums to the moon)
    my fox guards the hill,
    so guard, fox, our mill.
    [Viola bows.]

What must be remembered: who speaks (recall), the rhyme, the kind of bracket, the number of the last speech
(counter), whose sign is whose (bind), and the words that the second line of a couplet takes up again. All the
rest is drawn from the tables below, so the loss of a perfect model is known exactly. Capitals occur in names
only.

Changing a table, a weight or the order of draws changes the text of every seed: change VERSION with it.
"""

from dataclasses import dataclass
from functools import cache

from engine.data.synthetic import grammar
from engine.data.synthetic.grammar import Choice, GeneratedText, ProbeKind, Writer

VERSION = "playlets@1"
DEFAULT_SIZE = 1_000_000  # characters
ALPHABET = "\n !#%&()*+,.123456:;<=>@ABCDFHJLMOPV[]abcdefghiklmnopqrstuvwxy{}"


def _words(words: str, after: str = " ") -> Choice:
    """Return equally likely words (`_` is a space); what stands `after` them keeps them prefix-free."""
    return Choice({word.replace("_", " ") + after: 1.0 for word in words.split()})


# The entrance. Names have unique initials, so a name is known from its first letter.
PLACES = _words(
    "the_mill the_tower the_forest the_harbor the_court the_shore a_garden a_tavern a_chapel a_bridge"
    " a_cellar a_market",
    ", ",
)
TIMES = _words("at_dawn at_noon at_dusk by_night in_may in_winter in_snow in_rain in_fog at_last", " ==\n")
SIGNS = _words("* + @ # % &")
NAMES = _words("Ariel Bottom Celia Duncan Feste Hero Juno Lear Miranda Oberon Portia Viola", "")
N_PLAYERS = 3

# An aside may follow the speaker's name.
ASIDE = Choice({":\n": 0.7, ": (": 0.1, ": {": 0.1, ": <": 0.1})
CLOSERS = {"(": ")", "{": "}", "<": ">"}
MANNERS = _words("bows hums kneels laughs nods sighs sings turns weeps whispers")
TOWARDS = _words("low alone aside softly to_the_moon to_the_crowd to_no_one in_the_dark", "")

# A couplet: "my fox guards the hill," is answered by "so guard, fox, our mill."
WHOSE = _words("the my thy our his her this that one no")
SUBJECTS = _words(
    "king queen fool ghost moon rose swan wind star owl lute crown ship fox dove page bard wolf lamp hare"
    " clown wave tree thief rain drum bear lord oak sea crow bee goat cat nun smith monk snail frog child sun"
    " lark cook maid giant elf duke ox"
)
VERBS = _words(
    "love seek fear find keep haunt mourn hear greet praise leave want need hold guard curse serve ring rule"
    " break call chase climb feed paint steal meet save spare share show warn know visit mock wake sell lose"
    " bring lend",
    "s ",
)
ANSWERS = _words("and so then now come but yet oh go pray still do")

# Within a class the letters before the vowel tell the words apart. The classes share most of these letters,
# so that they seldom give the class away.
RHYMES = (
    ("ay", "b d h r sw tr w"),
    ("ell", "b c d sw w"),
    ("ill", "b d gr h m r s tr w"),
    ("ound", "b gr h m r s"),
    ("ust", "b d g r tr"),
)
RHYME_CLASS = {onset + ending: ending for ending, onsets in RHYMES for onset in onsets.split()}
FIRST_RHYME = Choice(  # equally likely classes
    {onset + ending: 1 / len(onsets.split()) for ending, onsets in RHYMES for onset in onsets.split()}
)
SECOND_RHYME = {  # rhymes with the first, but is not the first
    first: Choice({word: 1.0 for word, ending in RHYME_CLASS.items() if ending == mine and word != first})
    for first, mine in RHYME_CLASS.items()
}

# The mark after a couplet says whether another one follows.
ANOTHER, FULL_STOP, CRY = ";\n", ".\n", "!\n"
P_ANOTHER = {1: 0.25, 2: 0.25, 3: 0.0}  # by couplets spoken so far

# After a speech: its speaker's exit; or a blank line, and the next speech; or the end of the scene.
EXIT, GO_ON, CURTAIN = "[", "\n", "curtain.\n\n"
P_EXIT = 0.5
P_GO_ON = {1: 1.0, 2: 1.0, 3: 3 / 4, 4: 2 / 3, 5: 1 / 2, 6: 0.0}  # by speeches so far: 3 to 6, equally often
MEAN_SPEECHES = 4.5
DEEDS = _words("bows leaves weeps kneels dances waits runs_off falls_asleep walks_away sits_down", ".]\n")


def _possible(weights: dict[str, float]) -> Choice:
    return Choice({literal: weight for literal, weight in weights.items() if weight > 0})


AFTER_COUPLET = {
    n: _possible({ANOTHER: more, FULL_STOP: 0.7 * (1 - more), CRY: 0.3 * (1 - more)}) for n, more in P_ANOTHER.items()
}
AFTER_SPEECH = {
    n: _possible({EXIT: P_EXIT, GO_ON: (1 - P_EXIT) * more, CURTAIN: (1 - P_EXIT) * (1 - more)})
    for n, more in P_GO_ON.items()
}
AFTER_EXIT = {n: _possible({GO_ON: more, CURTAIN: 1 - more}) for n, more in P_GO_ON.items()}


def _best_vowel_guess() -> float:
    """Return the accuracy of guessing the second rhyme's vowel from the letters before it alone."""
    p: dict[str, dict[str, float]] = {}  # letters before the vowel -> vowel -> probability of both
    for first, choice in SECOND_RHYME.items():
        p_word = FIRST_RHYME.weights[first] / FIRST_RHYME.total / len(choice.literals)
        for word in choice.literals:
            ending = RHYME_CLASS[word]
            vowels = p.setdefault(word.removesuffix(ending), {})
            vowels[ending[0]] = vowels.get(ending[0], 0.0) + p_word
    return sum(max(vowels.values()) for vowels in p.values())


ANY_NAME = 1 / len(NAMES.literals)
# Nobody speaks twice running: one of three players opens, one of two others goes on.
NOT_THE_LAST = (1 / N_PLAYERS + (MEAN_SPEECHES - 1) / (N_PLAYERS - 1)) / MEAN_SPEECHES
ANY_NUMBER = 1 / (MEAN_SPEECHES - 1)  # the share of 2, and of 3, among the numbers from 2 on
ANY_BRACKET = 1 / len(CLOSERS)
# Borders of stretches of distance, characters: ten million characters of playlets hold no probe outside of them.
RECALL_EDGES = (48, 60, 70, 80, 95, 110, 130, 150, 170, 202)
RHYME_EDGES = (20, 24, 26, 28, 30, 34)
BRACKET_EDGES = (8, 10, 12, 14, 16, 18, 20, 24)
COUNTER_EDGES = (45, 65, 75, 85, 95, 110, 130, 150, 170, 190, 230)
BIND_EDGES = (10, 25, 50, 100, 150, 200, 250, 300, 400, 800)
PROBES = (
    ProbeKind("recall", "who is speaking: the name in the exit line", ANY_NAME, NOT_THE_LAST, RECALL_EDGES),
    ProbeKind("rhyme", "the rhyme: the vowel that ends a couplet", 1 / len(RHYMES), _best_vowel_guess(), RHYME_EDGES),
    ProbeKind("bracket", "the bracket that closes the open one", ANY_BRACKET, ANY_BRACKET, BRACKET_EDGES),
    ProbeKind("counter", "the number after the last speech's", ANY_NUMBER, ANY_NUMBER, COUNTER_EDGES),
    ProbeKind("bind", "whose sign this is: the name after it", ANY_NAME, NOT_THE_LAST, BIND_EDGES),
)


@cache
def _without(choice: Choice, *excluded: str) -> Choice:
    return choice.without(*excluded)


@cache
def _one_of(*literals: str) -> Choice:
    return Choice(dict.fromkeys(literals, 1.0))


@dataclass
class _Player:
    name: str
    last_seen: int  # offset at which the name last stood next to its sign


def scene(d: Writer) -> None:
    """Derive one scene; scenes do not depend on each other."""
    d.say("== ")
    d.draw(PLACES)
    d.draw(TIMES)
    players: dict[str, _Player] = {}  # by sign
    for before in ("enter ", *([", "] * (N_PLAYERS - 1))):
        d.say(before)
        sign = d.draw(_without(SIGNS, *players))
        name_at = d.position
        name = d.draw(_without(NAMES, *(player.name for player in players.values())))
        players[sign] = _Player(name, name_at)
    d.say(".\n\n")
    number, number_at, speaker, mark = 0, 0, "", GO_ON
    while mark == GO_ON:
        number += 1
        if number > 1:
            d.probe("counter", d.position, number_at)
        number_at = d.position
        d.say(f"{number} ")
        speaker = d.draw(_one_of(*(sign for sign in players if sign != speaker)))
        mark = _speech(d, players[speaker], number)


def _speech(d: Writer, speaker: _Player, number: int) -> str:
    """Write a speech from its speaker's name on; return GO_ON or CURTAIN."""
    d.probe("bind", d.position, speaker.last_seen)
    speaker.last_seen = d.position
    d.say(speaker.name)
    opener = d.draw(ASIDE)[-1]
    if opener in CLOSERS:
        opener_at = d.position - 1
        d.draw(MANNERS)
        d.draw(TOWARDS)
        d.probe("bracket", d.position, opener_at)
        d.say(CLOSERS[opener] + "\n")
    couplets, mark = 0, ANOTHER
    while mark == ANOTHER:
        couplets += 1
        _couplet(d)
        mark = d.draw(AFTER_COUPLET[couplets])
    mark = d.draw(AFTER_SPEECH[number])
    if mark == EXIT:
        d.probe("recall", d.position, speaker.last_seen)
        d.say(f"{speaker.name} ")
        d.draw(DEEDS)
        mark = d.draw(AFTER_EXIT[number])
    return mark


def _couplet(d: Writer) -> None:
    """Write two rhyming lines; the second takes up the verb and the subject of the first."""
    d.draw(WHOSE)
    subject = d.draw(SUBJECTS).strip()
    verb = d.draw(VERBS).removesuffix("s ")
    d.draw(WHOSE)
    first = d.draw(FIRST_RHYME)
    first_vowel = d.position - len(RHYME_CLASS[first])
    d.say(",\n")
    d.draw(ANSWERS)
    d.say(f"{verb}, {subject}, ")
    d.draw(WHOSE)
    second = d.draw(SECOND_RHYME[first])
    d.probe("rhyme", d.position - len(RHYME_CLASS[second]), first_vowel)


def generate(seed: int, n_characters: int = DEFAULT_SIZE) -> GeneratedText:
    """Write scenes from a seed: whole ones, until there are at least `n_characters` characters."""
    return grammar.write(VERSION, scene, PROBES, seed, n_characters)
