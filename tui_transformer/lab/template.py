"""Fill in a template of a report or a model card: each text is escaped once, as its format needs."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import BytecodeCache

Filters = Mapping[str, Callable[..., str]]
BRACES = ("{%", "%}", "{{", "}}", "{#", "#}")


def render_template(
    package: str,
    name: str,
    escape: Callable[[str], str],
    filters: Filters,
    brackets: tuple[str, str, str, str, str, str] = BRACES,
    **given: Any,
) -> str:
    """Return a template of a `lab` package, filled in; what a filter returns is escaped already."""
    from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
    from markupsafe import Markup

    # Whatever takes the context is called when a template is filled in, never while it is compiled.
    @pass_context
    def text(_: object, value: Any) -> Any:
        return Markup(escape(value)) if isinstance(value, str) and not isinstance(value, Markup) else value

    def verbatim(found: Callable[..., str]) -> Callable[..., Markup]:
        return pass_context(lambda _, *values: Markup(found(*values)))

    made = Environment(
        *brackets,
        loader=PackageLoader(f"tui_transformer.lab.{package}"),
        bytecode_cache=_bytecode_cache(),
        autoescape=True,
        finalize=text,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {key: verbatim(found) for key, found in filters.items()}
    made.filters["kind"] = lambda found: type(found).__name__
    return made.get_template(name).render(given)


@cache
def _bytecode_cache() -> "BytecodeCache":
    """Return a cache of this process: compiling a template takes longer than filling it in."""
    from jinja2 import BytecodeCache
    from jinja2.bccache import Bucket

    class InMemory(BytecodeCache):
        def load_bytecode(self, bucket: Bucket) -> None:
            bucket.code = codes.get(bucket.key)

        def dump_bytecode(self, bucket: Bucket) -> None:
            codes[bucket.key] = bucket.code

    codes: dict[str, Any] = {}
    return InMemory()
