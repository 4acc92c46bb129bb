"""The run directory: the only interface between training and looking. No torch here."""
