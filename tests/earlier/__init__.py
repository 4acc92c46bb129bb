"""What an earlier version wrote and said, kept so that later ones can be held against it.

`runs.tar.gz` has runs, studies and the settings of a studio as commit b1df0aa wrote them. `expected/` has what that
commit then printed for them, and how the runs ended that it resumed. `presets.json` has the settings of every shipped
preset, and its weights in miniature after thirty steps.

Everything here goes through the command line alone, so that files may move and be rewritten while these tests stay as
they are. What is kept is not made anew to please a change: a difference is a mistake, or a decision that the commit
which changes the expected answer gives reasons for. `make.py` says how all of it was made.
"""
