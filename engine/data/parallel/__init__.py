"""Parallel corpora: read sentence pairs in every common format, split them, and compute statistics.

Text is kept as it stands in the file, without its line ending: no normalisation, no change of case or spaces. BLEU is
computed against these originals; normalise only on the way to the tokenizer. Anything wrong with a file raises an
`InputError` that names the file and line.
"""
