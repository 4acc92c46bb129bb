"""Fill in a template of a report or a model card: each text is escaped once, as its format needs."""

from collections.abc import Callable, Mapping
from typing import Any

Filters = Mapping[str, Callable[..., str]]
BRACES = ("{%", "%}", "{{", "}}", "{#", "#}")


def filled(
    package: str,
    name: str,
    escape: Callable[[str], str],
    filters: Filters,
    brackets: tuple[str, str, str, str, str, str] = BRACES,
    **given: Any,
) -> str:
    """Return a template of a `lab` package, filled in; what a filter returns is escaped already."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def text(value: Any) -> Any:
        return Markup(escape(value)) if isinstance(value, str) and not isinstance(value, Markup) else value

    def verbatim(found: Callable[..., str]) -> Callable[..., Markup]:
        return lambda *values: Markup(found(*values))

    made = Environment(
        *brackets,
        loader=PackageLoader(f"tui_transformer.lab.{package}"),
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
