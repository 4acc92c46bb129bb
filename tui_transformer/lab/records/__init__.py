"""What run directories say, as the studio and the command line show it."""
