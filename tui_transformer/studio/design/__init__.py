"""The Design pane."""
