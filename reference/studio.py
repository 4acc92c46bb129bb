"""Every key of the studio, and every command of a prompt."""

from collections.abc import Iterator

from reference.markup import Html, code, heading, inline_html, page, sentence_html, table
from reference.schemas import format_number
from tui_transformer.lab.play.prompt import (
    ASKING,
    COMMANDS,
    OTHER_NAMES,
    TRANSLATING,
    WRITING,
    PromptCommand,
    PromptSetting,
)
from tui_transformer.studio.shared.keys import PANE_BINDINGS, SIGNS, WORDS

TITLES = {"everywhere": "Everywhere", "study": "Study builder"}


def keys() -> str:
    blocks = [
        "`?` in the studio lists the keys of the current pane. To change keys, press `,` and choose Keys: `enter` asks "
        "for a command's new key, and `del` restores the default. Changed keys are kept by name under `[keys]` in the "
        'settings file, whose path is shown by `?`: `launch = "f9"`.',
    ]
    for pane, bindings in PANE_BINDINGS.items():
        blocks += [
            heading(2, TITLES.get(pane, pane.capitalize()), pane, as_code=False),
            table(
                ("key", "what it does", "name"),
                [(_key_symbols(one.key), sentence_html(one.tooltip), code(one.id)) for one in bindings],
            ),
        ]
        if pane in WORDS:
            rows = [(inline_html(sign), sentence_html(text)) for sign, text in WORDS[pane].items()]
            blocks.append(table(("on the screen", "what it means"), rows))
    return page("Studio keys", *blocks)


def _key_symbols(key: str) -> Html:
    return " ".join(f"<kbd>{inline_html(SIGNS.get(sign, sign))}</kbd>" for sign in key.split(","))


def prompt() -> str:
    other = ", ".join(f"`/{name}` is `/{meant}`" for name, meant in OTHER_NAMES.items())
    return page(
        "Prompt commands",
        "What you can type after a slash in the Playground, in `sample` and in `translate`. "
        f"{other}. Any other line goes to the model.",
        heading(2, "In the Playground and sample", "text", as_code=False),
        f"<p>{sentence_html(WRITING.other_lines)} "
        f"With a run on documents and questions, {inline_html(ASKING.other_lines)}.</p>",
        table(("command", "what it does", "values", "where"), _commands(COMMANDS)),
        heading(2, "In translate", "translation", as_code=False),
        f"<p>{sentence_html(TRANSLATING.other_lines)}</p>",
        table(("command", "what it does", "values", "where"), _commands(dict(TRANSLATING.commands))),
    )


def _commands(commands: dict[str, PromptCommand]) -> Iterator[tuple[Html, ...]]:
    for name, one in commands.items():
        written = f"/{name.replace('_', '-')}"
        values = f"{format_number(one.low)} to {format_number(one.high)}" if isinstance(one, PromptSetting) else ""
        places = {"line": "not on the command line", "pane": "not in the Playground"}
        where = "<br>".join(f"{places[place]}: {inline_html(why)}" for place, why in one.why_not.items())
        shown = code(f"{written} {one.argument}".strip() if one.argument else f"{written} N" if values else written)
        yield shown, sentence_html(one.what), values, where
