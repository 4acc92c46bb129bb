"""What a run trains for: a file per task, with its objective, batches, scorer and sampler."""
