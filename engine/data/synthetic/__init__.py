"""Corpora generated from a seed, with a known best possible score."""
