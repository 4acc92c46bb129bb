"""The sections of a report, each a function that yields its blocks; one without anything to say yields none."""
