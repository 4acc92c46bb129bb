"""What a comparison of runs shows, and how certain."""
