"""Who trains what, where and when: studies, their workers, queues and processes."""
