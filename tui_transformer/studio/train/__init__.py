"""The Train pane."""
