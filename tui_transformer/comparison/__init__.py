"""Runs side by side: what is compared, what may be concluded, and how it is written down. No Textual, no torch."""
