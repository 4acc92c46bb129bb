"""The one loop, its optimizer and its checkpoints."""
