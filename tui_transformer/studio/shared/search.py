"""How well a name matches what is searched for, wherever names are searched."""


def match_rank(name: str, words: str) -> int:
    """How well a name matches: 0 exactly, 1 at the start, 2 somewhere, 3 not at all (perhaps its description does)."""
    name, wanted = name.lower(), words.lower().strip()
    return next((at for at, so in enumerate((name == wanted, name.startswith(wanted), wanted in name)) if so), 3)
