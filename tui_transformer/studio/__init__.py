"""The full-screen app (Textual)."""
