"""The terminal studio and the command line on top of the engine."""
