"""Texts with a class each. No torch here.

Anything wrong with a file raises an `InputError` that names the file and line.
"""
