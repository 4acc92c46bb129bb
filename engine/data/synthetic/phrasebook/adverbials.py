"""When, how and where: the adverbials of the phrasebook, as tables."""

from engine.data.synthetic.phrasebook.lexicon import NOUN
from engine.data.synthetic.phrasebook.words import Time

TIMES = tuple(
    Time(english, german, frozenset(tenses.split()), english in ("often", "always", "sometimes"))
    for english, german, tenses in (
        ("now", "jetzt", "present"),
        ("today", "heute", "present past modal"),
        ("yesterday", "gestern", "past"),
        ("last week", "letzte Woche", "past"),
        ("tomorrow", "morgen", "modal"),
        ("next week", "nächste Woche", "modal"),
        ("on Monday", "am Montag", "past modal"),
        ("in the evening", "am Abend", "habit past modal"),
        ("every day", "jeden Tag", "habit"),
        ("often", "oft", "habit"),
        ("always", "immer", "habit"),
        ("sometimes", "manchmal", "habit"),
    )
)
TIMES_OF = {
    tense: tuple(time for time in TIMES if tense in time.tenses) for tense in ("present", "habit", "past", "modal")
}

MANNERS = {"quickly": "schnell", "slowly": "langsam", "quietly": "leise", "carefully": "vorsichtig"}

# Place · English and German preposition for where · German one for where to
_PLACES = """
garden   in  in   in
kitchen  in  in   in
room     in  in   in
house    in  in   in
school   at  in   in
town     in  in   in
village  in  in   in
park     in  in   in
forest   in  in   in
market   at  auf  auf
station  at  an   zu
"""
PLACES = tuple(
    (NOUN[noun], english, where, to)
    for noun, english, where, to in (line.split() for line in _PLACES.strip().splitlines())
)
FIXED_PLACES = {"here": "hier", "there": "dort", "at home": "zu Hause"}
FIXED_GOALS = {"home": "nach Hause"}
CONTRACTIONS = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("an", "dem"): "am",
    ("von", "dem"): "vom",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
}
