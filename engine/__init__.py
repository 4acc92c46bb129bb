"""The from-scratch Transformer engine: model, data, trainer, evaluation, run directories.

It knows nothing of the terminal app that uses it.
"""
