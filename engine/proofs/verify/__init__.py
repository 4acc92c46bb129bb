"""Verify a run's numbers: compare its files with each other, and repeat what can be repeated."""
