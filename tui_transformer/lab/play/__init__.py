"""Writing, translating and answering with a trained run."""
