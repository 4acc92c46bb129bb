"""What the comments of a class say of its fields: the one beside a field, else those above it."""

import ast
import inspect
import io
import re
import tokenize
from textwrap import dedent


def field_comments(kind: type) -> dict[str, str]:
    """Return the comment of each field that a class and its bases declare, by name."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        if one.__module__.partition(".")[0] in ("engine", "tui_transformer"):
            found |= _declared_comments(one)
    return found


def _declared_comments(kind: type) -> dict[str, str]:
    source = dedent(inspect.getsource(kind))
    at = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    alone = {number for number, line in enumerate(source.splitlines(), 1) if re.match(r"\s*#", line)}
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for node in tree.body:
        name = (
            node.target
            if isinstance(node, ast.AnnAssign)
            else node.targets[0]
            if isinstance(node, ast.Assign)
            else None
        )
        if not isinstance(name, ast.Name) or node.end_lineno is None:
            continue
        beside = [at[line] for line in range(node.lineno, node.end_lineno + 1) if line in at]
        above: list[str] = []
        line = node.lineno - 1
        while line in alone:
            above.insert(0, at[line])
            line -= 1
        if beside or above:
            found[name.id] = " ".join(beside or above)
    return found
