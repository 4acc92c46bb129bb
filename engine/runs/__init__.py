"""The run directory: the only interface between training and its readers. No torch here."""
