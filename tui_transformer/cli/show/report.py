"""`report`: write a report on runs or a study, ready to hand in, in its own folder."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from engine.base.clean import clean_line
from engine.base.command_line import DEFAULT_RUNS_DIR
from engine.base.errors import InputError, did_you_mean, join_or
from engine.base.language import Message, language_code, tr
from tui_transformer.cli.commands import command, examples
from tui_transformer.cli.names import resolve_names
from tui_transformer.cli.options import Json, RunsDir, run_and_study_names
from tui_transformer.cli.output import print_info, print_result
from tui_transformer.lab.analysis.lists import join_choices
from tui_transformer.lab.reports.formats import FORMATS

ENGINES = {"en": "pdflatex", "zh": "xelatex"}


@command(180)
@examples(
    {
        "report demo no-pe-demo --format html": "Report on two runs.",
        "report attention --format latex --language zh": "Report on a study, in Chinese.",
    }
)
def report(
    runs: Annotated[
        list[str],
        typer.Argument(
            help="Runs, or a study. With several runs, the first is the baseline.",
            autocompletion=run_and_study_names,
        ),
    ],
    format_: Annotated[
        str, typer.Option("--format", "-f", help=join_choices(FORMATS) + ".", autocompletion=lambda: list(FORMATS))
    ] = "markdown",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Output folder; defaults to reports/NAME.")] = None,
    json: Json = False,
    runs_dir: RunsDir = DEFAULT_RUNS_DIR,
) -> None:
    """Write a report to hand in: verdict, model, data, settings, curves, tables, limits, and how to reproduce it.

    The report is in your language; `--language zh` or `--language en` overrides that.
    """
    if format_ not in FORMATS:
        raise InputError(
            Message(
                "{option} {value!r}: must be {known}{nearest}",
                option="--format",
                value=format_[:40],
                known=join_or(FORMATS),
                nearest=did_you_mean(format_, FORMATS),
            )
        )
    language = language_code()
    named = resolve_names(runs, runs_dir)
    from tui_transformer.lab.reports.report import write_report

    main, files = write_report(named.entries, named.studies, kind=format_, language=language, out=out)
    record = {"kind": "report", "format": format_, "language": language, "files": [str(path) for path in files]}
    print_result(record, clean_line(str(main)), as_json=json)
    if format_ == "latex":  # the program that makes a PDF, and whether it is here
        engine = ENGINES[language]
        needs = "" if language == "en" else tr(" and the ctex package")
        found = (
            tr("is installed") if shutil.which(engine) else tr("was not found on this machine; it comes with TeX Live")
        )
        folder, name = main.parent, main.name
        print_info(
            tr(
                "a PDF needs {engine}{package} (the program {found}); run this twice: cd {folder} && {engine} {name}",
                engine=engine,
                package=needs,
                found=found,
                folder=folder,
                name=name,
            )
        )
