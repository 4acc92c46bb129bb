"""A command-line mistake in one line, with the likely fix."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher, get_close_matches

from typer.exceptions import TyperException

from engine.base.command_line import PROGRAM
from engine.base.errors import comma_separated, did_you_mean
from engine.base.language import Message, tr
from engine.base.matched_messages import MatchedMessage

# What other programs call these commands.
SYNONYMS = {
    **dict.fromkeys(("train", "fit", "start", "launch"), "run"),
    **dict.fromkeys(("eval", "score", "test"), "evaluate"),
    **dict.fromkeys(("generate", "chat", "complete", "predict"), "sample"),
    **dict.fromkeys(("list", "ls", "status"), "runs"),
    **dict.fromkeys(("remove", "rm"), "delete"),
    **dict.fromkeys(("mv", "move"), "rename"),
    **dict.fromkeys(("tail", "follow", "attach"), "watch"),
    **dict.fromkeys(("study", "sweep", "grid"), "ablate"),
    **dict.fromkeys(("download", "fetch"), "data fetch"),
    **dict.fromkeys(("kill", "abort"), "stop"),
    **dict.fromkeys(("benchmark", "profile"), "bench"),
    **dict.fromkeys(("diagnose", "info", "env"), "doctor"),
    "version": "--version",
}
SET = ("--set", "-s")
NO_COMMAND = "No such command"  # how typer says it
# What typer says of a command line, translated when it is shown.
TYPERS = (
    Message("No such option: {option}"),
    Message("Missing argument {name}"),
    Message("Missing option {name}"),
    Message("Missing command"),
    Message("Option {name} requires an argument"),
    Message("Option {name} requires {n} arguments"),
    Message("Option {name} does not take a value"),
    Message("Argument {name} takes {n} values"),
)


def usage_error_line(error: TyperException, words: Sequence[str]) -> str:
    """Return what is wrong on a command line, where, and the likely fix."""
    context = getattr(error, "ctx", None)
    parameter = getattr(error, "param", None)
    # Prefer the plain message: the formatted one adds its own suggestions.
    message = (error.message or error.format_message()).rstrip(".")
    where = context.command_path.removeprefix(PROGRAM).strip() if context is not None else ""
    wrong = getattr(error, "option_name", None)
    flags = [] if context is None else [flag for known in context.command.params for flag in known.opts]
    if wrong is not None and context is not None:
        message = tr(MatchedMessage(message)) + (_suggest_setting(wrong, flags, words) or did_you_mean(wrong, flags))
    elif context is not None and message.startswith(NO_COMMAND):
        wrong = message.removeprefix(NO_COMMAND).split("'. Did you mean '")[0].strip(" '\"")
        commands = [name for name, known in context.command.commands.items() if not known.hidden]
        hint = _suggest_command(wrong, commands, where)
        message = tr("no such command '{wrong}'{command}", wrong=wrong, command=hint)
    elif extra := re.fullmatch(r"Got unexpected extra argument\S* \((.*)\)", message, re.DOTALL):
        word = extra[1].split(" ")[0]
        hint = _suggest_option(word, flags, words)
        message = tr("unexpected argument '{word}'{misplaced}", word=word[:80], misplaced=hint)
    elif parameter is not None and error.message:
        from engine.config.toml import translate_pydantic

        name = parameter.opts[-1] if parameter.param_type_name == "option" else str(parameter.name)
        message = translate_pydantic(message)
        message = f"{name}: {message}" if name not in message else message
    else:
        message = tr(MatchedMessage(message))
    return f"{where}: {message}" if where else message


def _suggest_command(wrong: str, commands: Sequence[str], where: str) -> str:
    elsewhere = [word for word in SYNONYMS if len(word) > 3 or word == wrong]  # short words resemble everything
    called = [] if where else get_close_matches(wrong, elsewhere, n=1, cutoff=0.75)
    close = get_close_matches(wrong, commands, n=1, cutoff=0.75)
    if called and (not close or _alike(wrong, called[0]) > _alike(wrong, close[0])):
        return tr("; did you mean '{elsewhere}'?", elsewhere=SYNONYMS[called[0]])
    return did_you_mean(wrong, commands) or tr("; commands: {commands}", commands=comma_separated(commands))


def _alike(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()


def _suggest_setting(wrong: str, flags: Sequence[str], words: Sequence[str]) -> str:
    """`--steps 100` for `--set train.steps=100`."""
    from engine.config.keys import closest_key

    name = wrong.lstrip("-").replace("-", "_")
    key = closest_key(name) if SET[0] in flags else ""
    flag = max((_alike(name, flag.lstrip("-")) for flag in flags), default=0.0)
    if not key or _alike(name, key.split(".")[-1]) <= flag:
        return ""
    given = next((word for word in words if word.split("=")[0] == wrong), wrong)
    following = words[words.index(given) + 1 :] if given in words else []
    value = given.partition("=")[2] or (following[0] if following and not following[0].startswith("-") else "VALUE")
    return tr("; did you mean --set {key}={value}?", key=key, value=value)


def _suggest_option(word: str, flags: Sequence[str], words: Sequence[str]) -> str:
    before = words[: words.index(word)] if word in words else []
    if len(before) > 1 and before[-2] in SET and "=" not in before[-1]:
        return tr("; did you mean --set {before}={word}?", before=before[-1], word=word)
    if SET[0] in flags and "=" in word:
        return tr("; did you mean --set {word}?", word=word)
    if "--preset" in flags:
        from engine.config.presets import list_presets

        found = did_you_mean(word, [preset.name for preset in list_presets()])
        if found:
            return tr("; did you mean --preset {found}?", found=found.split(chr(39))[1])
        return tr("; name a preset with --preset")
    return ""
