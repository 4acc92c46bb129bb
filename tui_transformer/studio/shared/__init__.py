"""Widgets shared by panes."""
