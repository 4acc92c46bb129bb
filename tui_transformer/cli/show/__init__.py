"""Look at what there is: runs, corpora, presets, comparisons, proofs."""
