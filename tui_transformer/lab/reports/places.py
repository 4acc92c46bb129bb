"""Names without the folders they lay in: a report tells nobody where its author keeps things."""

import re
import shlex
from collections.abc import Iterator
from pathlib import PurePosixPath, PureWindowsPath

from engine.clean import clean

_AWAY = ("--runs-dir", "--data-dir", "--out")  # where things are is for whoever repeats it
_QUOTED_PATH = re.compile(r"""(?<=["'])(?:~|[A-Za-z]:)?[\\/][^"'\n]*(?=["'])""")


def base_name(path: str) -> str:
    """The last part of an absolute path, of each of several with commas between them; anything else as it is."""
    return ",".join(_last(part) for part in path.split(","))


def _last(path: str) -> str:
    if PureWindowsPath(path).drive or "\\" in path:
        return PureWindowsPath(path).name or path
    return PurePosixPath(path).name or path if path.startswith(("/", "~")) else path


def command_line(command: str) -> str:
    """A recorded command line, quoted for a shell, without folders; as it is where it is none."""
    try:
        words = shlex.split(clean(command))
    except ValueError:
        return clean(command)
    return shlex.join([*(PurePosixPath(word).name for word in words[:1]), *_kept(words[1:])])


def _kept(words: list[str]) -> Iterator[str]:
    left = iter(words)
    for word in left:
        option, equals, value = word.partition("=")
        if option in _AWAY:
            if not equals:
                next(left, None)
        elif equals:
            yield f"{option}={base_name(value)}"
        else:
            yield base_name(word)


def without_folders(text: str) -> str:
    """A TOML file in which quoted absolute paths are names."""
    return _QUOTED_PATH.sub(lambda found: base_name(found[0]), clean(text))
