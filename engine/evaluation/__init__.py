"""Scores that can be trusted, and the checks that say when they cannot."""
