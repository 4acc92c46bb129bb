"""What the Compare pane does to runs and with them: notes, tags, the detail, exports. Everything slow, in a thread."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from textual.containers import Vertical

from engine.clean import clean_line
from engine.errors import InputError
from engine.runs.manage import check_tag, write_notes
from tui_transformer.lab.analysis.detail import detail, group_detail
from tui_transformer.lab.analysis.entry import Entry
from tui_transformer.lab.analysis.export import DATA, FORMATS, group_table, save, table
from tui_transformer.lab.analysis.verdict import VariantResult
from tui_transformer.lab.analysis.view import VARIANTS, Shown
from tui_transformer.lab.reports.formats import FORMATS as REPORTS
from tui_transformer.lab.reports.languages import LANGUAGES
from tui_transformer.lab.reports.selection import ReportSelection
from tui_transformer.studio.compare.detail_page import DetailPage
from tui_transformer.studio.compare.note_page import NotePage
from tui_transformer.studio.shared.dialog import Answer, Ask, AskText
from tui_transformer.studio.shared.palette import Palette

if TYPE_CHECKING:
    from tui_transformer.studio.app import Studio

FILE = "comparison"  # without its ending
SPOKEN = {"en": "in English", "zh": "in Chinese, 中文"}


class CompareActions(Vertical):
    """The actions of a pane that shows runs and has one chosen."""

    def current(self) -> Entry | None:
        """The run under the cursor; None where variants are shown."""
        raise NotImplementedError

    def variant(self) -> VariantResult | None:
        """The variant under the cursor; None where runs are shown."""
        raise NotImplementedError

    def what_is_shown(self) -> tuple[Shown, bool]:
        """The runs as they are shown, and whether with every setting."""
        raise NotImplementedError

    def what_is_reported(self) -> ReportSelection:
        """The study, or the runs, that a report is asked for."""
        raise NotImplementedError

    def look_now(self, run: Path) -> None:
        """A run has changed."""
        raise NotImplementedError

    def say(self, words: str, severity: str = "information") -> None:
        """A sentence in the corner."""
        cast("Studio", self.app).say(words, severity)

    def action_detail(self) -> None:
        """All about the run, or the variant."""
        entry, variant, palette = self.current(), self.variant(), Palette.of(self.app.theme_variables)
        if entry is not None:
            blocks = detail(entry, self.what_is_shown()[0].baseline)
            self.app.push_screen(DetailPage(f"{entry.name}   {entry.state}", blocks, palette))
        elif variant is not None:
            title = f"{variant.group.title}   {variant.seeds}"
            self.app.push_screen(DetailPage(title, group_detail(variant), palette))

    # Notes and tags

    def action_note(self) -> None:
        """Write a note."""
        entry = self.current()
        if entry is not None:
            kept = lambda text: None if text is None else self._change(entry, lambda: self._note(entry, text))
            self.app.push_screen(NotePage(entry.name, entry.notes), kept)

    def _note(self, entry: Entry, text: str) -> str:
        write_notes(entry.path, text=text)
        return f"{entry.name}: noted" if text else f"{entry.name} has no note now"

    def action_tags(self) -> None:
        """Change its tags."""
        entry = self.current()
        if entry is None:
            return

        def wrong(text: str) -> str:
            try:
                for tag in _tags(text):
                    check_tag(tag)
            except InputError as error:
                return str(error)
            return ""

        def tagged(text: str | None) -> None:
            if text is not None:
                self._change(entry, lambda: self._tag(entry, _tags(text)))

        asked = AskText(f"Tags of {entry.name}", ", ".join(entry.tags), text="With commas between them.", wrong=wrong)
        self.app.push_screen(asked, tagged)

    def _tag(self, entry: Entry, tags: list[str]) -> str:
        write_notes(entry.path, add=tags, remove=set(entry.tags) - set(tags))
        return f"{entry.name}: {' '.join(f'#{tag}' for tag in tags)}" if tags else f"{entry.name} has no tags now"

    def _change(self, entry: Entry, work: Callable[[], str]) -> None:
        self.run_worker(self._done(work, entry.path), group="notes", exit_on_error=False)

    async def _done(self, work: Callable[[], str], run: Path) -> None:
        try:
            self.say(await asyncio.to_thread(work))
        except (InputError, OSError) as error:
            self.say(str(error), "error")
        self.look_now(run)

    # Exports

    def action_export(self) -> None:
        """Ask for the format, then for the place."""
        shown, _ = self.what_is_shown()
        if not shown.rows:
            self.say("no run is shown that could be exported", "warning")
            return
        answers = [Answer(key, f"{kind.name}: {kind.what}") for key, kind in FORMATS.items()]
        what = shown.by.removesuffix("s")
        count = f"{len(shown.rows):,} {what}s" if len(shown.rows) > 1 else f"one {what}"
        question: Ask[str] = Ask("Export the comparison", answers, f"{count}, in the order and with the filter shown.")
        self.app.push_screen(question, self._format_chosen)

    def _format_chosen(self, key: str | None) -> None:
        if key is None:
            return
        kind = FORMATS[key]
        title = f"Write {kind.name} to"
        asked = AskText(title, str(Path.cwd() / f"{FILE}.{kind.ending}"), wrong=wrong_path)
        self.app.push_screen(asked, lambda path: self._place_chosen(key, path))

    def _place_chosen(self, key: str, text: str | None) -> None:
        if text is None:
            return
        path = Path(text).expanduser()
        if path.exists():
            answers = [Answer(False, "Keep it"), Answer(True, "Write over it")]
            question: Ask[bool] = Ask(f"{path} exists already.", answers)
            self.app.push_screen(question, lambda yes: self._export(key, path) if yes else None)
        else:
            self._export(key, path)

    def _export(self, key: str, path: Path) -> None:
        shown, everything = self.what_is_shown()
        count, what = len(shown.rows), shown.by if len(shown.rows) > 1 else shown.by.removesuffix("s")

        def work() -> str:
            made = (
                group_table(shown.variants, data=key in DATA, all_settings=everything)
                if shown.by == VARIANTS
                else table(shown.runs, shown.baseline, all_settings=everything)
            )
            save(FORMATS[key].write(made), path)
            return f"{count:,} {what} written to {path.absolute()}"

        self.run_worker(self._write(work), group="export", exit_on_error=False)

    # Reports

    def action_report(self) -> None:
        """Ask for the format and the language, then for the folder."""
        chosen = self.what_is_reported()
        if not chosen.entries:
            self.say("no run is selected that could be reported", "warning")
            return
        kinds = [(kind, language) for kind in ("html", "latex", "markdown") for language in LANGUAGES]
        answers = [Answer(key, f"{REPORTS[key[0]].name} {SPOKEN[key[1]]}: {REPORTS[key[0]].what}") for key in kinds]
        words = "What can be concluded, the model, data, settings, curves, tables, limits, and how to repeat it."
        words += f"\nRuns: {clean_line(chosen.names)}"
        question: Ask[tuple[str, str]] = Ask(f"A report on {chosen.name}", answers, words)
        self.app.push_screen(question, lambda key: self._report_chosen(chosen, key))

    def _report_chosen(self, chosen: ReportSelection, key: tuple[str, str] | None) -> None:
        if key is None:
            return
        name = "-and-".join(chosen.studies) or chosen.entries[0].name
        asked = AskText("Write the report into the folder", str(Path.cwd() / "reports" / name), wrong=wrong_folder)
        self.app.push_screen(asked, lambda folder: self._report(chosen, key, folder))

    def _report(self, chosen: ReportSelection, key: tuple[str, str], folder: str | None) -> None:
        if folder is None:
            return
        (kind, language), out = key, Path(folder).expanduser()

        def work() -> str:
            from tui_transformer.lab.reports.report import make  # matplotlib, off the event loop

            made = make(chosen.entries, chosen.studies, kind=kind, language=language, out=out, pinned=chosen.pinned)
            return f"the report is {made.main.absolute()}"

        self.say(f"writing a report on {chosen.name} …")
        self.run_worker(self._write(work), group="report", exclusive=True, exit_on_error=False)

    async def _write(self, work: Callable[[], str]) -> None:
        try:
            self.say(await asyncio.to_thread(work))
        except (InputError, OSError) as error:
            self.say(str(error), "error")


def _tags(text: str) -> list[str]:
    return list(dict.fromkeys(tag for part in text.split(",") if (tag := part.strip().lstrip("#").strip())))


def wrong_folder(text: str) -> str:
    """Why no report can be written there; "" if it can, as far as a look tells."""
    try:
        path = Path(text).expanduser()
        if not text.strip():
            return "a folder's name is needed"
        return f"{path} is a file: a report is a folder" if path.is_file() else ""
    except (OSError, ValueError, RuntimeError) as error:
        return f"this cannot be a folder: {error}"


def wrong_path(text: str) -> str:
    """Why nothing can be written there; "" if it can."""
    try:
        path = Path(text).expanduser()
        if not text.strip():
            return "a file's name is needed"
        if path.is_dir():
            return f"{path} is a folder: add a file's name"
        return "" if path.parent.is_dir() else f"there is no folder {path.parent}"
    except (OSError, ValueError, RuntimeError) as error:
        return f"this cannot be a file: {error}"
