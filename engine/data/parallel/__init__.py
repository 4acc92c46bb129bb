"""Sentences and their translations: reading them in every usual form, cutting them into splits, describing them.

The text is left as it stands in the file, without its line end: no normalisation, no change of case or of spaces. BLEU
is taken against these originals, and whoever wants another form makes it on the way to the tokenizer.
"""
