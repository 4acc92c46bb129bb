"""A study on a real Ray of two nodes, disturbed, is the undisturbed study. Needs the package `ray`.

`pytest -m slow -s tests/tui_transformer/lab/work/test_on_ray.py` prints the figures of 200 cells with 40 kills;
set WORKERS=CELLS,KILLS for other sizes.
"""

import random
import subprocess
import sys
import time
from contextlib import suppress

import psutil
import pytest

from tests.tui_transformer.lab.work import disturbed
from tests.tui_transformer.lab.work.disturbed import workers
from tests.tui_transformer.lab.work.tiny import written

pytestmark = pytest.mark.slow
WANTED = 4  # workers asked for at once
TO_START = 20.0  # seconds that they may take


def test_a_large_study_with_many_accidents_is_the_undisturbed_study(tmp_path) -> None:
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cells, kills = disturbed.asked(200, 40)
    study, runs, chance = disturbed.large_study(cells), tmp_path / "runs", random.Random(cells)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 4})
    nodes = [cluster.add_node(num_cpus=4)]
    words = [sys.executable, "-m", "tui_transformer", "ablate", "--study", str(written(tmp_path, study))]
    words += ["--runs-dir", str(runs), "--device", "cpu", "--retry-failed", "--via", "ray"]
    words += ["--address", cluster.address, "--workers", str(WANTED)]
    log, asking = (tmp_path / "log.txt").open("ab"), list["subprocess.Popen[bytes]"]()
    asked = -TO_START

    def tend() -> None:
        nonlocal asked
        if len(workers(runs)) < WANTED // 2 and time.monotonic() > asked + TO_START:
            asking.append(subprocess.Popen(words, stdout=log, stderr=log))
            asked = time.monotonic()

    def kill() -> str:
        found = workers(runs)
        return disturbed.hit(chance.choice(found), runs, chance) if found else ""

    def die() -> str:
        cluster.remove_node(nodes.pop(), allow_graceful=False)
        nodes.append(cluster.add_node(num_cpus=4))
        return "node death"

    accidents = [*[kill] * kills, die, die]
    chance.shuffle(accidents)
    try:
        figures = disturbed.disturb(study, runs, accidents, tend, lambda: (tmp_path / "log.txt").read_text()[-5000:])
    finally:
        for one in asking:
            one.terminate()
        for worker in workers(runs):
            with suppress(psutil.Error):
                worker.kill()
        cluster.shutdown()
    disturbed.equals_the_undisturbed(study, runs, tmp_path / "alone")
    print(f"\n[ray] {figures}")
