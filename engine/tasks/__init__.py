"""What a run trains for: batches, scores and samples of each kind of task."""
