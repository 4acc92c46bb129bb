"""Parts of the screen that panes are made of."""
