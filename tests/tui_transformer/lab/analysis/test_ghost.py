"""The run behind another: the best finished one that it can be compared with."""

import json

from tests.tui_transformer.recorded import record
from tui_transformer.lab.analysis.ghost import GhostFinder
from tui_transformer.lab.records.feed import Feed


def test_the_ghost_is_the_best_comparable_finished_run(tmp_path) -> None:
    ghosts, feed = GhostFinder(), Feed(tmp_path)
    live = record(tmp_path, "live", state="running", step=400)
    assert ghosts.find(feed.poll(live)) is None
    record(tmp_path, "stopped", state="stopped", step=400)
    for name, loss in (("good", 0.5), ("better", 0.4), ("elsewhere", 0.1), ("leaky", 0.2)):
        run = record(tmp_path, name, verdicts=[("leak", "LEAK", "it leaks")] if name == "leaky" else [])
        summary = json.loads((run / "summary.json").read_text())
        summary["last"]["loss"] = loss
        (run / "summary.json").write_text(json.dumps(summary))
    other = tmp_path / "elsewhere" / "data.json"
    other.write_text(json.dumps(json.loads(other.read_text()) | {"corpus": "tiny-shakespeare@1"}))
    found = ghosts.find(Feed(tmp_path).poll(live))
    assert found is not None and found.name == "better" and len(found.validation) == 10
