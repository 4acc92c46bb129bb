"""Studies: variants and seeds, run one cell after another."""
