"""The Transformer itself. `visibility` and `size` need no torch; keep this file free of imports for their sake."""
