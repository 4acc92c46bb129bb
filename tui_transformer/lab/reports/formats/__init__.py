"""Formats of a report."""
