"""Can a run's numbers be confirmed? Its files are held against each other, and what can be repeated is repeated."""
