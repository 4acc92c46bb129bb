"""Everything about runs that needs no screen: no Textual, no Typer, and torch imported only inside functions."""
