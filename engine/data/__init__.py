"""Text in, batches out: corpora, tokenizers, objectives, loaders."""
