"""Scores that mean something, and the checks that say when they do not."""
