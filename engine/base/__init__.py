"""What everything else builds on: language, errors, files, seeds."""
