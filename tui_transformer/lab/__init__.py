"""Everything one can know or decide about runs without a screen: no Textual, no Typer, torch only inside functions."""
