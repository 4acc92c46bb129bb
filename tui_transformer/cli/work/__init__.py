"""Train many runs: studies, workers, queues."""
