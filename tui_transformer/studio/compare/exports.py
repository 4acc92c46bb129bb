"""What leaves Compare: an export of the comparison, or a report. Dialogs ask for it, and a thread writes it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from textual.widget import Widget

from engine.base.clean import clean_line
from engine.base.language import Message, language_code, tr, trn
from tui_transformer.lab.analysis.export import DATA_FORMATS, FORMATS, comparison_table, save, variant_comparison_table
from tui_transformer.lab.analysis.verdict import VariantResult
from tui_transformer.lab.analysis.view import ViewTable
from tui_transformer.lab.reports.formats import FORMATS as REPORTS
from tui_transformer.lab.reports.selection import ReportSelection
from tui_transformer.studio.shared.dialog import Answer, ChoiceDialog, TextDialog, confirm_overwrite
from tui_transformer.studio.shared.messages import notify, show_errors

FILE = "comparison"  # of an export, without suffix
OTHER_RUNS = ("", "")  # an answer: not a kind and a language
SPOKEN = {"en": Message("in English"), "zh": Message("in Chinese, 中文")}


async def export_comparison(
    pane: Widget, shown: ViewTable, results: Sequence[VariantResult], *, filtered: bool, all_settings: bool
) -> None:
    """Export the variants that are shown, or else the runs."""
    if not shown.rows and not results:
        notify(pane, tr("no runs to export"), "warning")
        return
    many = trn("{n} variant", "{n} variants", len(results)) if results else trn("{n} run", "{n} runs", len(shown.rows))
    answers = [Answer(key, tr("{name}: {what}", name=kind.name, what=kind.what)) for key, kind in FORMATS.items()]
    words = tr("{count}, in the order and with the filter shown.", count=many)
    if not filtered:
        words = tr("{count}, in the order shown.", count=many)
    key = await pane.app.push_screen_wait(ChoiceDialog(tr("Export the comparison"), answers, words))
    if key is None:
        return
    name = str(Path.cwd() / f"{FILE}.{FORMATS[key].ending}")
    wrong = lambda text: path_problem(text, "file")
    asked = TextDialog(tr("Write {name} to", name=FORMATS[key].name), name, wrong=wrong)
    text = await pane.app.push_screen_wait(asked)
    if text is None:
        return
    path = Path(text).expanduser()
    if not await confirm_overwrite(pane.app, path, tr("{path} already exists.", path=path)):
        return

    def export() -> None:
        made = (
            variant_comparison_table(results, data=key in DATA_FORMATS, all_settings=all_settings)
            if results
            else comparison_table(shown.runs, shown.baseline, all_settings=all_settings)
        )
        save(FORMATS[key].write(made), path)

    with show_errors(pane):
        await asyncio.to_thread(export)
        notify(pane, tr("{count} written to {path}", count=many, path=path.absolute()))


async def report(pane: Widget, scopes: Sequence[ReportSelection]) -> None:
    """Write a report on the first of these selections of runs, or on another one that is chosen in the dialog."""
    chosen = scopes[0]
    made = [
        Answer((kind, language), tr("{name} {spoken}: {what}", name=made.name, spoken=tr(spoken), what=made.what))
        for kind, made in sorted(REPORTS.items())
        for language, spoken in sorted(SPOKEN.items(), key=lambda one: one[0] != language_code())
    ]
    other = [Answer(OTHER_RUNS, tr("Other runs …"))] if len(scopes) > 1 else []
    covers = tr(
        "Covers the conclusions, model, data, settings, curves, tables, limits, and how to reproduce the results."
    )
    while True:
        words = covers + "\n" + tr("Runs: {names}", names=clean_line(chosen.joined_run_names))
        asked = ChoiceDialog(tr("A report on {name}", name=chosen.coverage_text), [*made, *other], words)
        key = await pane.app.push_screen_wait(asked)
        if key is None:
            return
        if key != OTHER_RUNS:
            break
        offered = [
            Answer(number, one.coverage_text, description=clean_line(one.joined_run_names))
            for number, one in enumerate(scopes)
        ]
        question = ChoiceDialog(tr("Runs in the report"), offered, at=scopes.index(chosen))
        number = await pane.app.push_screen_wait(question)
        chosen = chosen if number is None else scopes[number]
    kind, language = key
    folder = str(Path.cwd() / "reports" / ("-and-".join(chosen.studies) or chosen.entries[0].name))
    wrong = lambda text: path_problem(text, "folder")
    text = await pane.app.push_screen_wait(TextDialog(tr("Folder for the report"), folder, wrong=wrong))
    if text is not None:
        notify(pane, tr("writing a report on {name} …", name=chosen.coverage_text))
        writing = _write_report(pane, chosen, kind, language, Path(text).expanduser())
        pane.run_worker(writing, group="report", exclusive=True, exit_on_error=False)


async def _write_report(pane: Widget, chosen: ReportSelection, kind: str, language: str, out: Path) -> None:
    def write() -> str:
        from tui_transformer.lab.reports.report import write_report  # matplotlib, off the event loop

        main, _ = write_report(
            chosen.entries, chosen.studies, kind=kind, language=language, out=out, pinned=chosen.pinned
        )
        return tr("report written to {main}", main=main.absolute())

    with show_errors(pane):
        notify(pane, await asyncio.to_thread(write))


def path_problem(text: str, what: Literal["file", "folder"]) -> str:
    """Return why nothing can be written there; "" if it probably can."""
    try:
        path = Path(text).expanduser()
        if not text.strip():
            return tr("enter a file name") if what == "file" else tr("enter a folder name")
        if what == "folder":
            return tr("{path} is a file; a report needs a folder", path=path) if path.is_file() else ""
        if path.is_dir():
            return tr("{path} is a folder: add a file name", path=path)
        return "" if path.parent.is_dir() else tr("there is no folder {parent}", parent=path.parent)
    except (OSError, ValueError, RuntimeError) as error:
        return tr("not a valid name: {error}", error=error)
