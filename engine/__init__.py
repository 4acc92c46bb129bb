"""The from-scratch Transformer engine: model, data, trainer, evaluation, run directories.

It is independent of the terminal app that uses it.
"""

from engine.base.threads import set_wait_policy

set_wait_policy()  # before anything imports torch: OpenMP reads its variables once, when torch loads it
