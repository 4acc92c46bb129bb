"""Exports of runs to other tools."""
