"""The program of a reproduction package trains the model that the engine trains, with every part it covers."""

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest
import torch

from engine import capabilities
from engine.config import presets
from engine.config.model import PARTS
from engine.config.schema import RunConfig
from engine.config.schemes import SCHEMES
from engine.model.transformer import build_model
from engine.tasks.task import make_task
from engine.training.step import Stepper
from tui_transformer.lab.exports import package
from tui_transformer.lab.exports.source import COVERED, ProgramFacts, program_files, refusal

pytestmark = pytest.mark.usefixtures("cached_corpora")
STEPS = 10
MODULES = ("model", "data", "train")
# New schemes that `export --to package` does not have yet, by setting: it refuses them by name.
UNPACKAGED: dict[str, frozenset[str]] = {}


def packaged(key: str) -> list[str]:
    return [name for name in SCHEMES[key] if name not in UNPACKAGED.get(key, ())]


# A network for each scheme and part; each trains with dropout, so that the draws are compared too.
NETWORKS: list[tuple[str, ...]] = [
    *(("model.dropout=0.1", f"model.position={name}") for name in packaged("model.position")),
    *(("model.dropout=0.3", f"model.attention={name}", "model.window=3", "model.link_every=4") for name in ("sparse",)),
    ("model.attention=linear", "model.position=rope", "model.dropout=0.1"),
    ("model.attention=linear", "model.position=learned", "model.n_kv_heads=1"),
    ("model.attention=window", "model.window=12", "model.dropout=0.1"),
    ("model.attention=window", "model.window=2", "model.dropout=0.1", "model.position=alibi"),  # in blocks
    ("model.attention=window", "model.window=2", "model.dropout=0.1", "model.sinks=true"),  # in blocks of texts
    *((f"model.norm={name}", "model.dropout=0.05") for name in ("rms", "none")),
    *((f"model.norm_placement={name}", "model.dropout=0.1") for name in ("post", "sandwich")),
    *((f"model.activation={name}",) for name in packaged("model.activation")),
    *((f"optimizer.kind={name}", "optimizer.weight_decay=0.1") for name in packaged("optimizer.kind")),
    *((f"optimizer.schedule={name}", "optimizer.decay_every=3") for name in ("cosine", "linear", "step")),
    *((f"optimizer.schedule={name}",) for name in ("constant", "wsd", "inverse-sqrt")),
    *(
        (f"optimizer.decay={name}", "model.position=learned", "optimizer.weight_decay=1.0")
        for name in COVERED["optimizer.decay"]
    ),
    ("optimizer.kind=muon", "optimizer.matrix_lr=0.02", "optimizer.embedding_lr=0.03", "optimizer.head_lr=0.001"),
    ("optimizer.kind=muon", "model.activation=swiglu", "model.position=t5", "optimizer.nesterov=false"),
    *((f"model.init={name}", "model.activation=geglu") for name in COVERED["model.init"]),
    ("model.tie_embeddings=true", "model.bias=false", "model.head_bias=true", "model.embedding_std=0.5"),
    ("model.position=learned", "model.position_init=zero", "model.embedding_scale=true"),
    ("model.residual=false", "model.norm_placement=pre"),
    ("model.n_kv_heads=1", "model.position=rope", "model.rope_pairing=adjacent"),
    ('model.layers=["window rope", "global none", "linear rope"]', "model.n_layers=3", "model.position=none"),
    ('model.layers=["global t5", "global alibi"]', "model.position=t5", "model.dropout=0.1"),
    ("train.accumulation=3", "model.dropout=0.1", "objective.label_smoothing=0.1", "objective.z_loss=0.01"),
    ("data.window_stride=5", "train.accumulation=2", "train.batch_size=700", "train.clip=0"),
    ("model.architecture=encoder", "objective.kind=masked", "model.dropout=0.1", "objective.label_smoothing=0.1"),
    ("model.architecture=encoder", "objective.kind=masked", "model.position=t5", "model.attention=window"),
    ("model.architecture=encoder", "objective.kind=masked", "model.position=xl", "model.attention=sparse"),
    ("model.architecture=encoder", "objective.kind=masked", "model.position=rope", "model.attention=linear"),
    (
        "model.architecture=encoder",
        "objective.kind=masked",
        "model.attention=window",
        "model.window=2",
        "model.dropout=0.1",
    ),
]
# Sentence pairs, articles and labelled texts: rows of different lengths, with padding.
ROWS = ("evaluation.translations=1", "evaluation.probes=false", "model.dropout=0.1")
PAIRS = (
    *("model.architecture=encoder-decoder", "objective.kind=translation", "data.corpus=phrasebook"),
    *("data.corpus_size=400", "model.context_length=100", *ROWS),
)
LABELLED = (
    *("objective.kind=classification", "data.corpus=bulletins", "data.corpus_size=200", "data.tokenizer=words"),
    *("model.context_length=48", *ROWS),
)
WITHOUT = "model.attention_dropout=0"
ROW_NETWORKS: list[tuple[str, ...]] = [
    *((*PAIRS, f"model.position={name}") for name in packaged("model.position")),
    (*PAIRS, "model.attention=sparse", "model.window=3", "model.link_every=4", "objective.label_smoothing=0.1"),
    (*PAIRS, "model.attention=window", "model.window=6", WITHOUT, "model.norm_placement=post"),
    (*PAIRS, "model.attention=linear", "model.position=rope", WITHOUT, "train.batch_tokens=400"),
    (*PAIRS, "model.norm_placement=sandwich", "model.n_encoder_layers=1", "model.n_kv_heads=1"),
    (*PAIRS, 'model.layers=["window rope", "global t5"]', "model.position=none", WITHOUT, "train.accumulation=2"),
    (*PAIRS, "data.shared_vocabulary=false", "data.max_length=40", "objective.z_loss=0.01", "model.head_bias=true"),
    (*PAIRS, "model.tie_embeddings=true", "model.embedding_std=0.1", "model.embedding_scale=true"),
    *((*PAIRS, f"model.init={name}", "optimizer.kind=muon") for name in COVERED["model.init"]),
    (*PAIRS, "model.score_cap=20", "optimizer.decay=all", "optimizer.weight_decay=0.1", "model.position=learned"),
    (*PAIRS, "data.corpus=phrasebook-2", "data.tokenizer=bpe", "data.bpe_size=400", "train.batch_tokens=300"),
    (*PAIRS, "objective.kind=summarization", "data.corpus=headlines", "model.source_length=60"),
    *((*LABELLED, f"model.architecture={name}", "model.context_length=30") for name in ("encoder", "decoder")),
    *((*LABELLED, "model.architecture=encoder", f"model.position={name}") for name in ("learned", "xl", "t5")),
    (*LABELLED, "model.architecture=encoder", "model.attention=linear", WITHOUT, "objective.label_smoothing=0.1"),
    (*LABELLED, "model.attention=window", "model.window=3", WITHOUT, "model.logit_softcap=30"),
]
ROPE = ("rope_part", "rope_scaling")
PARTED = [
    (f"model.{name}={str(value).lower() if isinstance(value, bool) else value}", f"model.position={position}", *more)
    for name, row in PARTS.items()
    for value in row.on_values
    for position in (("rope",) if name in ROPE else ("rope", "relative"))
    for more in ((("model.dropout=0.1",) if name == "layer_drop" else ()),)
]
ROW_PARTED = [(*PAIRS, WITHOUT, *changes) for changes in PARTED[1::2]]


@contextmanager
def imported(folder: Path) -> Iterator[dict[str, ModuleType]]:
    """The modules of a program, forgotten afterwards."""
    sys.path.insert(0, str(folder / "src"))
    try:
        yield {name: importlib.import_module(name) for name in MODULES}
    finally:
        sys.path.remove(str(folder / "src"))
        for name in MODULES:
            sys.modules.pop(name, None)


def written(folder: Path, config: RunConfig, task) -> None:
    """Write a package's program and text."""
    for name, content in (
        *program_files(config, package.program_data_facts(task, config)).items(),
        *package._data(task, config),
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def engine_losses(config: RunConfig, task) -> tuple[list[float], torch.nn.Module]:
    model = build_model(config.model, config.min_vocab_size(task.vocab_size), config.seed)
    stepper = Stepper(config, model, task.batches(config, torch.device("cpu")))
    results = [stepper.step(step) for step in range(1, STEPS + 1)]
    return [result.read()[0] / result.n_targets for result in results], model


def both(tmp_path: Path, tiny, changes: tuple[str, ...]) -> tuple[list[float], list[float]]:
    """The losses of the first steps by the engine and by the program, and each one's validation loss at the end."""
    config = tiny("train.steps=12", *changes)
    why = capabilities.check(config)
    if why is not None:
        pytest.skip(f"not legal: {why.reason}")
    task = make_task(config, None)
    config = task.resolve_config(config, "", 1)
    assert refusal(config) is None
    theirs, network = engine_losses(config, task)
    theirs.append(task.scorer(config, torch.device("cpu")).score_model(network).loss)
    written(tmp_path, config, task)
    with imported(tmp_path) as made:
        settings = made["train"].load(tmp_path / "configs" / "run.toml")
        model = made["model"].Transformer(settings.model)
        made["model"].initialise(model, settings.model, settings.seed)
        batches = made["data"].Batches(made["data"].tokens_of("train"), settings)
        optimizer = made["train"].make_optimizer(model, settings)
        device = torch.device("cpu")
        ours = [
            made["train"].take_step(model, optimizer, batches, settings, step, device) for step in range(1, STEPS + 1)
        ]
        ours.append(made["train"].evaluate(model, made["data"].tokens_of("validation"), settings, device))
    return theirs, ours


@pytest.mark.one_in(4)
@pytest.mark.parametrize("changes", [*NETWORKS, *PARTED, *ROW_NETWORKS, *ROW_PARTED], ids=" ".join)
def test_the_program_trains_to_the_same_losses_and_the_same_score(tmp_path, tiny, changes) -> None:
    theirs, ours = both(tmp_path, tiny, changes)
    assert theirs == pytest.approx(ours, abs=1e-4) and len(set(theirs)) == STEPS + 1


def test_a_text_with_documents_is_read_and_scored_within_each(tmp_path, tiny) -> None:
    text = "<|endoftext|>".join(f"the {i} gates of town {i * 7} are shut " * (1 + i % 5) for i in range(200))
    (tmp_path / "text.txt").write_text(text)
    of = (f"data.corpus={tmp_path / 'text.txt'}", "data.tokenizer=bpe", "data.bpe_size=280")
    within, _ = both(tmp_path / "within", tiny, of)
    theirs, ours = both(tmp_path / "strided", tiny, (*of, "data.window_stride=7", "evaluation.stride=5"))
    assert theirs == pytest.approx(ours, abs=1e-4)
    across, ours = both(tmp_path / "across", tiny, (*of, "data.across_documents=true"))
    assert across == pytest.approx(ours, abs=1e-4) and across != within


def test_the_source_reads_as_this_project_formats_it_and_knows_no_other_package(tmp_path, tiny) -> None:
    """All programs at once: a process of ruff for each would take longer than anything else here."""
    for number, changes in enumerate([(), *NETWORKS[-5:], *PARTED[::5], *ROW_NETWORKS, *ROW_PARTED[::5]]):
        config = tiny(*changes)
        if capabilities.check(config) is None:
            task = make_task(config, None)
            config = task.resolve_config(config, "", 1)
            for name, content in program_files(config, package.program_data_facts(task, config)).items():
                path = tmp_path / str(number) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content, encoding="utf-8")
            (tmp_path / str(number) / "changes.txt").write_text(" ".join(changes))
    for command in (["check", "--select", "E,F,W,I,UP,C4"], ["format", "--check"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--isolated", "--line-length", "120", "--no-cache"]
        done = subprocess.run([*ruff, str(tmp_path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    known, read = {*sys.stdlib_module_names, "torch", "numpy", "matplotlib", *MODULES}, list(tmp_path.glob("*/src/*"))
    for text, path in {path.read_text(encoding="utf-8"): path for path in read}.items():  # most are the same
        for node in ast.walk(ast.parse(text)):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            assert {name.split(".")[0] for name in names} <= known, path
    assert len(read) > 200


def test_a_text_by_other_tokens_comes_with_them(tmp_path, tiny, monkeypatch, fork_start_scripts) -> None:
    config = tiny("train.steps=12")
    task = make_task(config, None)
    config = task.resolve_config(config, "", 1)
    theirs, _ = engine_losses(config, task)
    assert package.program_data_facts(task, config).between == ""
    files = program_files(
        config, ProgramFacts(words=task.vocab_size, characters=False, tokenizer="by words", between=" ")
    )
    monkeypatch.setattr(type(task.tokenizer), "kind", "words")
    for name, content in (*files.items(), *package._data(task, config)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    rows = "".join(f"{step},{loss}\n" for step, loss in enumerate(theirs, 1))
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "first-losses.csv").write_text(f"step,loss\n{rows}")
    for command in (["src/train.py"], ["src/sample.py", "--length", "5", "--temperature", "0"]):
        done = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert len(done.stdout.split(" ")) >= 8 + 5


def test_the_source_has_only_the_parts_that_the_run_used(tmp_path, tiny) -> None:
    config = tiny("model.position=rope")
    task = make_task(config, None)
    written(tmp_path, task.resolve_config(config, "", 1), task)
    text = (tmp_path / "src" / "model.py").read_text(encoding="utf-8")
    assert "class Rope" in text and "dropout" not in text.lower()
    assert not any(other in text for other in ("Alibi", "T5Bias", "sinusoid", "window", "linear attention", "conv"))
    settings = (tmp_path / "configs" / "run.toml").read_text(encoding="utf-8")
    assert "rope_base" in settings and "t5_buckets" not in settings and "decay_from" not in settings


def test_every_preset_of_a_covered_objective_is_covered() -> None:
    for preset in presets.list_presets():
        config = presets.resolve(presets.find(preset.name))
        assert (refusal(config) is None) == (config.objective.kind in COVERED["objective.kind"]), preset.name


def test_every_scheme_is_covered_and_one_that_is_not_is_refused_by_its_name(tiny, monkeypatch) -> None:
    for key in SCHEMES:
        assert set(packaged(key)) <= set(COVERED[key]), key
    assert refusal(tiny("model.position=alibi")) is None
    monkeypatch.setitem(COVERED, "model.position", ("none", "rope"))
    assert (
        refusal(tiny("model.position=alibi")) == "export --to package supports model.position = none or rope, not alibi"
    )


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        (("model.architecture=encoder-decoder", "objective.kind=copy"), "objective.kind"),
        ((*PAIRS, "model.attention=window"), "model.attention_dropout"),
        ((*PAIRS, "model.sinks=true"), "model.sinks"),
        (("train.precision=bf16",), "train.precision"),
        (("train.init_from=other",), "train.init_from"),
    ],
)
def test_what_is_not_covered_is_refused_in_a_line_that_names_the_setting(tiny, changes, key) -> None:
    why = refusal(tiny(*changes))
    assert why is not None and key in why and "\n" not in why
