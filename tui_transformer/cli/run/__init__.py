"""Make and use one model: train, check, score, sample, translate."""
