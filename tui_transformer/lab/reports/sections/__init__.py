"""Sections of a report."""
