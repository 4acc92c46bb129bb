"""Running a study: its file beside its runs, its plan, and the runner that trains its cells."""
