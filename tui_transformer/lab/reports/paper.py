"""The report of a reproduction package: a run's report with an introduction, related work, derivations and pseudocode.

Its sections are those that course sheets ask for. What is said of a part comes from its row in `engine.config.schemes`
or `engine.config.model`, its pseudocode from `pseudocode.toml`, its papers from `references.toml`, and the rest from
`phrases/paper-CODE.toml`. What was measured is said by the sections of every report.
"""

import ast
import re
import shlex
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from engine.base.command_line import PROGRAM
from engine.base.release import version
from engine.config.model import ModelConfig, active_parts
from engine.config.schema import RunConfig
from engine.config.schemes import ATTENTIONS, NORMS, POSITIONS, SCHEMES, VASWANI, Scheme
from engine.runs.reader import RunReader
from tui_transformer.lab.analysis.entry import RunEntry
from tui_transformer.lab.analysis.language import Language
from tui_transformer.lab.formatting import duration
from tui_transformer.lab.reports.context import ReportContext, read_context
from tui_transformer.lab.reports.document import (
    Block,
    Bullets,
    Document,
    Figure,
    Formula,
    Heading,
    Inline,
    Listing,
    Math,
    Paragraph,
    Spans,
    VerdictParagraph,
)
from tui_transformer.lab.reports.figures.style import PNG, Image, chinese_font, render
from tui_transformer.lab.reports.formats import latex
from tui_transformer.lab.reports.formulas import formulas
from tui_transformer.lab.reports.languages import load_report_language as language_of
from tui_transformer.lab.reports.sections.closing import environment, limits, made_with
from tui_transformer.lab.reports.sections.first_paragraph import first_paragraph
from tui_transformer.lab.reports.sections.results import probing, results, texts, training
from tui_transformer.lab.reports.sections.setup import config_of, data, model, settings

ABLATION = ("ablate", "--study", "components", "--on", "demo", "--seeds", "5")  # suggested
ENGINES = {"en": "pdflatex", "zh": "xelatex"}
COMPILING = 120  # seconds for one pass
NETWORK = "network"  # the table of pseudocode.toml for an encoder-decoder and for classes
PARTS = "parts"  # the table of pseudocode.toml whose keys are optional parts
SHOWN = {
    "model.py": (
        ("Attention", "code.attention"),
        ("CrossAttention", "code.cross-attention"),
        ("FeedForward", "code.feed-forward"),
        ("Layer", "code.layer"),
    ),
    "data.py": (("batch_of", "code.batch"),),
}
STEP = ("train.py", "take_step", "code.step")
CROSS = (
    r"o_i = \sum_{j=1}^{T_s} \operatorname{softmax}_j\left( \frac{q_i^\top k_j}{\sqrt{d_h}} \right) v_j, \qquad "
    r"q_i = x_i W_Q, \; k_j = z_j W_K, \; v_j = z_j W_V"
)
MATH = re.compile(r"\$([^$]+)\$")


@dataclass(frozen=True)
class Package:
    """The rest of the folder that the report belongs to."""

    source: Mapping[str, str]  # its program: file name → text
    folders: tuple[str, ...]  # at its top
    documents: bool = False  # whether windows of its text end with a document


@dataclass(frozen=True)
class PaperPhrases:
    """The text of a language beside the phrases of every report."""

    sentences: Mapping[str, str]  # with named gaps
    prose: Mapping[str, str]  # with formulas between dollars

    def phrase(self, key: str, /, **values: object) -> str:
        return self.sentences[key].format(**values)

    def prose_paragraph(self, key: str) -> Paragraph:
        """Return a paragraph whose formulas are set as such."""
        spans: list[Inline] = []
        for i, piece in enumerate(MATH.split(self.prose[key])):
            if piece:
                spans.append(Math(piece) if i % 2 else piece)
        return Paragraph(tuple(spans))


def _read_toml(name: str) -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))


@cache
def paper_phrases(code: str) -> PaperPhrases:
    found = _read_toml(f"phrases/paper-{code}.toml")
    return PaperPhrases(found["say"], found["text"])


@cache
def pseudocode() -> Mapping[str, Mapping[str, str]]:
    """Return the pseudocode of each scheme by setting and name, and of each part under `PARTS`."""
    found = _read_toml("pseudocode.toml").items()
    return {key: {name: text.strip("\n") for name, text in rows.items()} for key, rows in found}


@cache
def references() -> Mapping[str, str]:
    """Return each paper by its citation."""
    return {key: str(text) for key, text in _read_toml("references.toml").items()}


def split_citations(text: str) -> list[str]:
    """Split a row's citation into papers."""
    return [part for part in text.split("; ") if part]


def compile_paper(
    entry: RunEntry, package: Package, code: str
) -> tuple[Document, Mapping[str, bytes], Mapping[str, Image], bytes | None]:
    """Return a run's report, its LaTeX files, its pictures and, where this machine has the program, its PDF."""
    spoken, font = language_of(code), chinese_font()
    drawn = spoken if font else language_of("en")
    context = read_context([entry], {}, spoken, drawn)
    document = paper_document(context, package)
    images = {figure.name: render(figure.draw, font, (PNG,)) for figure in document.figures}
    files = latex(document, images)
    return document, files, images, compile_pdf(files, code)


def compile_pdf(files: Mapping[str, bytes], code: str) -> bytes | None:
    """Compile a report, twice for its table of contents; None if the program is missing or fails."""
    engine = shutil.which(ENGINES[code])
    if engine is None:
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, content in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(content)
        try:
            for _ in range(2):
                command = [engine, "-interaction=nonstopmode", "-halt-on-error", "report.tex"]
                subprocess.run(command, cwd=folder, capture_output=True, timeout=COMPILING, check=True)
            return (folder / "report.pdf").read_bytes()
        except (OSError, subprocess.SubprocessError):
            return None


def paper_document(context: ReportContext, package: Package) -> Document:
    """Return the report of a single run, with the sections of a course sheet."""
    run, say = context.representative.group.representative, paper_phrases(context.language.code).phrase
    config = config_of(run)
    assert config is not None  # its package was refused otherwise
    declaration = say("declaration", version=version(), name=run.name)
    blocks: list[Block] = [VerdictParagraph((declaration,)), Paragraph((say("author"),))]
    if context.language is not context.picture_language:
        blocks.append(Paragraph((context.phrase("figures-in-english"),)))
    for section in (_introduction, _related, _architecture, _implementation, _setup, _results, _repeat, _conclusion):
        blocks += section(context, config, package)
    blocks.append(Heading(say("section.references")))
    found = cited_papers(repr(blocks), config)
    blocks += [Paragraph((say("reference", n=i, text=text),)) for i, text in enumerate(found, 1)]
    blocks += made_with(context)
    numbered = (context.language.phrases["numbered.figure"], context.language.phrases["numbered.table"])
    subtitle = context.language.format_count("subtitle", 1, corpora=context.language.join_list(context.corpora))
    words = context.phrase("html-language"), context.phrase("contents"), *numbered
    return Document(say("title", name=run.name), subtitle, *words, tuple(blocks))


def _introduction(context: ReportContext, config: RunConfig, package: Package) -> Iterator[Block]:
    own, run = paper_phrases(context.language.code), context.representative.group.representative
    yield Heading(own.phrase("section.introduction"))
    yield own.prose_paragraph("introduction.1")
    yield own.prose_paragraph("introduction.2")
    yield Heading(own.phrase("section.goals"), 2)
    parameters = f"{run.parameters:,}" if run.parameters is not None else "?"
    goals = (
        own.phrase("goal.size", kind=_architecture_name(context, config), parameters=parameters),
        own.phrase("goal.run", corpus=context.language.join_list(context.corpora), steps=f"{config.train.steps:,}"),
        own.phrase("goal.repeat", seed=config.seed),
    )
    yield Bullets(tuple((goal,) for goal in goals))


def _architecture_name(context: ReportContext, config: RunConfig) -> str:
    return context.phrase(f"model.{config.model.architecture}")


def _chosen(config: RunConfig) -> dict[str, list[str]]:
    """The schemes that a run uses, by setting."""
    m, o = config.model, config.optimizer
    return {
        "model.position": m.distinct_positions,
        "model.attention": m.distinct_attentions,
        "model.norm": [m.norm],
        "model.activation": [m.activation],
        "optimizer.kind": [o.kind],
        "optimizer.schedule": [o.schedule],
    }


def _related(context: ReportContext, config: RunConfig, package: Package) -> Iterator[Block]:
    own, language = paper_phrases(context.language.code), context.language
    yield Heading(own.phrase("section.related"))
    yield own.prose_paragraph("related.1")
    items: list[Spans] = []
    for key, names in _chosen(config).items():
        kind = own.phrase(f"kind.{key}")
        for name in names:
            if (row := SCHEMES[key][name]).citation:
                items.append((_about(own, language, context.bracketed(kind, name), row, row.sentence),))
    for name, part in active_parts(config.model).items():
        value = getattr(config.model, name)
        sentence = part.options.get(value, part.sentence) if isinstance(value, str) else part.sentence
        items.append((_about(own, language, language.translate(part.display_name), part, sentence),))
    yield Bullets(tuple(items))
    others = []
    for key, names in _chosen(config).items():
        rows = {name: row for name, row in SCHEMES[key].items() if name not in names and row.citation}
        said = [own.phrase("other", name=name, citation=row.citation) for name, row in rows.items()]
        if said:
            kind = own.phrase(f"kind.{key}")
            others.append((own.phrase("related.others", kind=kind, others=language.join_list(said)),))
    yield Bullets(tuple(others))


def _about(own: PaperPhrases, language: Language, title: str, row: Scheme, sentence: str) -> str:
    return own.phrase("related.used", title=title, sentence=language.translate(sentence), citation=row.citation)


# The model, derived


def _architecture(context: ReportContext, config: RunConfig, package: Package) -> Iterator[Block]:
    own, m = paper_phrases(context.language.code), config.model
    yield Heading(own.phrase("section.architecture"))
    described = list(model(context))
    formal = next(i for i, block in enumerate(described) if isinstance(block, Heading) and block.level == 2)
    yield from described[1:formal]  # the shape, the picture, the sizes
    yield described[formal + 1]  # the notation
    kinds = [kind for kind, _ in m.layer_kinds()]
    scored = [kind for kind in kinds if ATTENTIONS[kind.attention].has_scores]
    attentions, found = pseudocode()["model.attention"], _Formulas(context, config)
    if scored:
        yield Heading(own.phrase("section.scores"), 2)
        yield own.prose_paragraph("scores.1")
        scaled = any(POSITIONS[k.position].scaled for k in scored)
        yield own.prose_paragraph("scores.2" if scaled else "scores.t5")
        yield from found.by_layer_kind("attention", scored)
        yield Heading(own.phrase("section.seen"), 2)
        for name in dict.fromkeys(kind.attention for kind in scored):
            yield own.prose_paragraph(f"seen.{name}")
        yield from found.seen()
        yield from (Listing(attentions[name], name) for name in dict.fromkeys(kind.attention for kind in scored))
    if len(scored) < len(kinds):
        yield Heading(own.phrase("section.linear"), 2)
        yield own.prose_paragraph("linear.1")
        linear = [kind for kind in kinds if kind not in scored]
        yield from found.by_layer_kind("attention", linear)
        yield from (Listing(attentions[name], name) for name in dict.fromkeys(kind.attention for kind in linear))
    yield Heading(own.phrase("section.heads"), 2)
    yield own.prose_paragraph("heads.1")
    if m.kv_heads != m.n_heads:
        yield Paragraph((own.phrase("shared-heads", heads=m.n_heads, kv=m.kv_heads),))
    yield Formula(
        own.phrase("section.heads"),
        r"\operatorname{MHA}(x) = \left[\, o^{(1)} ;\; \ldots ;\; o^{(H)} \,\right] W_O, \qquad H = "
        rf"{m.n_heads}, \; d_h = {m.head_width}",
        VASWANI,
    )
    if m.architecture == "encoder-decoder":
        yield from _two_stacks(context, own)
    yield Heading(own.phrase("section.positions"), 2)
    for name in m.distinct_positions:
        yield own.prose_paragraph(f"position.{name}")
    yield from found.by_layer_kind("position", kinds)
    yield from _pseudocode_listings("model.position", m.distinct_positions)
    yield Heading(own.phrase("section.feed-forward"), 2)
    yield own.prose_paragraph("feed-forward.1")
    yield from found.of_kinds("feed-forward")
    yield from _pseudocode_listings("model.activation", [m.activation])
    yield Heading(own.phrase("section.residual"), 2)
    yield own.prose_paragraph("residual.1" if m.residual else "residual.none")
    yield own.prose_paragraph(f"norm.{m.norm}")
    if m.norm != "none":
        yield own.prose_paragraph(f"norm.{m.norm_placement}")
    if m.norm != "none" and m.final_norm:
        yield own.prose_paragraph("norm.final")
    yield from found.of_kinds("norm", "layer")
    yield from _pseudocode_listings("model.norm", [m.norm])
    if parts := active_parts(m):
        yield Heading(own.phrase("section.parts"), 2)
        for name, row in parts.items():
            value = getattr(m, name)
            sentence = row.options.get(value, row.sentence) if isinstance(value, str) else row.sentence
            said = context.language.translate(sentence)
            yield Paragraph((said[:1].upper() + said[1:] + context.phrase("full-stop"),))
            yield Formula(row.title[context.language.code], row.formula(m), row.citation)
            yield Listing(pseudocode()[PARTS][name], context.language.translate(row.display_name))
    yield Heading(own.phrase("section.loss"), 2)
    labelled = config.task.corpus == "labelled"
    yield own.prose_paragraph("loss.class" if labelled else "loss.1")
    yield from found.of_kinds("loss")
    if labelled:
        yield Listing(pseudocode()[NETWORK]["class"], own.phrase("section.loss"))
    if share := config.objective.label_smoothing:
        yield Paragraph((own.phrase("smoothing", share=f"{share:g}"),))
    yield Heading(own.phrase("section.optimizer"), 2)
    yield own.prose_paragraph("optimizer.1")
    for key, name in (("optimizer.kind", config.optimizer.kind), ("optimizer.schedule", config.optimizer.schedule)):
        row_ = SCHEMES[key][name]
        yield Formula(context.bracketed(own.phrase(f"kind.{key}"), name), row_.formula(config.optimizer), row_.citation)
        yield from _pseudocode_listings(key, [name])


def _two_stacks(context: ReportContext, own: PaperPhrases) -> Iterator[Block]:
    """The encoder, the decoder and what joins them."""
    yield Heading(own.phrase("section.two"), 2)
    yield own.prose_paragraph("two.1")
    yield own.prose_paragraph("two.cross")
    yield Formula(own.phrase("network.cross-attention"), CROSS, VASWANI)
    for name in ("cross-attention", "encoder", "decoder", "padding", "writing"):
        yield Listing(pseudocode()[NETWORK][name], own.phrase(f"network.{name}"))
    if len(context.facts(context.runs[0]).languages) > 2:
        yield own.prose_paragraph("two.tags")


def _pseudocode_listings(key: str, names: Iterable[str]) -> Iterator[Listing]:
    for name in names:
        if name in pseudocode()[key]:
            yield Listing(pseudocode()[key][name], name)


class _Formulas:
    """A model's formulas, by what they are about: those that every report has, and those of single kinds of layer."""

    def __init__(self, context: ReportContext, config: RunConfig) -> None:
        self.code, m = context.language.code, config.model
        everything = list(formulas([("", m)], config, context.language))
        titled = {
            "feed-forward": {context.phrase("formula.feed-forward")},
            "norm": {NORMS[m.norm].title[self.code]} - {""},
            "layer": {context.phrase(f"formula.layer.{p}") for p in ("pre", "post", "sandwich", "none")},
            "loss": {context.phrase(f"formula.loss.{p}") for p in ("masked", "past", "source", "class")},
        }
        self._by_kind = {kind: [one for one in everything if one.what in titles] for kind, titles in titled.items()}
        seen = {row.visible_title[self.code] for row in ATTENTIONS.values()} - {""}
        seen.add(context.phrase("formula.visible-source"))
        self._seen = [one for one in everything if any(one.what.startswith(title) for title in seen)]

    def of_kinds(self, *kinds: str) -> Iterator[Formula]:
        for kind in kinds:
            yield from self._by_kind[kind]

    def seen(self) -> Iterator[Formula]:
        yield from self._seen

    def by_layer_kind(self, setting: str, kinds: Iterable[ModelConfig]) -> Iterator[Formula]:
        """Yield the formula of the scheme that each kind of layer has for a setting, once."""
        rows = [(SCHEMES[f"model.{setting}"][getattr(kind, setting)], kind) for kind in kinds]
        for title, latex_ in dict.fromkeys((row.title[self.code], row.formula(kind)) for row, kind in rows):
            if latex_:
                yield Formula(title, latex_)


# What was done


def _implementation(context: ReportContext, config: RunConfig, package: Package) -> Iterator[Block]:
    own, m = paper_phrases(context.language.code), config.model
    yield Heading(own.phrase("section.implementation"))
    attempts = RunReader(context.runs[0].path).environment.attempts
    torch = attempts[-1].versions.get("torch", "") if attempts else ""
    yield Paragraph((own.phrase("framework", torch=torch.split("+")[0]),))
    yield Paragraph((own.phrase("settings"),))
    yield Heading(own.phrase("section.masks"), 2)
    scored = any(ATTENTIONS[name].has_scores for name in m.distinct_attentions)
    if config.trains_on_rows:
        yield own.prose_paragraph(f"masks.{config.task.corpus}")
    else:
        yield own.prose_paragraph("masks.encoder" if not m.causal else "masks.causal" if scored else "masks.linear")
    if package.documents:
        yield own.prose_paragraph("masks.documents")
    yield Heading(own.phrase("section.init"), 2)
    drop = own.phrase("dropout", p=m.dropout) if m.dropout else own.phrase("no-dropout")
    yield Paragraph((context.sentences([own.phrase(f"init.{m.init}", std=m.init_std), drop]),))
    yield Heading(own.phrase("section.code"), 2)
    for file, pieces in SHOWN.items():
        for name, title in pieces:
            if text := find_definition(package.source[f"src/{file}"], name):
                yield Listing(text, own.phrase(title), long=True)
    file, name, title = STEP
    yield Listing(find_definition(package.source[f"src/{file}"], name), own.phrase(title), long=True)


def find_definition(source: str, name: str) -> str:
    """Return the source of the first class or function whose name ends with `name`; "" if there is none."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name.endswith(name):
            return "\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno])
    return ""


def _demote_headings(blocks: Iterable[Block], title: str = "") -> Iterator[Block]:
    """Yield a report's section as a subsection: headings at level 2, the first one replaced by `title` if given."""
    for i, block in enumerate(blocks):
        yield Heading(title if title and i == 0 else block.text, 2) if isinstance(block, Heading) else block


def _setup(context: ReportContext, config: RunConfig, package: Package) -> Iterator[Block]:
    own = paper_phrases(context.language.code)
    yield Heading(own.phrase("section.setup"))
    yield from _demote_headings(data(context))
    yield from _demote_headings(settings(context))
    yield Heading(own.phrase("section.metrics"), 2)
    unit = context.language.translate(context.runs[0].protocol.unit)
    yield Paragraph((own.phrase("loss-metric", unit=unit),))
    if config.trains_on_rows:
        yield own.prose_paragraph(f"metric.{config.task.name}")


def _results(context: ReportContext, config: RunConfig, package: Package) -> Iterator[Block]:
    own = paper_phrases(context.language.code)
    yield Heading(own.phrase("section.results"))
    yield Heading(own.phrase("section.verdict"), 2)
    yield first_paragraph(context)
    for section in (training, results, probing, texts):
        yield from _demote_headings(section(context))
    yield Heading(own.phrase("section.ablation"), 2)
    yield Paragraph((own.phrase("no-ablation"),))
    yield Listing(shlex.join((PROGRAM, *ABLATION)), own.phrase("ablation-title"))
    yield from _demote_headings(limits(context))


def _repeat(context: ReportContext, config: RunConfig, package: Package) -> Iterator[Block]:
    own, run = paper_phrases(context.language.code), context.runs[0]
    yield Heading(own.phrase("section.repeat"))
    width = max(map(len, package.folders)) + 1
    rows = [f"{name + '/':<{width}}  {own.phrase(f'file.{name}')}" for name in package.folders]
    yield Listing("\n".join(rows), own.phrase("folder"))
    commands = ["pip install -r requirements.txt", "bash scripts/run.sh", "bash scripts/run.sh --steps 10"]
    yield Listing("\n".join(commands), own.phrase("commands"))
    yield Paragraph((own.phrase("repeat"),))
    if run.seconds:
        yield Paragraph((own.phrase("time", time=duration(run.seconds)),))
    yield from _demote_headings(environment(context))


def _conclusion(context: ReportContext, config: RunConfig, package: Package) -> Iterator[Block]:
    own, run, m = paper_phrases(context.language.code), context.runs[0], config.model
    yield Heading(own.phrase("section.conclusion"))
    what = own.phrase(
        "conclusion.what",
        kind=_architecture_name(context, config),
        layers=m.n_layers,
        heads=m.n_heads,
        d=m.d_model,
        steps=f"{run.step:,}",
        corpus=context.language.join_list(context.corpora),
    )
    perplexity = run.scores.get("perplexity")
    void = context.representative.group.invalid_badge
    loss = ""
    if run.last is not None and perplexity is not None and not void:
        unit = context.language.translate(run.protocol.unit)
        loss = own.phrase("conclusion.loss", loss=f"{run.last:.4f}", unit=unit, perplexity=f"{perplexity:,.2f}")
    yield Paragraph((context.sentences([what, loss, own.phrase("own-words")]),))
    first = 2 if m.architecture == "encoder-decoder" else 1  # which already has what the first suggestion would add
    yield Bullets(tuple(own.prose_paragraph(f"future.{i}").spans for i in range(first, 5)))


def cited_papers(text: str, config: RunConfig) -> list[str]:
    """Return the papers that a text names, in alphabetical order."""
    known = references()
    apart = {one for name in active_parts(config.model) for one in known if one.endswith(f"[{name}]")}
    return sorted((paper for one, paper in known.items() if one in text or one in apart), key=str.casefold)


def model_and_curve_figures(document: Document) -> Iterator[Figure]:
    """Yield the pictures that a package keeps among its results."""
    for found in document.figures:
        if found.name.startswith(("curves", "model")):
            yield found
