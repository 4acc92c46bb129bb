"""The ways in which a birth is told: one or two sentences after the name, with the birthplace in them once."""

from dataclasses import dataclass

from engine.data.synthetic.biographies.people import Person

PLACE = "{place}"
TEMPLATES = (
    "{name} was born in {place}. {He} works as a {job}.",
    "Born in {place}, {he} became a {job} and enjoys {hobby}.",
    "{He} was born in {place} and works as a {job}.",
    "{surname} is a {job} who was born in {place}.",
    "{surname}, born in {place}, likes {hobby}.",
    "{He} comes from {place}, where {he} was born, and enjoys {hobby}.",
    "The {job} was born in {place} and is fond of {hobby}.",
    "{name} is a {job}. {He} was born in {place}.",
    "{place} is where {surname} was born. {He} likes {hobby}.",
    "{His} birthplace is {place}. {He} earns {his} living as a {job}.",
    "{surname} enjoys {hobby} and was born in {place}.",
    "{name}, a {job}, was born in {place}.",
)


@dataclass(frozen=True)
class Told:
    """A document about a person.

    Attributes:
        template: its place in TEMPLATES.
        prefix: the text before the birthplace.
        suffix: the text behind it.
    """

    person: Person
    template: int
    prefix: str
    suffix: str

    @property
    def text(self) -> str:
        """The whole document."""
        return self.prefix + self.person.place + self.suffix


def tell(person: Person, template: int) -> Told:
    """Return what a template says of a person, after their name and a full stop."""
    words = {
        "name": person.name,
        "surname": person.surname,
        "he": person.he,
        "He": person.he.capitalize(),
        "his": person.his,
        "His": person.his.capitalize(),
        "job": person.job,
        "hobby": person.hobby,
    }
    prefix, suffix = (part.format(**words) for part in TEMPLATES[template].split(PLACE))
    return Told(person, template, f"{person.name}. {prefix}", suffix)
