"""Run directories, as the studio and the command line show them."""
