"""Documents to pretrain on, and questions about them to finetune on. No torch here.

A document is one line of text, kept as it stands in the file, without its line ending.
Anything wrong with a file raises an `InputError` that names the file and line.
"""
