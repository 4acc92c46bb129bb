"""Charts as numbers and cells, for the studio, the command line and reports."""
