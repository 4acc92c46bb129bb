"""Commands that prove: a run's numbers, a device, speed."""
