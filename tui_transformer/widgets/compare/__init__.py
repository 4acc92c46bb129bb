"""Widgets of the Compare pane."""
