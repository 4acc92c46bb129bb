"""The reference pages of the documentation, made from the program's own tables: nothing is written twice.

`python -m reference FOLDER` writes them into a folder; mkdocs makes them by `hook.py`. A page is Markdown whose tables
and sentences are HTML, so that no text of the code can be taken for markup.
"""
