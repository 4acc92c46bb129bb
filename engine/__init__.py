"""The from-scratch Transformer engine: model, data, trainer, evaluation, run directories.

It is independent of the terminal app that uses it.
"""

from engine.threads import choose_waiting

choose_waiting()
