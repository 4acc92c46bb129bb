"""Playlets: short scenes of rhymed stage dialogue, whose dependencies have known reach and a known optimum.

    == the mill, at dusk ==
    enter * Lear, + Viola, @ Juno.

    1 + Viola: (hums to the moon)
    my fox guards the hill,
    so guard, fox, our mill.
    [Viola bows.]

What must be remembered: who speaks (recall), the rhyme, the kind of bracket, the number of the last speech (counter),
whose sign is whose (bind), and the words that the second line of a couplet takes up again. Everything else is drawn
from tables, so the loss of a perfect model is known exactly. Only names have capitals.

The grammar is written once, as `STEPS` between states. Walked from `SCENE` on, where everything is known, it writes
scenes; walked by `belief` with gaps in what was seen, it gives the probabilities of the next character. A window that
begins within a scene has not seen the whole cast, or which couplet of which speech it is in. Players are exchangeable:
an unknown sign or name is any that no other player is known to have, with equal probability, and the next speaker is
any of those who may speak, known or not.

Changing a table, a weight or the order of draws changes the text of every seed: change VERSION with it.
"""

import tomllib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from engine.base.language import Message
from engine.data.synthetic import grammar
from engine.data.synthetic.belief import WindowFilter
from engine.data.synthetic.grammar import Choice, GeneratedText, GrammarWriter, TextProbe

VERSION = "playlets@1"
DEFAULT_SIZE = 1_000_000  # characters
N_PLAYERS = 3
_TABLES = tomllib.loads(Path(__file__).with_name("playlets.toml").read_text(encoding="utf-8"))


def _words(table: str, after: str = " ") -> Choice:
    """Return equally likely words; the text `after` them keeps them prefix-free."""
    return Choice({word.replace("_", " ") + after: 1.0 for word in _TABLES[table].split()})


PLACES, TIMES = _words("places", ", "), _words("times", " ==\n")
SIGNS, NAMES = _words("signs"), _words("names", "")
ASIDE = Choice({":\n": 0.7, ": (": 0.1, ": {": 0.1, ": <": 0.1})
CLOSERS = {"(": ")", "{": "}", "<": ">"}
MANNERS, TOWARDS = _words("manners"), _words("towards", "")
WHOSE, SUBJECTS, VERBS, ANSWERS = _words("whose"), _words("subjects"), _words("verbs", "s "), _words("answers")
DEEDS = _words("deeds", ".]\n")
RHYMES: Mapping[str, list[str]] = {ending: onsets.split() for ending, onsets in _TABLES["rhymes"].items()}
RHYME_CLASS = {onset + ending: ending for ending, onsets in RHYMES.items() for onset in onsets}
FIRST_RHYME = Choice({word: 1 / len(RHYMES[ending]) for word, ending in RHYME_CLASS.items()})  # classes equally likely
SECOND_RHYME = {  # rhymes with the first, but is not the first
    first: Choice({word: 1.0 for word, ending in RHYME_CLASS.items() if ending == mine and word != first})
    for first, mine in RHYME_CLASS.items()
}

# The mark after a couplet tells whether another follows.
ANOTHER, FULL_STOP, EXCLAMATION = ";\n", ".\n", "!\n"
P_ANOTHER = {1: 0.25, 2: 0.25, 3: 0.0}  # by number of couplets so far

# After a speech: its speaker's exit; or a blank line, and the next speech; or the end of the scene.
EXIT, NEXT_SPEECH, CURTAIN = "[", "\n", "curtain.\n\n"
P_EXIT = 0.5
# By number of speeches so far: 3 to 6, equally often.
P_NEXT_SPEECH = {1: 1.0, 2: 1.0, 3: 3 / 4, 4: 2 / 3, 5: 1 / 2, 6: 0.0}
MEAN_SPEECHES = 4.5


def _positive_choice(weights: dict[str, float]) -> Choice:
    return Choice({literal: weight for literal, weight in weights.items() if weight > 0})


AFTER_COUPLET = {
    n: _positive_choice({ANOTHER: more, FULL_STOP: 0.7 * (1 - more), EXCLAMATION: 0.3 * (1 - more)})
    for n, more in P_ANOTHER.items()
}
AFTER_SPEECH = {
    n: _positive_choice({EXIT: P_EXIT, NEXT_SPEECH: (1 - P_EXIT) * more, CURTAIN: (1 - P_EXIT) * (1 - more)})
    for n, more in P_NEXT_SPEECH.items()
}
AFTER_EXIT = {n: _positive_choice({NEXT_SPEECH: more, CURTAIN: 1 - more}) for n, more in P_NEXT_SPEECH.items()}


# --- probes


def _best_vowel_guess() -> float:
    """Return the accuracy of guessing the second rhyme's vowel from the letters before it alone."""
    # Letters before the vowel → vowel → joint probability.
    p: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for first, choice in SECOND_RHYME.items():
        p_word = FIRST_RHYME.weights[first] / FIRST_RHYME.total / len(choice.options)
        for word in choice.options:
            ending = RHYME_CLASS[word]
            p[word.removesuffix(ending)][ending[0]] += p_word
    return sum(max(vowels.values()) for vowels in p.values())


ANY_NAME = 1 / len(NAMES.options)
# Nobody speaks twice in a row: one of three players opens, one of the two others continues.
SPEAKER_SHORTCUT = (1 / N_PLAYERS + (MEAN_SPEECHES - 1) / (N_PLAYERS - 1)) / MEAN_SPEECHES
ANY_NUMBER = 1 / (MEAN_SPEECHES - 1)  # the share of 2, and of 3, among the numbers from 2 on
ANY_BRACKET = 1 / len(CLOSERS)
# Borders of stretches of distance, characters: ten million characters of playlets hold no probe outside of them.
RECALL_EDGES = (48, 60, 70, 80, 95, 110, 130, 150, 170, 202)
RHYME_EDGES = (20, 24, 26, 28, 30, 34)
BRACKET_EDGES = (8, 10, 12, 14, 16, 18, 20, 24)
COUNTER_EDGES = (45, 65, 75, 85, 95, 110, 130, 150, 170, 190, 230)
BIND_EDGES = (10, 25, 50, 100, 150, 200, 250, 300, 400, 800)
PROBES = (
    TextProbe(
        "recall", Message("who is speaking: the name in the exit line"), ANY_NAME, SPEAKER_SHORTCUT, RECALL_EDGES
    ),
    TextProbe(
        "rhyme", Message("the rhyme: the vowel that ends a couplet"), 1 / len(RHYMES), _best_vowel_guess(), RHYME_EDGES
    ),
    TextProbe("bracket", Message("the bracket that closes the open one"), ANY_BRACKET, ANY_BRACKET, BRACKET_EDGES),
    TextProbe("counter", Message("the number after the previous speech's"), ANY_NUMBER, ANY_NUMBER, COUNTER_EDGES),
    TextProbe("bind", Message("whose sign this is: the name after it"), ANY_NAME, SPEAKER_SHORTCUT, BIND_EDGES),
)


# --- the grammar


class Player(NamedTuple):
    """A player; "" means not shown by the window."""

    sign: str = ""
    name: str = ""


class State(NamedTuple):
    """A place in a scene, plus what was seen that recurs later; "" and 0 mean unknown."""

    place: str  # a key of STEPS
    number: int = 0  # of the speech, or of the player who enters
    couplet: int = 0  # of the speech, from 1
    speaker: Player | None = None  # who speaks, or enters; None before the first
    others: tuple[Player, ...] = (Player(),) * N_PLAYERS  # the rest of the cast, sorted
    opener: str = ""  # the open bracket of an aside
    subject: str = ""  # of the couplet's first line
    verb: str = ""  # likewise
    rhyme: str = ""  # its last word

    @property
    def cast(self) -> tuple[Player, ...]:
        return self.others if self.speaker is None else (*self.others, self.speaker)


Branches = Sequence[tuple[float, State]]
SCENE = State("scene")
NUMBERED_PLACES = ("enter", "entering sign", "entering name", "number")  # where the next character shows it


@cache
def _certain(literal: str) -> Choice:
    return Choice({literal: 1.0})


@cache
def _weighted(*weights: tuple[str, float]) -> Choice:
    return Choice(dict(weights))


@cache
def _excluding(choice: Choice, used: tuple[str, ...], after: str = "") -> Choice:
    return Choice({literal + after: weight for literal, weight in choice.weights.items() if literal not in used})


def _unused_signs(state: State) -> Choice:
    return _excluding(SIGNS, tuple(sorted(player.sign for player in state.cast if player.sign)))


def _unused_names(state: State, after: str = "") -> Choice:
    return _excluding(NAMES, tuple(sorted(player.name for player in state.cast if player.name)), after)


@cache
def _mixture(choices: tuple[Choice, ...], shares: tuple[float, ...]) -> Choice:
    """Return one draw from a choice that is itself drawn."""
    weights: dict[str, float] = defaultdict(float)
    for choice, share in zip(choices, shares, strict=True):
        for literal, weight in choice.weights.items():
            weights[literal] += share * weight / choice.total
    return Choice(weights)


# What recurs, if the window has not shown it.
VERBS_AGAIN = Choice({literal.removesuffix("s ") + ", ": weight for literal, weight in VERBS.weights.items()})
SUBJECTS_AGAIN = Choice({literal.strip() + ", ": weight for literal, weight in SUBJECTS.weights.items()})
ANY_CLOSER = Choice({CLOSERS[lit[-1]] + "\n": p for lit, p in ASIDE.weights.items() if lit[-1] in CLOSERS})
ANY_SECOND_RHYME = _mixture(
    tuple(SECOND_RHYME.values()), tuple(FIRST_RHYME.weights[word] / FIRST_RHYME.total for word in SECOND_RHYME)
)


def _choice_by_count(field: str, by_count: Mapping[int, Choice], state: State) -> Choice:
    """Return a choice that depends on a possibly unknown number."""
    known: int = getattr(state, field)
    if known:
        return by_count[known]
    counts, shares = zip(*_count_prior(state.place, field), strict=True)
    return _mixture(tuple(by_count[count] for count in counts), shares)


def _resolve_count(state: State, field: str, by_count: Mapping[int, Choice], literal: str) -> Branches:
    """Return the state with an unknown number resolved in every way consistent with `literal`."""
    if getattr(state, field):
        return ((1.0, state),)
    found = [
        (share * by_count[count].weights[literal] / by_count[count].total, count)
        for count, share in _count_prior(state.place, field)
        if literal in by_count[count].weights
    ]
    total = sum(p for p, _ in found)
    number = field == "number"
    return tuple((p / total, state._replace(number=n) if number else state._replace(couplet=n)) for p, n in found)


def _enter_player(state: State, sign: str) -> State:
    others = list(state.others)
    others.remove(Player())
    return state._replace(place="entering name", speaker=Player(sign), others=tuple(others))


def _name_entrant(state: State, name: str) -> State:
    assert state.speaker is not None
    others = tuple(sorted((*state.others, state.speaker._replace(name=name))))
    if state.number == N_PLAYERS:
        return state._replace(place="entered", number=0, speaker=None, others=others)
    return state._replace(place="enter", number=state.number + 1, speaker=None, others=others)


def _speaker_signs(state: State) -> Choice:
    """The next speaker is any of the others; an unknown sign is any that is not taken."""
    share = 1.0 / len(state.others)
    weights = {player.sign: share for player in state.others if player.sign}
    unknown = len(state.others) - len(weights)
    if unknown:
        unused = _unused_signs(state).options
        weights |= {sign: unknown * share / len(unused) for sign in unused}
    return _weighted(*weights.items())


def _choose_speaker(state: State, sign: str) -> Branches:
    known = [player for player in state.others if player.sign == sign]
    candidates = known or [player for player in state.others if not player.sign]
    found = []
    for player in dict.fromkeys(candidates):  # identical players are one hypothesis
        others = [] if state.speaker is None else [state.speaker]
        others += state.others
        others.remove(player)
        spoken = state._replace(place="name", speaker=player._replace(sign=sign), others=tuple(sorted(others)))
        found.append((candidates.count(player) / len(candidates), spoken))
    return found


def _speaker_name_literals(state: State, after: str = "") -> Choice:
    assert state.speaker is not None
    return _certain(state.speaker.name + after) if state.speaker.name else _unused_names(state, after)


def _name_speaker(state: State, place: str, name: str) -> State:
    assert state.speaker is not None
    return state._replace(place=place, speaker=state.speaker._replace(name=name))


def _open_aside(state: State, literal: str) -> State:
    if literal[-1] in CLOSERS:
        return state._replace(place="manner", opener=literal[-1])
    return state._replace(place="whose subject", couplet=1)


def _after_couplet(state: State, literal: str) -> Branches:
    if literal != ANOTHER:
        return ((1.0, state._replace(place="after speech", couplet=0)),)
    found = _resolve_count(state, "couplet", AFTER_COUPLET, literal)
    return tuple((p, known._replace(place="whose subject", couplet=known.couplet + 1)) for p, known in found)


def _after_speech(by_number: Mapping[int, Choice], state: State, literal: str) -> Branches:
    if literal == CURTAIN:
        return ((1.0, SCENE),)
    found = _resolve_count(state, "number", by_number, literal)
    if literal == EXIT:
        return tuple((p, known._replace(place="exit name")) for p, known in found)
    return tuple((p, known._replace(place="number", number=known.number + 1)) for p, known in found)


# Place → what is drawn there, and what follows: the next place if the draw can be forgotten, else the next state, or
# several with probabilities that sum to 1 where the window leaves it open.
STEPS: Mapping[
    str,
    tuple[Choice | Callable[[State], Choice], str | Callable[[State, str], State] | Callable[[State, str], Branches]],
] = {
    "scene": (_certain("== "), "place"),
    "place": (PLACES, "time"),
    "time": (TIMES, lambda s, _: s._replace(place="enter", number=1)),
    "enter": (lambda s: _certain("enter " if s.number == 1 else ", "), "entering sign"),
    "entering sign": (_unused_signs, _enter_player),
    "entering name": (_unused_names, _name_entrant),
    "entered": (_certain(".\n\n"), lambda s, _: s._replace(place="number", number=1)),
    "number": (lambda s: _certain(f"{s.number} "), "sign"),
    "sign": (_speaker_signs, _choose_speaker),
    "name": (_speaker_name_literals, lambda s, name: _name_speaker(s, "aside", name)),
    "aside": (ASIDE, _open_aside),
    "manner": (MANNERS, "towards"),
    "towards": (TOWARDS, "close"),
    "close": (
        lambda s: _certain(CLOSERS[s.opener] + "\n") if s.opener else ANY_CLOSER,
        lambda s, _: s._replace(place="whose subject", couplet=1, opener=""),
    ),
    "whose subject": (WHOSE, "subject"),
    "subject": (SUBJECTS, lambda s, literal: s._replace(place="verb", subject=literal.strip())),
    "verb": (VERBS, lambda s, literal: s._replace(place="whose rhyme", verb=literal.removesuffix("s "))),
    "whose rhyme": (WHOSE, "rhyme"),
    "rhyme": (FIRST_RHYME, lambda s, literal: s._replace(place="comma", rhyme=literal)),
    "comma": (_certain(",\n"), "answer"),
    "answer": (ANSWERS, "verb again"),
    "verb again": (
        lambda s: _certain(s.verb + ", ") if s.verb else VERBS_AGAIN,
        lambda s, _: s._replace(place="subject again", verb=""),
    ),
    "subject again": (
        lambda s: _certain(s.subject + ", ") if s.subject else SUBJECTS_AGAIN,
        lambda s, _: s._replace(place="whose second rhyme", subject=""),
    ),
    "whose second rhyme": (WHOSE, "second rhyme"),
    "second rhyme": (
        lambda s: SECOND_RHYME[s.rhyme] if s.rhyme else ANY_SECOND_RHYME,
        lambda s, _: s._replace(place="after couplet", rhyme=""),
    ),
    "after couplet": (partial(_choice_by_count, "couplet", AFTER_COUPLET), _after_couplet),
    "after speech": (partial(_choice_by_count, "number", AFTER_SPEECH), partial(_after_speech, AFTER_SPEECH)),
    "exit name": (lambda s: _speaker_name_literals(s, " "), lambda s, name: _name_speaker(s, "deed", name.strip())),
    "deed": (DEEDS, "after exit"),
    "after exit": (partial(_choice_by_count, "number", AFTER_EXIT), partial(_after_speech, AFTER_EXIT)),
}


def choice_at(state: State) -> Choice:
    drawn = STEPS[state.place][0]
    return drawn if isinstance(drawn, Choice) else drawn(state)


def successors(state: State, literal: str) -> Branches:
    step = STEPS[state.place][1]
    if isinstance(step, str):
        return ((1.0, state._replace(place=step)),)
    found = step(state, literal)
    return ((1.0, found),) if isinstance(found, State) else found


# --- the belief of a window


@cache
def expected_visits() -> dict[State, float]:
    """Return expected visits per scene to each state, ignoring what was seen, and of their couplets and numbers."""
    onward: dict[State, dict[State, float]] = {}
    total: dict[State, float] = defaultdict(float)
    current = {SCENE: 1.0}
    while current:
        following: dict[State, float] = defaultdict(float)
        for state, p in current.items():
            total[state] += p
            if state not in onward:
                choice = choice_at(state)
                onward[state] = defaultdict(float)
                for literal, weight in choice.weights.items():
                    for share, other in successors(state, literal):
                        speaker = None if other.speaker is None else Player()
                        unseen = (Player(),) * len(other.others)
                        forgetful = State(other.place, other.number, other.couplet, speaker, unseen)
                        onward[state][forgetful] += weight / choice.total * share
            for other, share in onward[state].items():
                if other != SCENE:
                    following[other] += p * share
        current = following
    return dict(total)


@cache
def _count_prior(place: str, field: str) -> tuple[tuple[int, float], ...]:
    """Return the prior probability of each number or couplet at a place."""
    found: dict[int, float] = defaultdict(float)
    for state, visits in expected_visits().items():
        if state.place == place:
            found[getattr(state, field)] += visits
    total = sum(found.values())
    return tuple((value, visits / total) for value, visits in found.items())


def _knows_all(state: State) -> bool:
    # At a speech's number only the cast still matters.
    return state.place == "scene" or (state.place == "number" and all(all(player) for player in state.cast))


@cache
def window_filter() -> WindowFilter[State]:
    stationary: dict[State, float] = defaultdict(float)
    for state, visits in expected_visits().items():
        stationary[state if state.place in NUMBERED_PLACES else state._replace(number=0, couplet=0)] += visits
    return WindowFilter(choice_at, successors, stationary, _knows_all)


# --- writing scenes


def write_scene(d: GrammarWriter) -> None:
    """Derive one scene; scenes do not depend on each other."""
    state, place = SCENE, "scene"
    seen: dict[str, int] = {}  # sign → offset at which the name last stood next to it; in the order of entrance
    number_at = opener_at = vowel_at = 0
    while True:
        drawn, step = STEPS[place]
        choice = drawn if isinstance(drawn, Choice) else drawn(state)
        at = d.position
        sign = "" if state.speaker is None else state.speaker.sign
        if place == "entering name":
            seen[sign] = at
        elif place == "number":
            if state.number > 1:
                d.record_probe("counter", at, number_at)
            number_at = at
        elif place == "sign":
            choice = _weighted(*((one, 1.0) for one in seen if one in choice.weights))
        elif place == "name":
            d.record_probe("bind", at, seen[sign])
            seen[sign] = at
        elif place == "close":
            d.record_probe("bracket", at, opener_at)
        elif place == "exit name":
            d.record_probe("recall", at, seen[sign])
        literal = choice.options[0]
        if len(choice.options) > 1 or place == "after exit":  # uses up a random number even if certain
            literal = d.draw(choice)
        else:
            d.write_certain(literal)
        if place == "aside":
            opener_at = d.position - 1
        elif place == "rhyme":
            vowel_at = d.position - len(RHYME_CLASS[literal])
        elif place == "second rhyme":
            d.record_probe("rhyme", d.position - len(RHYME_CLASS[literal]), vowel_at)
        if isinstance(step, str):
            place = step
            continue
        following = step(state, literal)
        state = following if isinstance(following, State) else following[0][1]  # exactly one: everything is known
        place = state.place
        if place == "scene":
            return


def generate(seed: int, n_characters: int = DEFAULT_SIZE) -> GeneratedText:
    """Write whole scenes from a seed, until there are at least `n_characters` characters."""
    return grammar.generate_text(VERSION, write_scene, PROBES, seed, n_characters)
