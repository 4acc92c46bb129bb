"""Reports of a study or of runs."""
