"""The report of a reproduction package: a run's report with an introduction, related work, derivations and pseudocode.

Its sections are those that course sheets ask for. What is said of a part comes from its row in `engine.config.schemes`
or `engine.config.model`, its pseudocode from `pseudocode.toml`, its papers from `references.toml`, and the rest from
`paper.toml`, which has what is long or about a part. What was measured is said by the sections of every report.
"""

import ast
import re
import shlex
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from engine.base.command_line import PROGRAM
from engine.base.language import Message
from engine.base.release import version
from engine.config.model import ModelConfig, active_parts
from engine.config.schema import RunConfig
from engine.config.schemes import ATTENTIONS, NORMS, POSITIONS, SCHEMES, VASWANI, Scheme
from engine.runs.reader import RunReader
from tui_transformer.lab.analysis.entry import RunEntry
from tui_transformer.lab.analysis.lists import in_brackets, join_names
from tui_transformer.lab.formatting import duration
from tui_transformer.lab.reports.context import FULL_STOP, ReportContext, read_context
from tui_transformer.lab.reports.document import (
    Block,
    Bullets,
    Document,
    Figure,
    Formula,
    Heading,
    Listing,
    Math,
    Paragraph,
    Spans,
    VerdictParagraph,
)
from tui_transformer.lab.reports.figures.style import PNG, Image, chinese_font, render
from tui_transformer.lab.reports.formats import latex
from tui_transformer.lab.reports.formulas import FEED_FORWARD, LAYER_TITLES, LOSS_TITLES, VISIBLE_SOURCE, formulas
from tui_transformer.lab.reports.languages import load_report_language as language_of
from tui_transformer.lab.reports.report import document_words, figures_note, subtitle
from tui_transformer.lab.reports.sections.closing import environment, limits, made_with
from tui_transformer.lab.reports.sections.first_paragraph import first_paragraph
from tui_transformer.lab.reports.sections.results import probing, results, texts, training
from tui_transformer.lab.reports.sections.setup import ARCHITECTURES, config_of, data, model, settings

ABLATION = ("ablate", "--study", "components", "--on", "demo", "--seeds", "5")  # suggested
ENGINES = {"en": "pdflatex", "zh": "xelatex"}
COMPILING = 120  # seconds for one pass
NETWORK = "network"  # the table of pseudocode.toml for an encoder-decoder and for classes
PARTS = "parts"  # the table of pseudocode.toml whose keys are optional parts
SHOWN = {
    "model.py": (
        ("Attention", Message("Self-attention, from src/model.py")),
        ("CrossAttention", Message("Cross-attention, from src/model.py")),
        ("FeedForward", Message("Feed-forward, from src/model.py")),
        ("Layer", Message("A layer, from src/model.py")),
    ),
    "data.py": (("batch_of", Message("A batch, from src/data.py")),),
}
STEP = ("train.py", "take_step", Message("One step of training, from src/train.py"))
CROSS = (
    r"o_i = \sum_{j=1}^{T_s} \operatorname{softmax}_j\left( \frac{q_i^\top k_j}{\sqrt{d_h}} \right) v_j, \qquad "
    r"q_i = x_i W_Q, \; k_j = z_j W_K, \; v_j = z_j W_V"
)
KINDS = {  # of schemes, by setting
    "model.position": Message("Positions"),
    "model.attention": Message("Attention"),
    "model.norm": Message("Norms"),
    "model.activation": Message("Activations"),
    "optimizer.kind": Message("Optimizers"),
    "optimizer.schedule": Message("Schedules"),
}
INITS = {  # how weights start
    "scaled-normal": Message(
        "Matrices start from a normal distribution with standard deviation {std:g}; for outputs into the residual "
        "stream, it is divided by the square root of the number of branches, as in GPT-2."
    ),
    "normal": Message("Matrices start from a normal distribution with standard deviation {std:g}."),
    "xavier": Message("Matrices start from a uniform distribution scaled by their widths (Glorot and Bengio 2010)."),
    "torch": Message(
        "Matrices start from torch's defaults: embeddings from N(0, 1), linear maps from a uniform distribution."
    ),
}
STACKS = {  # the pseudocode of an encoder-decoder
    "cross-attention": Message("Cross-attention"),
    "encoder": Message("The encoder"),
    "decoder": Message("The decoder, in training"),
    "padding": Message("Padding"),
    "writing": Message("Writing"),
}
FOLDERS = {  # of a package
    "src": Message("the program: model, data, training, plots, sampling"),
    "configs": Message("the settings of the run"),
    "scripts": Message("run.sh, which trains and draws the curves"),
    "data": Message("the data, as the run read it"),
    "results": Message("the run's curves, tables, sample and first losses"),
    "report": Message("this report"),
}
MATH = re.compile(r"\$([^$]+)\$")


@dataclass(frozen=True)
class Package:
    """The rest of the folder that the report belongs to."""

    source: Mapping[str, str]  # its program: file name → text
    folders: tuple[str, ...]  # at its top
    documents: bool = False  # whether windows of its text end with a document


def _read_toml(name: str) -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))


@cache
def prose() -> Mapping[str, str]:
    """Return paragraphs with formulas between dollars, by what they are about."""
    return _read_toml("paper.toml")["text"]


def prose_paragraph(context: ReportContext, key: str) -> Paragraph:
    """Return a paragraph whose formulas are set as such."""
    pieces = enumerate(MATH.split(context.say(prose()[key])))
    return Paragraph(tuple(Math(piece) if i % 2 else piece for i, piece in pieces if piece))


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
    run, say = context.representative.group.representative, context.say
    config = config_of(run)
    assert config is not None  # its package was refused otherwise
    declaration = say(
        "Declaration. tui-transformer {version} wrote this report and the code in src/ and scripts/ from the records "
        "of the run {name}: every sentence, formula, figure and table. Whoever hands it in lists their own words and "
        "code here: ____________________",
        version=version(),
        name=run.name,
    )
    blocks: list[Block] = [
        VerdictParagraph((declaration,)),
        context.paragraph("Name: ____________    Number: ____________    Repository: ____________________"),
    ]
    blocks += figures_note(context)
    for section in (_introduction, _related, _architecture, _implementation, _setup, _results, _repeat, _conclusion):
        blocks += section(context, config, package)
    blocks.append(Heading(say("References")))
    found = cited_papers(repr(blocks), config)
    blocks += [context.paragraph("{n}. {text}", n=i, text=text) for i, text in enumerate(found, 1)]
    blocks += made_with(context)
    title = say("A Transformer from scratch: {name}", name=run.name)
    return Document(title, subtitle(context), *document_words(context), tuple(blocks))


def _introduction(context: ReportContext, config: RunConfig, package: Package) -> Iterator[Block]:
    run = context.representative.group.representative
    yield Heading(context.say("Introduction"))
    yield prose_paragraph(context, "introduction.1")
    yield prose_paragraph(context, "introduction.2")
    yield Heading(context.say("Goals and contributions"), 2)
    parameters = f"{run.parameters:,}" if run.parameters is not None else "?"
    goals = (
        context.say(
            "build {kind} with {parameters} parameters from its parts;",
            kind=ARCHITECTURES[config.model.architecture],
            parameters=parameters,
        ),
        context.say(
            "train it on {corpus} for {steps} steps and score it on all of the validation split;",
            corpus=join_names(context.corpora),
            steps=f"{config.train.steps:,}",
        ),
        context.say(
            "keep every step repeatable: from seed {seed}, the code in this folder computes the same initial weights, "
            "batches and dropout, and so the same losses.",
            seed=config.seed,
        ),
    )
    yield Bullets(tuple((goal,) for goal in goals))


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
    yield Heading(context.say("Related work"))
    yield prose_paragraph(context, "related.1")
    items: list[Spans] = []
    for key, names in _chosen(config).items():
        kind = context.say(KINDS[key])
        for name in names:
            if (row := SCHEMES[key][name]).citation:
                items.append((_about(context, in_brackets(kind, name), row, row.sentence),))
    for name, part in active_parts(config.model).items():
        value = getattr(config.model, name)
        sentence = part.options.get(value, part.sentence) if isinstance(value, str) else part.sentence
        items.append((_about(context, Message(part.display_name), part, sentence),))
    yield Bullets(tuple(items))
    others = []
    for key, names in _chosen(config).items():
        rows = {name: row for name, row in SCHEMES[key].items() if name not in names and row.citation}
        said = [context.say("{name} ({citation})", name=name, citation=row.citation) for name, row in rows.items()]
        if said:
            kind = context.say(KINDS[key])
            others.append((context.say("{kind}: other choices are {others}.", kind=kind, others=join_names(said)),))
    yield Bullets(tuple(others))


def _about(context: ReportContext, title: str, row: Scheme, sentence: str) -> str:
    return context.say(
        "{title}: {sentence} ({citation}).", title=title, sentence=Message(sentence), citation=row.citation
    )


# The model, derived


def _architecture(context: ReportContext, config: RunConfig, package: Package) -> Iterator[Block]:
    m = config.model
    yield Heading(context.say("Architecture and derivation"))
    described = list(model(context))
    formal = next(i for i, block in enumerate(described) if isinstance(block, Heading) and block.level == 2)
    yield from described[1:formal]  # the shape, the picture, the sizes
    yield described[formal + 1]  # the notation
    kinds = [kind for kind, _ in m.layer_kinds()]
    scored = [kind for kind in kinds if ATTENTIONS[kind.attention].has_scores]
    attentions, found = pseudocode()["model.attention"], _Formulas(context, config)
    if scored:
        yield Heading(context.say("Scaled dot-product attention"), 2)
        yield prose_paragraph(context, "scores.1")
        scaled = any(POSITIONS[k.position].scaled for k in scored)
        yield prose_paragraph(context, "scores.2" if scaled else "scores.t5")
        yield from found.by_layer_kind("attention", scored)
        yield Heading(context.say("Which keys a query sees"), 2)
        for name in dict.fromkeys(kind.attention for kind in scored):
            yield prose_paragraph(context, f"seen.{name}")
        yield from found.seen()
        yield from (Listing(attentions[name], name) for name in dict.fromkeys(kind.attention for kind in scored))
    if len(scored) < len(kinds):
        yield Heading(context.say("Linear attention"), 2)
        yield prose_paragraph(context, "linear.1")
        linear = [kind for kind in kinds if kind not in scored]
        yield from found.by_layer_kind("attention", linear)
        yield from (Listing(attentions[name], name) for name in dict.fromkeys(kind.attention for kind in linear))
    yield Heading(context.say("Several heads"), 2)
    yield prose_paragraph(context, "heads.1")
    if m.kv_heads != m.n_heads:
        yield context.paragraph(
            "Here {heads} query heads share {kv} key and value heads (Shazeer 2019; Ainslie et al. 2023), "
            "which makes the cache of a decoder smaller.",
            heads=m.n_heads,
            kv=m.kv_heads,
        )
    yield Formula(
        context.say("Several heads"),
        r"\operatorname{MHA}(x) = \left[\, o^{(1)} ;\; \ldots ;\; o^{(H)} \,\right] W_O, \qquad H = "
        rf"{m.n_heads}, \; d_h = {m.head_width}",
        VASWANI,
    )
    if m.architecture == "encoder-decoder":
        yield from _two_stacks(context)
    yield Heading(context.say("Positions"), 2)
    for name in m.distinct_positions:
        yield prose_paragraph(context, f"position.{name}")
    yield from found.by_layer_kind("position", kinds)
    yield from _pseudocode_listings("model.position", m.distinct_positions)
    yield Heading(context.say("Position-wise feed-forward"), 2)
    yield prose_paragraph(context, "feed-forward.1")
    yield from found.of_kinds("feed-forward")
    yield from _pseudocode_listings("model.activation", [m.activation])
    yield Heading(context.say("Residual connections and norms"), 2)
    yield prose_paragraph(context, "residual.1" if m.residual else "residual.none")
    yield prose_paragraph(context, f"norm.{m.norm}")
    if m.norm != "none":
        yield prose_paragraph(context, f"norm.{m.norm_placement}")
    if m.norm != "none" and m.final_norm:
        yield prose_paragraph(context, "norm.final")
    yield from found.of_kinds("norm", "layer")
    yield from _pseudocode_listings("model.norm", [m.norm])
    if parts := active_parts(m):
        yield Heading(context.say("Optional parts"), 2)
        for name, row in parts.items():
            value = getattr(m, name)
            sentence = row.options.get(value, row.sentence) if isinstance(value, str) else row.sentence
            said = context.say(sentence)
            yield context.paragraph(FULL_STOP, sentence=said[:1].upper() + said[1:])
            yield Formula(context.say(row.title), row.formula(m), row.citation)
            yield Listing(pseudocode()[PARTS][name], context.say(row.display_name))
    yield Heading(context.say("Output and loss"), 2)
    labelled = config.task.corpus == "labelled"
    yield prose_paragraph(context, "loss.class" if labelled else "loss.1")
    yield from found.of_kinds("loss")
    if labelled:
        yield Listing(pseudocode()[NETWORK]["class"], context.say("Output and loss"))
    if share := config.objective.label_smoothing:
        yield context.paragraph(
            "Label smoothing (Szegedy et al. 2016) spreads a fraction {share} of the true distribution evenly "
            "over all tokens or classes, so that no logit has to grow without bound. Reported losses do not "
            "include it.",
            share=f"{share:g}",
        )
    yield Heading(context.say("Optimizer and learning rate"), 2)
    yield prose_paragraph(context, "optimizer.1")
    for key, name in (("optimizer.kind", config.optimizer.kind), ("optimizer.schedule", config.optimizer.schedule)):
        row_ = SCHEMES[key][name]
        yield Formula(context.say(in_brackets(KINDS[key], name)), row_.formula(config.optimizer), row_.citation)
        yield from _pseudocode_listings(key, [name])


def _two_stacks(context: ReportContext) -> Iterator[Block]:
    """The encoder, the decoder and what joins them."""
    yield Heading(context.say("Encoder, decoder and cross-attention"), 2)
    yield prose_paragraph(context, "two.1")
    yield prose_paragraph(context, "two.cross")
    yield Formula(context.say("Cross-attention"), CROSS, VASWANI)
    for name, title in STACKS.items():
        yield Listing(pseudocode()[NETWORK][name], context.say(title))
    if len(context.facts(context.runs[0]).languages) > 2:
        yield prose_paragraph(context, "two.tags")


def _pseudocode_listings(key: str, names: Iterable[str]) -> Iterator[Listing]:
    for name in names:
        if name in pseudocode()[key]:
            yield Listing(pseudocode()[key][name], name)


class _Formulas:
    """A model's formulas, by what they are about: those that every report has, and those of single kinds of layer."""

    def __init__(self, context: ReportContext, config: RunConfig) -> None:
        self._say, m = context.say, config.model
        everything = list(formulas([("", m)], config))
        titled: dict[str, set[str]] = {
            "feed-forward": {FEED_FORWARD},
            "norm": {NORMS[m.norm].title} - {""},
            "layer": set(LAYER_TITLES.values()),
            "loss": set(LOSS_TITLES.values()),
        }
        self._by_kind = {kind: [one for one in everything if one.what in titles] for kind, titles in titled.items()}
        seen = {row.visible_title for row in ATTENTIONS.values()} - {""}
        seen.add(VISIBLE_SOURCE)
        self._seen = [one for one in everything if any(one.what.startswith(title) for title in seen)]

    def of_kinds(self, *kinds: str) -> Iterator[Formula]:
        for kind in kinds:
            yield from map(self._titled, self._by_kind[kind])

    def seen(self) -> Iterator[Formula]:
        yield from map(self._titled, self._seen)

    def by_layer_kind(self, setting: str, kinds: Iterable[ModelConfig]) -> Iterator[Formula]:
        """Yield the formula of the scheme that each kind of layer has for a setting, once."""
        rows = [(SCHEMES[f"model.{setting}"][getattr(kind, setting)], kind) for kind in kinds]
        for title, latex_ in dict.fromkeys((row.title, row.formula(kind)) for row, kind in rows):
            if latex_:
                yield Formula(self._say(title), latex_)

    def _titled(self, one: Formula) -> Formula:
        return replace(one, what=self._say(one.what))


# What was done


def _implementation(context: ReportContext, config: RunConfig, package: Package) -> Iterator[Block]:
    m = config.model
    yield Heading(context.say("Implementation"))
    attempts = RunReader(context.runs[0].path).environment.attempts
    torch = attempts[-1].versions.get("torch", "") if attempts else ""
    yield context.paragraph(
        "The program is written in Python with PyTorch {torch}. src/model.py has the network and its initial "
        "weights, src/data.py the tokens and batches, and src/train.py the optimizer, the schedule, the "
        "training loop and the exact score. No other framework is needed.",
        torch=torch.split("+")[0],
    )
    yield context.paragraph(
        "All numbers are in configs/run.toml; the program reads nothing else. The table in section 5 lists "
        "them under the names they have in that file or in the run's own config."
    )
    yield Heading(context.say("Masks"), 2)
    scored = any(ATTENTIONS[name].has_scores for name in m.distinct_attentions)
    if config.trains_on_rows:
        yield prose_paragraph(context, f"masks.{config.task.corpus}")
    else:
        yield prose_paragraph(
            context, "masks.encoder" if not m.causal else "masks.causal" if scored else "masks.linear"
        )
    if package.documents:
        yield prose_paragraph(context, "masks.documents")
    yield Heading(context.say("Initial weights and dropout"), 2)
    drop = (
        context.say(
            "In training, dropout (Srivastava et al. 2014) zeroes a fraction {p:g} of the features; each step seeds "
            "its masks, so a repetition draws the same ones.",
            p=m.dropout,
        )
        if m.dropout
        else context.say("There is no dropout.")
    )
    yield Paragraph((context.sentences([context.say(INITS[m.init], std=m.init_std), drop]),))
    yield Heading(context.say("Key pieces of code"), 2)
    for file, pieces in SHOWN.items():
        for name, title in pieces:
            if text := find_definition(package.source[f"src/{file}"], name):
                yield Listing(text, context.say(title), long=True)
    file, name, title = STEP
    yield Listing(find_definition(package.source[f"src/{file}"], name), context.say(title), long=True)


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
    yield Heading(context.say("Experimental setup"))
    yield from _demote_headings(data(context))
    yield from _demote_headings(settings(context))
    yield Heading(context.say("Measures"), 2)
    unit = context.say(context.runs[0].protocol.unit)
    yield context.paragraph(
        "The loss is the mean negative log-likelihood in nats per {unit}, perplexity is its exponential, and "
        "accuracy is the share of tokens to which the model gives the highest probability. All are computed "
        "over the whole validation split, not over a sample of it.",
        unit=unit,
    )
    if config.trains_on_rows:
        yield prose_paragraph(context, f"metric.{config.task.name}")


def _results(context: ReportContext, config: RunConfig, package: Package) -> Iterator[Block]:
    yield Heading(context.say("Results and analysis"))
    yield Heading(context.say("What can be concluded"), 2)
    yield first_paragraph(context)
    for section in (training, results, probing, texts):
        yield from _demote_headings(section(context))
    yield Heading(context.say("Ablation"), 2)
    yield context.paragraph(
        "This folder has one run. It shows what this model reached, but not what any one part contributes: for "
        "that, each variant needs several seeds. The command below trains the variants of a study on the demo, "
        "with five seeds each, and compares them with intervals."
    )
    yield Listing(shlex.join((PROGRAM, *ABLATION)), context.say("An ablation of the parts (with tui-transformer)"))
    yield from _demote_headings(limits(context))


def _repeat(context: ReportContext, config: RunConfig, package: Package) -> Iterator[Block]:
    run = context.runs[0]
    yield Heading(context.say("Reproducibility and code structure"))
    width = max(map(len, package.folders)) + 1
    rows = [f"{name + '/':<{width}}  {context.say(FOLDERS[name])}" for name in package.folders]
    yield Listing("\n".join(rows), context.say("The folder"))
    commands = ["pip install -r requirements.txt", "bash scripts/run.sh", "bash scripts/run.sh --steps 10"]
    yield Listing("\n".join(commands), context.say("To train it again"))
    yield context.paragraph(
        "Ten steps are enough to confirm that training is repeated exactly: the program compares its first "
        "losses with results/first-losses.csv and stops if one differs by more than 0.0001 nats. On a "
        "different processor or with a different version of PyTorch, sums are rounded differently, so later "
        "losses drift apart."
    )
    if run.seconds:
        yield context.paragraph("The run took {time} on the machine in the table below.", time=duration(run.seconds))
    yield from _demote_headings(environment(context))


def _conclusion(context: ReportContext, config: RunConfig, package: Package) -> Iterator[Block]:
    run, m = context.runs[0], config.model
    yield Heading(context.say("Conclusion and future work"))
    what = context.say(
        "The model is {kind} with {layers} layers, {heads} heads and width {d}. Its parts were derived and built, and "
        "it was trained for {steps} steps on {corpus}.",
        kind=ARCHITECTURES[config.model.architecture],
        layers=m.n_layers,
        heads=m.n_heads,
        d=m.d_model,
        steps=f"{run.step:,}",
        corpus=join_names(context.corpora),
    )
    perplexity = run.scores.get("perplexity")
    void = context.representative.group.invalid_badge
    loss = ""
    if run.last is not None and perplexity is not None and not void:
        unit = context.say(run.protocol.unit)
        loss = context.say(
            "Its validation loss was {loss} nats per {unit} after training, a perplexity of {perplexity}.",
            loss=f"{run.last:.4f}",
            unit=unit,
            perplexity=f"{perplexity:,.2f}",
        )
    yield Paragraph(
        (
            context.sentences(
                [
                    what,
                    loss,
                    context.say("What was learned from building it is for the author to say: ____________________"),
                ]
            ),
        )
    )
    first = 2 if m.architecture == "encoder-decoder" else 1  # which already has what the first suggestion would add
    yield Bullets(tuple(prose_paragraph(context, f"future.{i}").spans for i in range(first, 5)))


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
