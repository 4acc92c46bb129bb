"""The formats of a report: each turns the same blocks into its own files, and escapes every text its way."""
