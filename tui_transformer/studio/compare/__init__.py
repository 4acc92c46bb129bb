"""The Compare pane."""
