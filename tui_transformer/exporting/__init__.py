"""Runs written down for other tools: one file a format, all in the table of `formats`."""
