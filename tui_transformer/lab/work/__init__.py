"""Who trains what, where and when.

A study has cells, one run per variant, seed and stage (`study.py`, `cells.py`); a plan says what they cost (`plan.py`).
A runner trains the cells of a study (`runner.py`) or the runs of a device's queue (`queue_runner.py`), where each has a
position (`device_queue.py`). A study has one runner, or any number of workers on any machines: runners that claim a
cell before they touch it. A launcher starts workers (`launchers.py`). The studio trains in a thread of its own too
(`run_actions.py`).

Whoever it is, `spawn` in `processes.py` starts each process that trains. Three questions have one answer each, all by
`engine.runs.process.is_alive`, or by heartbeats from other machines: whether a run is training (`RunReader.liveness`),
whether a worker has it (`engine.runs.claims.liveness`), and, by a lock, whether a study or queue has a runner
(`has_runner`).
"""
