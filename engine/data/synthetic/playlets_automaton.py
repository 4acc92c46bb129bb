"""Playlets as states, for `belief`: the tables and draw order of `playlets.scene`, with gaps in what was seen.

A window that begins within a scene has not seen the whole cast, or which couplet of which speech it is in. Players are
exchangeable: an unknown sign or name is any that no other player is known to have, with equal probability, and the next
speaker is any of those who may speak, known or not. A test checks every character against `playlets.scene`.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from engine.data.synthetic import playlets
from engine.data.synthetic.belief import WindowFilter
from engine.data.synthetic.grammar import Choice


class Player(NamedTuple):
    """A player; "" means that the window has not shown it."""

    sign: str = ""
    name: str = ""


class State(NamedTuple):
    """A place in a scene, plus what the window has shown of what recurs later; "" and 0 mean unknown.

    Args:
        place: one of `PLACE` below.
        number: of the speech, or of the player who enters; 0: unknown.
        couplet: of the speech, from 1.
        speaker: who speaks, or enters; None before the first.
        others: the rest of the cast, sorted.
        opener: the open bracket of an aside.
        subject: of the couplet's first line.
        verb: likewise.
        rhyme: its last word.
    """

    place: str
    number: int = 0
    couplet: int = 0
    speaker: Player | None = None
    others: tuple[Player, ...] = (Player(),) * playlets.N_PLAYERS
    opener: str = ""
    subject: str = ""
    verb: str = ""
    rhyme: str = ""


Branches = Sequence[tuple[float, State]]
SCENE = State("scene")
KEEPS_NUMBER = ("enter", "entering sign", "entering name", "number")  # where the next character shows it


@cache
def _said(literal: str) -> Choice:
    return Choice({literal: 1.0})


@cache
def _weighted(*weights: tuple[str, float]) -> Choice:
    return Choice(dict(weights))


@cache
def _unused(choice: Choice, used: tuple[str, ...], after: str = "") -> Choice:
    """What is left of a choice, with a literal `after` it."""
    return Choice({literal + after: weight for literal, weight in choice.weights.items() if literal not in used})


@cache
def _mixed(choices: tuple[Choice, ...], shares: tuple[float, ...]) -> Choice:
    """One draw from a choice that is itself drawn."""
    weights: dict[str, float] = defaultdict(float)
    for choice, share in zip(choices, shares, strict=True):
        for literal, weight in choice.weights.items():
            weights[literal] += share * weight / choice.total
    return Choice(weights)


# Literals that recur.
SAID_VERBS = Choice({literal.removesuffix("s ") + ", ": weight for literal, weight in playlets.VERBS.weights.items()})
SAID_SUBJECTS = Choice({literal.strip() + ", ": weight for literal, weight in playlets.SUBJECTS.weights.items()})
CLOSED = Choice(
    {
        playlets.CLOSERS[lit[-1]] + "\n": weight
        for lit, weight in playlets.ASIDE.weights.items()
        if lit[-1] in playlets.CLOSERS
    }
)
ANY_SECOND_RHYME = _mixed(
    tuple(playlets.SECOND_RHYME.values()),
    tuple(playlets.FIRST_RHYME.weights[word] / playlets.FIRST_RHYME.total for word in playlets.SECOND_RHYME),
)
# Places where one draw leads to one next place, whatever was drawn, and is forgotten.
STRAIGHT: Mapping[str, tuple[Choice, str]] = {
    "scene": (_said("== "), "place"),
    "place": (playlets.PLACES, "time"),
    "manner": (playlets.MANNERS, "towards"),
    "towards": (playlets.TOWARDS, "close"),
    "whose subject": (playlets.WHOSE, "subject"),
    "whose rhyme": (playlets.WHOSE, "rhyme"),
    "comma": (_said(",\n"), "answer"),
    "answer": (playlets.ANSWERS, "verb again"),
    "whose second rhyme": (playlets.WHOSE, "second rhyme"),
    "deed": (playlets.DEEDS, "after exit"),
}


class PlayletsAutomaton:
    def choice(self, state: State) -> Choice:
        place = state.place
        if place in STRAIGHT:
            return STRAIGHT[place][0]
        return self._CHOICES[place](self, state)

    def after(self, state: State, literal: str) -> Branches:
        place = state.place
        if place in STRAIGHT:
            return ((1.0, state._replace(place=STRAIGHT[place][1])),)
        found = self._AFTER[place](self, state, literal)
        return ((1.0, found),) if isinstance(found, State) else found

    def knows_all(self, state: State) -> bool:
        # At a speech's number only the cast still matters.
        return state.place == "scene" or (state.place == "number" and all(all(player) for player in _cast(state)))

    @cache  # noqa: B019  one automaton lives as long as the process
    def _visits(self) -> dict[State, float]:
        """Expected visits per scene to each state, ignoring what was seen, and of their couplets and numbers."""
        onward: dict[State, dict[State, float]] = {}
        total: dict[State, float] = defaultdict(float)
        current = {SCENE: 1.0}
        while current:
            following: dict[State, float] = defaultdict(float)
            for state, p in current.items():
                total[state] += p
                if state not in onward:
                    choice = self.choice(state)
                    onward[state] = defaultdict(float)
                    for literal, weight in choice.weights.items():
                        for share, other in self.after(state, literal):
                            onward[state][_forgetful(other)] += weight / choice.total * share
                for other, share in onward[state].items():
                    if other != SCENE:
                        following[other] += p * share
            current = following
        return dict(total)

    @cache  # noqa: B019
    def stationary(self) -> Branches:
        found: dict[State, float] = defaultdict(float)
        for state, visits in self._visits().items():
            found[state if state.place in KEEPS_NUMBER else state._replace(number=0, couplet=0)] += visits
        return tuple((visits, state) for state, visits in found.items())

    @cache  # noqa: B019
    def _unknown(self, place: str, field: str) -> tuple[tuple[int, float], ...]:
        """The probability of each number or couplet at a place when nothing else is known."""
        found: dict[int, float] = defaultdict(float)
        for state, visits in self._visits().items():
            if state.place == place:
                found[getattr(state, field)] += visits
        total = sum(found.values())
        return tuple((value, visits / total) for value, visits in found.items())

    def _counted(self, state: State, field: str, by_count: Mapping[int, Choice]) -> Choice:
        """A choice that depends on a number which may be unknown."""
        known: int = getattr(state, field)
        if known:
            return by_count[known]
        counts, shares = zip(*self._unknown(state.place, field), strict=True)
        return _mixed(tuple(by_count[count] for count in counts), shares)

    def _known(self, state: State, field: str, by_count: Mapping[int, Choice], literal: str) -> Branches:
        """The state with an unknown number resolved in every way that is consistent with `literal`."""
        if getattr(state, field):
            return ((1.0, state),)
        found = [
            (share * by_count[count].weights[literal] / by_count[count].total, count)
            for count, share in self._unknown(state.place, field)
            if literal in by_count[count].weights
        ]
        total = sum(p for p, _ in found)
        if field == "number":
            return tuple((p / total, state._replace(number=count)) for p, count in found)
        return tuple((p / total, state._replace(couplet=count)) for p, count in found)

    # --- the entrance

    def _newcomer(self, state: State, literal: str) -> State:
        others = list(state.others)
        others.remove(Player())
        return state._replace(place="entering name", speaker=Player(literal), others=tuple(others))

    def _introduced(self, state: State, literal: str) -> State:
        assert state.speaker is not None
        others = tuple(sorted((*state.others, state.speaker._replace(name=literal))))
        if state.number == playlets.N_PLAYERS:
            return state._replace(place="entered", number=0, speaker=None, others=others)
        return state._replace(place="enter", number=state.number + 1, speaker=None, others=others)

    # --- a speech

    def _signs(self, state: State) -> Choice:
        """The next speaker is any of the others; an unknown sign is any that is not taken."""
        share = 1.0 / len(state.others)
        unused = _unused(playlets.SIGNS, _signs_of(state)).literals
        weights = {player.sign: share for player in state.others if player.sign}
        unknown = len(state.others) - len(weights)
        if unknown:
            weights |= {sign: unknown * share / len(unused) for sign in unused}
        return _weighted(*weights.items())

    def _speaks(self, state: State, literal: str) -> Branches:
        known = [player for player in state.others if player.sign == literal]
        candidates = known or [player for player in state.others if not player.sign]
        found: list[tuple[float, State]] = []
        for i, player in enumerate(candidates):
            others = list(state.others)
            others.remove(player)
            if i and player == candidates[i - 1]:  # identical: one hypothesis for both
                share, same = found[-1]
                found[-1] = (share + 1.0 / len(candidates), same)
                continue
            if state.speaker is not None:
                others.append(state.speaker)
            speaker = player._replace(sign=literal)
            spoken = state._replace(place="name", speaker=speaker, others=tuple(sorted(others)))
            found.append((1.0 / len(candidates), spoken))
        return tuple(found)

    def _names(self, state: State, after: str = "") -> Choice:
        assert state.speaker is not None
        if state.speaker.name:
            return _said(state.speaker.name + after)
        return _unused(playlets.NAMES, _names_of(state), after)

    def _named(self, state: State, place: str, name: str) -> State:
        assert state.speaker is not None
        return state._replace(place=place, speaker=state.speaker._replace(name=name))

    def _opened(self, state: State, literal: str) -> State:
        if literal[-1] in playlets.CLOSERS:
            return state._replace(place="manner", opener=literal[-1])
        return state._replace(place="whose subject", couplet=1)

    def _after_couplet(self, state: State, literal: str) -> Branches:
        if literal != playlets.ANOTHER:
            return ((1.0, state._replace(place="after speech", couplet=0)),)
        return tuple(
            (p, known._replace(place="whose subject", couplet=known.couplet + 1))
            for p, known in self._known(state, "couplet", playlets.AFTER_COUPLET, literal)
        )

    def _after_speech(self, state: State, literal: str) -> Branches:
        if literal not in (playlets.EXIT, playlets.GO_ON):
            return ((1.0, SCENE),)
        by_number = playlets.AFTER_SPEECH if state.place == "after speech" else playlets.AFTER_EXIT
        found = self._known(state, "number", by_number, literal)
        if literal == playlets.EXIT:
            return tuple((p, known._replace(place="exit name")) for p, known in found)
        return tuple((p, known._replace(place="number", number=known.number + 1)) for p, known in found)

    _CHOICES: Mapping[str, Callable[["PlayletsAutomaton", State], Choice]] = {
        "time": lambda self, s: playlets.TIMES,
        "enter": lambda self, s: _said("enter " if s.number == 1 else ", "),
        "entering sign": lambda self, s: _unused(playlets.SIGNS, _signs_of(s)),
        "entering name": lambda self, s: _unused(playlets.NAMES, _names_of(s)),
        "entered": lambda self, s: _said(".\n\n"),
        "number": lambda self, s: _said(f"{s.number} "),
        "sign": _signs,
        "name": _names,
        "aside": lambda self, s: playlets.ASIDE,
        "close": lambda self, s: _said(playlets.CLOSERS[s.opener] + "\n") if s.opener else CLOSED,
        "subject": lambda self, s: playlets.SUBJECTS,
        "verb": lambda self, s: playlets.VERBS,
        "rhyme": lambda self, s: playlets.FIRST_RHYME,
        "verb again": lambda self, s: _said(s.verb + ", ") if s.verb else SAID_VERBS,
        "subject again": lambda self, s: _said(s.subject + ", ") if s.subject else SAID_SUBJECTS,
        "second rhyme": lambda self, s: playlets.SECOND_RHYME[s.rhyme] if s.rhyme else ANY_SECOND_RHYME,
        "after couplet": lambda self, s: self._counted(s, "couplet", playlets.AFTER_COUPLET),
        "after speech": lambda self, s: self._counted(s, "number", playlets.AFTER_SPEECH),
        "exit name": lambda self, s: self._names(s, " "),
        "after exit": lambda self, s: self._counted(s, "number", playlets.AFTER_EXIT),
    }
    _AFTER: Mapping[str, Callable[["PlayletsAutomaton", State, str], State | Branches]] = {
        "time": lambda self, s, lit: s._replace(place="enter", number=1),
        "enter": lambda self, s, lit: s._replace(place="entering sign"),
        "entering sign": _newcomer,
        "entering name": _introduced,
        "entered": lambda self, s, lit: s._replace(place="number", number=1),
        "number": lambda self, s, lit: s._replace(place="sign"),
        "sign": _speaks,
        "name": lambda self, s, lit: self._named(s, "aside", lit),
        "aside": _opened,
        "close": lambda self, s, lit: s._replace(place="whose subject", couplet=1, opener=""),
        "subject": lambda self, s, lit: s._replace(place="verb", subject=lit.strip()),
        "verb": lambda self, s, lit: s._replace(place="whose rhyme", verb=lit.removesuffix("s ")),
        "rhyme": lambda self, s, lit: s._replace(place="comma", rhyme=lit),
        "verb again": lambda self, s, lit: s._replace(place="subject again", verb=""),
        "subject again": lambda self, s, lit: s._replace(place="whose second rhyme", subject=""),
        "second rhyme": lambda self, s, lit: s._replace(place="after couplet", rhyme=""),
        "after couplet": _after_couplet,
        "after speech": _after_speech,
        "exit name": lambda self, s, lit: self._named(s, "deed", lit.strip()),
        "after exit": _after_speech,
    }


def _cast(state: State) -> tuple[Player, ...]:
    return state.others if state.speaker is None else (*state.others, state.speaker)


def _signs_of(state: State) -> tuple[str, ...]:
    return tuple(sorted(player.sign for player in _cast(state) if player.sign))


def _names_of(state: State) -> tuple[str, ...]:
    return tuple(sorted(player.name for player in _cast(state) if player.name))


def _forgetful(state: State) -> State:
    """The state that has seen nothing of the past, with its number."""
    speaker = None if state.speaker is None else Player()
    return State(state.place, state.number, state.couplet, speaker, (Player(),) * len(state.others))


@cache
def window_filter() -> WindowFilter[State]:
    return WindowFilter(PlayletsAutomaton())
