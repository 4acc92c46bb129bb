"""Choosing settings: drafts of runs and studies, and what they cost."""
