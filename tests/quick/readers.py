"""Who reads the files that are not Python: modules of the product, or the tests themselves."""

from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

PAGES = ("tests.e2e.test_documentation", "tests.reference.test_site", "tests.test_glossary")
CATALOGUE = (
    *("tui_transformer.languages", "tests.test_language", "tests.test_texts", "tests.test_glossary"),
    *("tests.tui_transformer.studio.test_in_chinese", "tests.tui_transformer.cli.test_chinese"),
)
# The first row that fits a file counts; `*` crosses folders. A file that no test reads has an empty row.
READERS: dict[str, tuple[str, ...]] = {
    "presets/studies/*.toml": ("tui_transformer.lab.work.study", "tests.test_texts"),
    "presets/*.toml": ("engine.config.presets", "tests.earlier.test_presets", "tests.test_texts"),
    "engine/data/corpora.toml": ("engine.data.known", "tests.test_texts"),
    "engine/data/parallel/languages.txt": ("engine.data.parallel.table",),
    "engine/data/synthetic/*.toml": (),  # the module beside it
    "tui_transformer/lab/reports/*.toml": ("tui_transformer.lab.reports.paper",),
    "tui_transformer/lab/reports/templates/*.j2": ("tui_transformer.lab.reports.formats",),
    "tui_transformer/lab/reports/templates/*.mplstyle": ("tui_transformer.lab.reports.figures.style",),
    "tui_transformer/lab/exports/templates/card.md.j2": ("tui_transformer.lab.exports.huggingface",),
    "tui_transformer/lab/exports/templates/package/README*": ("tui_transformer.lab.exports.package",),
    "tui_transformer/lab/exports/templates/package/*": ("tui_transformer.lab.exports.source",),
    "tui_transformer/lab/play/commands.toml": ("tui_transformer.lab.play.prompt", "tests.test_texts"),
    "tui_transformer/lab/records/badges.toml": ("tui_transformer.lab.records.badges", "tests.test_texts"),
    "tui_transformer/locale/*": CATALOGUE,
    "tui_transformer/studio/shared/keys.toml": ("tui_transformer.studio.shared.keys", "tests.test_texts"),
    "tui_transformer/studio/themes.toml": ("tui_transformer.studio.themes",),
    "tui_transformer/studio/studio.tcss": ("tui_transformer.studio.app",),
    "docs/tutorials/*.md": ("tests.tutorials.test_tutorials", *PAGES),
    "docs/zh/tutorials/*.md": ("tests.tutorials.test_tutorials", *PAGES),
    "docs/glossary.md": ("tests.test_glossary", *PAGES),
    "docs/explanation/*.md": (
        *(f"tests.engine.data.synthetic.{name}" for name in ("test_biographies", "test_bulletins")),
        *("tests.engine.data.synthetic.phrasebook.test_phrasebook_corpus", *PAGES),
    ),
    "docs/how-to/stages.md": ("tests.tui_transformer.lab.work.test_stages_files", *PAGES),
    "docs/reference/networks.md": ("tests.engine.config.test_schemes", *PAGES),
    "docs/*.svg": ("tests.e2e.test_pictures", *PAGES),
    "docs/*": PAGES,
    "*.md": PAGES,
    "mkdocs.yml": PAGES,
    "pyproject.toml": PAGES,
    "Makefile": PAGES,
    "constraints.txt": (),
    "LICENSE": (),
    ".gitignore": (),
    ".ci/*": (),
}


def readers(path: str, root: Path) -> tuple[str, ...] | None:
    """Return the modules that read a file; None if nobody says so.

    What lies beside a module of its name is read by that one, a stored screen by its test, and other files of the
    tests by the modules of their folder, or of the next one above that has some.
    """
    file = PurePosixPath(path)
    if (root / file.with_suffix(".py")).is_file():
        return (_module(file.with_suffix("")),)
    if file.parts[0] == "tests":
        test = file.parent.parent / f"test_{file.stem}"
        if file.parent.name == "screens" and (root / f"{test}.py").is_file():
            return (_module(test),)
        for folder in file.parents:
            if found := sorted((root / folder).glob("*.py")):
                return tuple(_module(folder / one.stem) for one in found if one.stem != "__init__")
    return next((found for pattern, found in READERS.items() if fnmatchcase(path, pattern)), None)


def _module(path: PurePosixPath) -> str:
    return path.as_posix().replace("/", ".")
