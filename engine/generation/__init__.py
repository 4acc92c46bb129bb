"""Generate text with a trained model."""
