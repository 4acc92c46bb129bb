"""What everything stands on: language, errors, files, seeds."""
