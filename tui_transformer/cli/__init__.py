"""The command line (Typer)."""
