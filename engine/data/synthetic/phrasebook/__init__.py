"""Phrasebook: a parallel corpus, English to German, from a grammar with real agreement; `corpus.generate` draws it."""
