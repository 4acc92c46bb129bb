"""Text that would command a terminal, and how to find it in what reached one."""

import re

TITLE, CLIPBOARD, LINK = "\x1b]0;pwned\x07", "\x1b]52;c;cHduZWQ=\x07", "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\"
CONTROLS = "\x1b[5;35m\x1b[2J\x1bc\x1bP1$r\x1b\\\x9b31m\x85\x90\x9d0;pwned\x9c\x00\x07\x08\x0b\x0c\r\x7f"
DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029\u200b\ufeff"
MARKUP = "[red]MARKED[/red][@click=app.quit]MARKED[/][link=http://evil]MARKED[/link]$(touch x)`x`"
SURROGATE = "\ud800"
POISON = f"{TITLE}{CLIPBOARD}{LINK}{CONTROLS}{DIRECTIONS}{MARKUP}{SURROGATE}"
INJECTION = "<script>alert(1)</script><img src=x onerror=alert(1)>\\input{/etc/passwd}\\write18{id}=1+1"

SGR = re.compile(rb"\x1b\[[0-9;]*m")
LIVE = re.compile(rb"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[[0-9]*[AK]")  # of commands that show how far they are
# What Rich and Textual themselves write: cursor, erasing, modes and what they ask the terminal.
OWN = re.compile(
    rb"\x1b\[[0-9;:?<]*[mABCDGHJKhlnuqtr]|\x1b\[[0-9;?>=]*\$?[pucq]|\x1b[78=>]|\x1b\]1[01];\?(?:\x07|\x1b\\)"
    rb"|\x1b\]22;[a-z-]*\x07|\x1bP\+q[0-9a-fA-F;]*\x1b\\|\x1b_G[^\x1b]*\x1b\\"
)
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
TAKEN_FOR_MARKUP = re.compile(r"(?<![\]\w…. \n\r])MARKED|MARKED(?=[\w ])")


def commands_in(output: bytes, own: re.Pattern[bytes] = LIVE) -> list[str]:
    """What in this output would command a terminal and is not of the program's own kind; empty where all is well.

    Args:
        output: every byte that arrived.
        own: the sequences that the program may write.
    """
    found = [repr(found) for found in re.findall(rb"\x1b\[[0-9;]*\b5;35m", output)]
    if b"pwned" in output and re.search(rb"\x1b\][0-9]+;[^\x07\x1b]*pwned", output):
        found.append("a title or a clipboard")
    try:
        text = own.sub(b"", output).decode("utf-8").replace("\r", "")
    except UnicodeDecodeError as error:
        return [*found, f"a raw byte: {output[max(0, error.start - 20) : error.end + 20]!r}"]
    for match in FORBIDDEN.finditer(text):
        found.append(f"{match[0]!r} in {text[max(0, match.start() - 60) : match.end() + 30]!r}")
    return found
