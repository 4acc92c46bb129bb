"""One table of measures: a new row is enough for charts, tables, exports and verdicts, and there is no second table."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.config.measures import (
    MEASURES,
    MEASURES_BY_KEY,
    Measure,
    distance_text,
    name_without_band,
    probe_display_name,
    probe_measure,
)

ROOT = Path(__file__).parents[3]
TABLE = ROOT / "engine/config/measures.py"
KNOWN = (TABLE, ROOT / "engine/runs/record_version.py")  # which names what has been redefined
MOST = 3  # keys in one literal; more is a table

NEW_ROW = """
import sys
from pathlib import Path
import engine.config.measures as measures
row = measures.Measure("novelty", "novelty", lower_is_better=False, charted=True, tabled=True, margin=0.1)
measures.MEASURES = (*measures.MEASURES, row)
measures.MEASURES_BY_KEY["novelty"] = row

from tests.tui_transformer.lab.analysis.studies import attention, cell, standings
from tests.tui_transformer.lab.analysis.variants import entry
from tui_transformer.lab.analysis.columns import columns
from tui_transformer.lab.analysis.export import FORMATS
from tui_transformer.lab.analysis.export import variant_comparison_table
from tui_transformer.lab.analysis.export import comparison_table
from tui_transformer.lab.analysis.chart_lines import CHARTED
from tui_transformer.lab.work.study import EXPECTABLE
root = Path(sys.argv[1])
for seed in (1, 2, 3):
    cell(root, "s", "base", seed, scored={"novelty": 1.0 + seed / 100})
    cell(root, "s", "other", seed, scored={"novelty": 3.0 + seed / 90})
one = entry(root / "alone", "a", scored={"novelty": 1.5})
found = standings(root, pinned="s.base.s1")
print({
    "chart": row in CHARTED,
    "study": "novelty" in EXPECTABLE,
    "column": "novelty" in [column.key for column in columns([one], None)],
    "export": "novelty, last" in FORMATS["csv"].write(comparison_table([one], None)),
    "exported variants": "novelty, verdict"
    in FORMATS["csv"].write(variant_comparison_table(list(found.values()), data=True)),
    "judged": row in found["other"].family.measures,
    "verdict": found["other"].judgement(row).kind,
})
"""


def test_a_new_row_is_in_the_charts_the_table_the_export_and_the_verdicts(tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NEW_ROW, str(tmp_path)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    found = ast.literal_eval(done.stdout)
    assert found.pop("verdict") == "better"
    assert all(found.values()), found


def constants(node: ast.AST) -> list[str]:
    """The texts of a literal that is written out: of a dict its keys, if all of its values are literals as well."""
    if isinstance(node, ast.Dict):
        try:
            ast.literal_eval(node)
        except ValueError:
            return []
        return [key.value for key in node.keys if isinstance(key, ast.Constant)]
    found = []
    for item in node.elts:
        inner = item.elts[0] if isinstance(item, ast.Tuple | ast.List) and item.elts else item
        inner = inner.value if isinstance(inner, ast.Starred) else inner
        found += constants(inner) if isinstance(inner, ast.Tuple | ast.List | ast.Set) else []
        found += [inner.value] if isinstance(inner, ast.Constant) else []
    return found


def tables(source: str) -> list[tuple[int, list[str]]]:
    """Where a source writes out a table of measures."""
    literals = (
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Dict | ast.Tuple | ast.List | ast.Set)
    )
    named = ((node.lineno, [key for key in constants(node) if key in MEASURES_BY_KEY]) for node in literals)
    return [(line, keys) for line, keys in named if len(set(keys)) > MOST]


def test_there_is_no_second_table_of_measures() -> None:
    paths = [
        path for room in ("engine", "tui_transformer") for path in (ROOT / room).rglob("*.py") if path not in KNOWN
    ]
    found = {path.name: tables(path.read_text(encoding="utf-8")) for path in paths}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "source",
    [
        'A = {"loss": "{:.4f}", "bleu": "", "chrf": "", "accuracy": ""}',
        'A = ("loss", "bleu", "chrf", "accuracy")',
        'A = (("loss", 1), ("bleu", 2), ("chrf", 3), ("accuracy", 4))',
    ],
)
def test_a_second_table_would_be_found(source) -> None:
    assert tables(source)


def test_every_judged_measure_says_which_difference_matters() -> None:
    assert len(MEASURES_BY_KEY) == len(MEASURES)
    for measure in MEASURES:
        assert not measure.is_compared or measure.margin > 0, measure.key
        assert measure.is_probe or measure.tolerance > (0.0, 0.0), measure.key
        assert json.loads(json.dumps(measure.exact_format.format(0.5))) and measure.brief_format.format(0.5)


def test_a_probe_is_measured_as_a_share_of_its_questions() -> None:
    found = probe_measure("recall<110")
    assert (found.key_without_band, found.unit, found.format_value(0.5)) == ("recall", "%", "50.0")
    far = probe_measure("recall>=110")
    assert (found.name, found.title, distance_text("recall<110")) == (*["near recall"] * 2, "under 110 characters back")
    assert (far.name, far.key, distance_text(far.key)) == ("far recall", "recall>=110", "110 or more characters back")
    assert (probe_measure("rhyme").name, MEASURES_BY_KEY["loss"].title, probe_measure("a<b").name) == (
        "rhyme",
        "loss",
        "a<b",
    )
    assert name_without_band("recall>=110") == "recall" and name_without_band("<odd") == "<odd"
    assert Measure("a", "a").format_value(2e6) == "2e+06"


def test_a_probe_of_a_distance_is_named_in_words_and_keeps_its_key() -> None:
    assert (probe_measure("recall<110").name, probe_measure("recall>=110").name) == ("near recall", "far recall")
    assert (
        probe_measure("recall<110").key == "recall<110"
        and probe_measure("rhyme").name == probe_display_name("rhyme") == "rhyme"
    )
    assert [probe_display_name(odd) for odd in ("<odd", "a<b", "a<1<2")] == ["<odd", "a<b", "a<1<2"]
