"""Fill in a template of a report or a model card: each text is escaped once, as its format needs."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import BaseLoader

Filters = Mapping[str, Callable[..., str]]
Brackets = tuple[str, str, str, str, str, str]
BRACES = ("{%", "%}", "{{", "}}", "{#", "#}")


def filled(
    package: str,
    name: str,
    escape: Callable[[str], str],
    filters: Filters,
    brackets: Brackets = BRACES,
    **given: Any,
) -> str:
    """Return a template of a `lab` package, filled in; what a filter returns is escaped already."""
    from jinja2 import Environment, StrictUndefined, pass_context
    from markupsafe import Markup

    # What takes the context is called when a template is filled in, never while it is compiled.
    @pass_context
    def text(_: object, value: Any) -> Any:
        return Markup(escape(value)) if isinstance(value, str) and not isinstance(value, Markup) else value

    def verbatim(found: Callable[..., str]) -> Callable[..., Markup]:
        return pass_context(lambda _, *values: Markup(found(*values)))

    made = Environment(
        *brackets,
        loader=_loader(package, brackets),
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
def _loader(package: str, brackets: Brackets) -> "BaseLoader":
    """Compile each template of a package once, whatever it is filled in with: that takes most of the time."""
    from jinja2 import Environment, PackageLoader, Template

    class Once(PackageLoader):
        def load(self, environment: Environment, name: str, globals: Any = None) -> Template:
            if name not in compiled:
                source, file, _ = self.get_source(environment, name)
                compiled[name] = environment.compile(source, name, file)
            return environment.template_class.from_code(environment, compiled[name], globals or {})

    compiled: dict[str, Any] = {}
    return Once(f"tui_transformer.lab.{package}")
