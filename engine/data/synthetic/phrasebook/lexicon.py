"""The words of the phrasebook, as tables.

The semantic classes keep verbs with objects that make sense: one eats an apple, not a house. Changing a line
changes the sentences of every seed: change `corpus.VERSION` with it.
"""

from dataclasses import replace
from typing import Literal

from engine.data.synthetic.phrasebook.words import (
    GENDERS,
    Adjective,
    Modal,
    Noun,
    Paradigm,
    Verb,
    ing_form,
    plural_of,
    present_of,
    third_person,
)

# English (or English/plural) · article · German (+ weak ending) · plural, or - · kind
_NOUNS = """
man/men             der Mann            Männer          person
woman/women         die Frau            Frauen          person
child/children      das Kind            Kinder          person
boy                 der Junge+n         Jungen          person
girl                das Mädchen         Mädchen         person
teacher             der Lehrer          Lehrer          person
student             der Student+en      Studenten       person
doctor              der Arzt            Ärzte           person
neighbour           der Nachbar+n       Nachbarn        person
gentleman/gentlemen der Herr+n          Herren          person
lady                die Dame            Damen           person
guest               der Gast            Gäste           person
friend              der Freund          Freunde         kin
brother             der Bruder          Brüder          kin
sister              die Schwester       Schwestern      kin
mother              die Mutter          -               kin
father              der Vater           -               kin
dog                 der Hund            Hunde           animal
cat                 die Katze           Katzen          animal
horse               das Pferd           Pferde          animal
bird                der Vogel           Vögel           animal
bear                der Bär+en          Bären           animal
apple               der Apfel           Äpfel           food
egg                 das Ei              Eier            food
cake                der Kuchen          Kuchen          food
potato/potatoes     die Kartoffel       Kartoffeln      food
bread               das Brot            -               food
soup                die Suppe           -               food
water               das Wasser          -               drink
milk                die Milch           -               drink
coffee              der Kaffee          -               drink
tea                 der Tee             -               drink
book                das Buch            Bücher          reading
letter              der Brief           Briefe          reading
newspaper           die Zeitung         Zeitungen       reading
story               die Geschichte      Geschichten     reading
hat                 der Hut             Hüte            clothing
jacket              die Jacke           Jacken          clothing
shirt               das Hemd            Hemden          clothing
key                 der Schlüssel       Schlüssel       thing
bag                 die Tasche          Taschen         thing
picture             das Bild            Bilder          thing
flower              die Blume           Blumen          thing
lamp                die Lampe           Lampen          thing
chair               der Stuhl           Stühle          thing
table               der Tisch           Tische          thing
umbrella            der Regenschirm     Regenschirme    thing
car                 das Auto            Autos           vehicle
bicycle             das Fahrrad         Fahrräder       vehicle
train               der Zug             Züge            transport
bus                 der Bus             Busse           transport
door                die Tür             Türen           opening
window              das Fenster         Fenster         opening
house               das Haus            Häuser          building
room                das Zimmer          Zimmer          building
kitchen             die Küche           Küchen          building
garden              der Garten          Gärten          place
station             der Bahnhof         Bahnhöfe        place
town                die Stadt           Städte          place
school              die Schule          Schulen         place
park                der Park            Parks           place
forest              der Wald            Wälder          place
market              der Markt           Märkte          place
village             das Dorf            Dörfer          place
"""

# English · German · stem before an ending, if another · what it can be said of: kinds, nouns, adults
_ADJECTIVES = """
old         alt         -       adult kin animal thing clothing reading vehicle transport building place opening
young       jung        -       kin animal adult
small       klein       -       child boy girl animal thing reading vehicle transport building place opening
big         groß        -       animal thing clothing vehicle transport building place opening
new         neu         -       opening thing clothing reading vehicle transport building
beautiful   schön       -       animal thing clothing reading building place woman lady girl child
friendly    freundlich  -       person kin animal
tired       müde        müd     person kin animal
hungry      hungrig     -       person kin animal
happy       glücklich   -       person kin
red         rot         -       clothing thing vehicle
black       schwarz     -       clothing thing vehicle animal
white       weiß        -       clothing thing vehicle animal
cheap       billig      -       clothing thing vehicle food drink
expensive   teuer       teur    clothing thing vehicle food drink
cold        kalt        -       drink food building
good        gut         -       food drink reading teacher student doctor friend neighbour
fresh       frisch      -       food drink
long        lang        -       letter story book
"""

# What a verb allows:
#   stative   present without -ing (I see)        timeless  no adverbial of time, no modal (I love)
#   place     can say where                       placed    must say where
#   to        can say where to                    with      can have company
#   by        can name the means of transport     for       can be done for someone
#   a         animals can do it                   some      its object is indefinite (I have a dog)
#   event     no present: it happens in no time   far       not within the house
#   to-only   never "return him the key"
#   quickly, slowly, quietly, carefully: how it can be done
#
# English base, past (, -ing)(, +particle) · German infinitive, er-form, participle (, ist) · objects · traits;
# by frame: the case of the object, and the preposition before it
_VERBS = {
    "accusative": """
see saw          | sehen sieht gesehen            | person kin animal thing vehicle building transport | stative place a
love loved       | lieben liebt geliebt           | person kin animal | stative timeless
know knew        | kennen kennt gekannt           | person kin story village | stative timeless
need needed      | brauchen braucht gebraucht     | thing vehicle clothing doctor | stative timeless
eat ate          | essen isst gegessen            | food | place quickly slowly
drink drank      | trinken trinkt getrunken       | drink | place quickly slowly
cook cooked      | kochen kocht gekocht           | soup egg potato | for
buy bought       | kaufen kauft gekauft           | food drink clothing thing vehicle reading house | for
sell sold        | verkaufen verkauft verkauft    | clothing thing vehicle house horse bread cake |
read read        | lesen liest gelesen            | reading | place slowly quickly quietly
write wrote      | schreiben schreibt geschrieben | letter story book | place slowly quickly for
find found       | finden findet gefunden         | thing clothing animal child letter book | place event
look looked +for | suchen sucht gesucht           | person kin thing clothing animal letter book house | place
wear wore        | tragen trägt getragen          | clothing |
wash washed      | waschen wäscht gewaschen       | clothing vehicle dog horse potato apple | carefully
open opened      | auf+machen macht aufgemacht    | door window bag letter book | carefully quickly
close closed     | zu+machen macht zugemacht      | door window bag book | carefully quietly
repair repaired  | reparieren repariert repariert | vehicle opening lamp chair table | carefully for
visit visited    | besuchen besucht besucht       | person kin |
meet met         | treffen trifft getroffen       | person kin | place
invite invited   | ein+laden lädt eingeladen      | person kin |
call called      | an+rufen ruft angerufen        | person kin |
feed fed         | füttern füttert gefüttert      | animal | place carefully
tidy tidied      | auf+räumen räumt aufgeräumt    | building garden | quickly slowly
""",
    "dative": """
help helped     | helfen hilft geholfen           | person kin animal | place
thank thanked   | danken dankt gedankt            | person kin |
follow followed | folgen folgt gefolgt ist        | person kin animal | slowly quietly a
""",
    "dative+accusative": """
give gave       | geben gibt gegeben              | thing reading food clothing drink |
show showed     | zeigen zeigt gezeigt            | thing reading clothing vehicle building animal |
send sent       | schicken schickt geschickt      | reading picture flower key hat jacket |
bring brought   | bringen bringt gebracht         | food drink thing reading clothing |
return returned | zurück+geben gibt zurückgegeben | thing book letter clothing vehicle | to-only
""",
    "auf+accusative": """
wait waited +for | warten wartet gewartet | person kin transport | place
""",
    "an+accusative": """
think thought +of | denken denkt gedacht | person kin |
""",
    "von+dative": """
dream dreamt +of | träumen träumt geträumt | person kin animal house |
""",
    "none": """
sleep slept                 | schlafen schläft geschlafen            | | place a
laugh laughed               | lachen lacht gelacht                   | | with quietly
work worked                 | arbeiten arbeitet gearbeitet           | | place with for slowly quickly
sing sang                   | singen singt gesungen                  | | place with for quietly
play played                 | spielen spielt gespielt                | | place with quietly a
live lived                  | wohnen wohnt gewohnt                   | | placed with stative timeless
stay stayed                 | bleiben bleibt geblieben ist           | | placed with a
get got getting +up         | auf+stehen steht aufgestanden ist      | | slowly quickly quietly
arrive arrived              | an+kommen kommt angekommen ist         | | by with
fall fell +asleep           | ein+schlafen schläft eingeschlafen ist | | place quickly a
go went                     | gehen geht gegangen ist                | | to with slowly
run ran running             | laufen läuft gelaufen ist              | | to quickly a
travel travelled travelling | fahren fährt gefahren ist              | | to by with far
come came                   | kommen kommt gekommen ist              | | to by with a
""",
}


def _nouns() -> tuple[Noun, ...]:
    nouns = []
    for line in _NOUNS.strip().splitlines():
        words, article, german, plural, kind = line.split()
        english, _, english_plural = words.partition("/")
        lemma, _, weak = german.partition("+")
        nouns.append(
            Noun(
                english,
                english_plural or plural_of(english),
                lemma,
                GENDERS[article],
                "" if plural == "-" else plural,
                weak,
                kind,
            )
        )
    return tuple(nouns)


NOUNS = _nouns()
NOUN = {noun.english: noun for noun in NOUNS}


def of_kinds(*kinds: str) -> tuple[Noun, ...]:
    """Return the nouns of these kinds, and the nouns of these names, in the order of the table."""
    return tuple(noun for noun in NOUNS if noun.kind in kinds or noun.english in kinds)


# Nobody calls these "mine".
NOBODYS = frozenset(
    of_kinds("man", "woman", "boy", "girl", "gentleman", "lady", "bear", "bird", "station", "park", "forest", "market")
)


def _adjectives() -> tuple[Adjective, ...]:
    adjectives = []
    for line in _ADJECTIVES.strip().splitlines():
        english, german, stem, *kinds = line.split()
        adjectives.append(Adjective(english, german, german if stem == "-" else stem, frozenset(kinds)))
    return tuple(adjectives)


ADJECTIVES = _adjectives()


def _what_it_is(noun: Noun) -> frozenset[str]:
    adult = noun.kind == "person" and noun.english not in ("child", "boy", "girl")
    return frozenset((noun.english, noun.kind, *(("adult",) if adult else ())))


ADJECTIVES_OF = {noun: tuple(each for each in ADJECTIVES if each.kinds & _what_it_is(noun)) for noun in NOUNS}
# Of a family, one at a time: no old thing is new.
FAMILIES = tuple(
    frozenset(adjective for adjective in ADJECTIVES if adjective.english in family.split())
    for family in ("old young new fresh", "small big long", "red black white", "cheap expensive")
)
STATES = tuple(adjective for adjective in ADJECTIVES if adjective.english in ("tired", "hungry", "happy"))


def _verb(line: str, frame: str = "none") -> Verb:
    english, german, objects, traits = (field.split() for field in line.split("|"))
    particle = english.pop()[1:] if english[-1].startswith("+") else ""
    base, past, *ing = english
    auxiliary: Literal["haben", "sein"] = "sein" if german[3:] == ["ist"] else "haben"
    prefix, _, infinitive = german[0].rpartition("+")
    return Verb(
        english=base,
        particle=particle,
        third=third_person(base),
        past=past,
        ing=ing[0] if ing else ing_form(base),
        infinitive=infinitive,
        prefix=prefix,
        present=present_of(infinitive, german[1]),
        participle=german[2],
        auxiliary=auxiliary,
        frame=frame,
        objects=of_kinds(*objects),
        traits=frozenset(traits),
    )


def _forms(forms: str) -> Paradigm:
    ich, du, er, wir, ihr, sie = forms.split()
    return (ich, du, er, wir, ihr, sie)


def _irregular(line: str, present: str, preterite: str = "", frame: str = "none") -> Verb:
    return replace(_verb(line, frame), present=_forms(present), preterite=_forms(preterite) if preterite else None)


SEIN = _irregular(
    "be was | sein ist gewesen ist | | stative",
    "bin bist ist sind seid sind",
    "war warst war waren wart waren",
)
HABEN = _irregular(
    "have had | haben hat gehabt | animal thing vehicle clothing house friend brother sister | stative timeless some",
    "habe hast hat haben habt haben",
    "hatte hattest hatte hatten hattet hatten",
    "accusative",
)
MOEGEN = _irregular(
    "like liked | mögen mag gemocht | person kin animal food drink clothing reading building | stative timeless",
    "mag magst mag mögen mögt mögen",
    frame="accusative",
)
WISSEN = _irregular("know knew | wissen weiß gewusst | | stative clause", "weiß weißt weiß wissen wisst wissen")
GEHOEREN = _verb("belong belonged +to | gehören gehört gehört | person kin | stative timeless", "dative")
REGNEN = _verb("rain rained | regnen regnet geregnet | | weather")
SCHNEIEN = _verb("snow snowed | schneien schneit geschneit | | weather")
CLAUSE_VERBS = (  # they say what somebody has in mind: a dass-clause follows
    WISSEN,
    _verb("think thought | denken denkt gedacht | | stative clause"),
    _verb("say said | sagen sagt gesagt | | stative clause"),
    _verb("hope hoped | hoffen hofft gehofft | | stative clause"),
)
VERBS = (
    *(_verb(line, frame) for frame, lines in _VERBS.items() for line in lines.strip().splitlines()),
    HABEN,
    MOEGEN,
)
VERB = {verb.lemma: verb for verb in VERBS}
ALL_VERBS = (*VERBS, SEIN, GEHOEREN, REGNEN, SCHNEIEN, *CLAUSE_VERBS)

MODALS = (
    Modal("can", False, "können", _forms("kann kannst kann können könnt können")),
    Modal(
        "want",
        True,
        "wollen",
        _forms("will willst will wollen wollt wollen"),
        _forms("wollte wolltest wollte wollten wolltet wollten"),
    ),
    Modal(
        "have",
        True,
        "müssen",
        _forms("muss musst muss müssen müsst müssen"),
        _forms("musste musstest musste mussten musstet mussten"),
    ),
    Modal("may", False, "dürfen", _forms("darf darfst darf dürfen dürft dürfen")),
    Modal("should", False, "sollen", _forms("sollte solltest sollte sollten solltet sollten")),
    Modal("will", False, "werden", _forms("werde wirst wird werden werdet werden")),
)

NAMES = {"Anna": "f", "Maria": "f", "Lena": "f", "Peter": "m", "Paul": "m", "Karl": "m"}
VOCATIVES = {  # what ends a sentence in which "you" is not du
    "Sie": (("sir", "mein Herr"), ("madam", "gnädige Frau")),
    "ihr": (("children", "Kinder"),),
}
