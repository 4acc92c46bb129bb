"""What a comparison of runs says, and how sure it is."""
