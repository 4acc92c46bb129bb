"""Benchmarks: the engine's speed against other libraries and the machine's limit."""
