"""Corpora generated from a seed, whose best possible score is known."""
