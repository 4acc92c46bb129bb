"""Documents and questions about them: what is pretrained on, and what is asked afterwards. No torch here.

A document is one line of text. Its text is left as it stands in the file, without its line end.
"""
