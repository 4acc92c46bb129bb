"""The full-screen app (Textual)."""

import os

# Textual waits up to two frames between two paints: at its usual 60 a second, a key pressed while the charts are
# redrawn would wait 33 ms longer. Must be set before Textual is imported.
os.environ.setdefault("TEXTUAL_FPS", "240")
