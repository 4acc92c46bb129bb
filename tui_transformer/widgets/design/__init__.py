"""The parts of the Design pane."""
