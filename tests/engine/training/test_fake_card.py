"""Training on a simulated GPU: nothing is on the wrong device, and no step makes the host wait for the card.

Between two log points a step only queues work. At a log point the results of all steps since the last one are read at
once, so the host waits once.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
import torch
from torch import Tensor

from engine import ranks
from engine.config import presets
from engine.config.keys import parse_overrides
from engine.config.schema import RunConfig
from engine.data import loader
from engine.data.corpus import END_OF_TEXT
from engine.data.objectives import Batch
from engine.model import numerics, positions
from engine.model.transformer import build_model
from engine.runs.reader import RunReader
from engine.runs.records import Environment, ModelFacts
from engine.tasks.task import make_task
from engine.training import assemble
from engine.training import step as steps
from engine.training.step import Stepper
from engine.training.trainer import Trainer
from tests.engine.training.test_resume import StopAt, outcome
from tests.fake_card import FakeCard, WrongDevice, data_of, fake_card

pytestmark = pytest.mark.usefixtures("cached_checks", "cached_corpora", "minimal_leak_probe")

PRESETS = [preset.name for preset in presets.list_presets()]
STEPS = 3


def miniature(name: str, *changes: str) -> RunConfig:
    tables = presets.resolve(presets.find(name)).miniature().dump()
    for override in parse_overrides(changes):
        tables = presets.merge(tables, override)
    return RunConfig.model_validate(tables)


def stepper_on(card: FakeCard, config: RunConfig) -> Stepper:
    task = make_task(config, None)
    config = task.resolve_config(config, "test", 1)
    model = build_model(config.model, config.min_vocab_size(task.vocab_size), config.seed, card.device)
    return Stepper(config, model, task.batches(config, card.device))


def waits_of(config: RunConfig, index: int = 0) -> tuple[FakeCard, list[str]]:
    """The card, and where some steps made the host wait for it."""
    with fake_card(index=index) as card:
        stepper = stepper_on(card, config)
        card.waits.clear()
        taken = [stepper.step(step) for step in range(1, STEPS + 1)]
        found = list(card.waits)
        assert all(torch.isfinite(torch.tensor(one.read())).all() for one in taken)
    return card, found


@pytest.mark.one_in(8)
@pytest.mark.parametrize("preset", PRESETS)
def test_no_step_of_a_preset_waits_for_the_card(preset: str) -> None:
    card, found = waits_of(miniature(preset, "train.accumulation=2"))
    assert found == []
    assert card.moved["pinned"] >= 2 * STEPS  # a batch a micro-batch


def an_item_of_the_loss(patch: pytest.MonkeyPatch) -> None:
    losses = Stepper._nll_and_training_loss

    def looked_at(self: Stepper, piece: object) -> tuple[Tensor, Tensor]:
        total, aim = losses(self, piece)
        assert total.item() > 0.0
        return total, aim

    patch.setattr(Stepper, "_nll_and_training_loss", looked_at)


def a_mask_in_the_loss(patch: pytest.MonkeyPatch) -> None:
    def nll(log_p: Tensor, targets: Tensor, **_: object) -> Tensor:
        real = targets != steps.IGNORED
        return -log_p[real].gather(1, targets[real][:, None]).sum()

    patch.setattr(steps, "F", SimpleNamespace(nll_loss=nll))


def a_norm_on_the_cpu(patch: pytest.MonkeyPatch) -> None:
    clip = torch.nn.utils.clip_grad_norm_

    def moved(*args: object) -> Tensor:
        norm = clip(*args)
        print(norm.cpu())
        return norm

    patch.setattr(torch.nn.utils, "clip_grad_norm_", moved)


def batches_that_are_not_pinned(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(loader, "copy_to_device", lambda tensor, device: tensor.to(device))


def a_constant_that_is_copied_at_each_call(patch: pytest.MonkeyPatch) -> None:
    def bias(self: positions.Alibi, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        slopes = torch.tensor(self.slopes.shape[0] * [0.5], device=q_pos.device)
        return -slopes[:, None, None] * positions.key_minus_query(q_pos, k_pos)[:, None].abs()

    patch.setattr(positions.Alibi, "bias", bias)


def a_question_about_numbers(patch: pytest.MonkeyPatch) -> None:
    content = positions.TransformerXL.content_bias

    def asked(self: positions.TransformerXL, q: Tensor, k: Tensor, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        assert (q_pos >= 0).all()
        return content(self, q, k, q_pos, k_pos)

    patch.setattr(positions.TransformerXL, "content_bias", asked)


@pytest.mark.parametrize(
    ("plant", "preset", "said"),
    [
        (an_item_of_the_loss, "baseline", "_local_scalar_dense"),
        (a_mask_in_the_loss, "baseline", "index by a mask"),
        (a_norm_on_the_cpu, "baseline", "cpu"),
        (batches_that_are_not_pinned, "baseline", "not pinned"),
        (a_constant_that_is_copied_at_each_call, "alibi", "not pinned"),
        (a_question_about_numbers, "xl", "_local_scalar_dense"),
    ],
)
def test_a_planted_wait_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], preset: str, said: str, monkeypatch
) -> None:
    plant(monkeypatch)
    _, found = waits_of(miniature(preset))
    assert sum(said in wait for wait in found) >= STEPS


def test_dropout_is_drawn_from_the_generator_of_the_card_that_trains(monkeypatch) -> None:
    card, _ = waits_of(miniature("baseline"), index=1)
    assert len(card.seeds) == len(set(card.seeds)) == STEPS

    def of_the_current_card(device: torch.device, seed: int) -> None:
        torch.cuda.manual_seed(seed)

    monkeypatch.setattr(steps, "seed_generators", of_the_current_card)
    card, _ = waits_of(miniature("baseline"), index=1)
    assert card.seeds == []


# Whole runs


@contextmanager
def found(card: FakeCard) -> Iterator[None]:
    """The card is what a run finds on this machine."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(ranks, "resolve_device", lambda wanted: card.device))
        stack.enter_context(mock.patch.object(torch.cuda, "get_device_name", lambda device: "fake"))
        yield


def run_on(card: FakeCard, config: RunConfig, root: Path) -> tuple[Trainer, RunReader]:
    """A run from its checks before the first step to its summary."""
    with found(card):
        ready = assemble.assemble(config, runs_dir=root, name="on-a-card", device=card.device.type)
        outcome = ready.trainer.run()
    assert outcome.state == "finished", outcome.reason
    return ready.trainer, RunReader(ready.path)


IN_CI = (("cuda", "biographies-scratch"), ("mps", "encoder-mlm"))
KINDS = ("baseline", "xl", "encoder-mlm", "biographies-pretrain", "biographies-scratch", "copy", "phrasebook")


@pytest.mark.parametrize(
    ("kind", "preset"),
    [
        pytest.param(kind, name, marks=() if (kind, name) in IN_CI else pytest.mark.slow)
        for kind in ("cuda", "mps")
        for name in KINDS
    ],
)
def test_a_whole_run_stays_on_its_device(kind: str, preset: str, tmp_path) -> None:
    config = miniature(preset, "train.steps=4", "evaluation.translations=2", "checkpoint.average_last=2")
    with fake_card(kind) as card:
        trainer, run = run_on(card, config, tmp_path)
        assert {p.device.type for p in trainer.model.parameters()} == {kind}
        assert card.became_current == [card.device] * (kind == "cuda")
        assert card.deterministic == [True] * (kind == "cuda")
    assert run.status.device == f"{kind}:0" and len(list(run.raw_lines("metrics"))) >= 5
    assert all(v.verdict == "ok" for v in run.verdicts if v.check == "leak")
    assert run.raw("model")["built"]["precision"] == ("bf16" if kind == "cuda" else "fp32")


@pytest.mark.usefixtures("no_self_check")
def test_a_card_computes_what_the_cpu_does(tmp_path) -> None:
    config = miniature("demo", "train.precision=fp32", "model.dropout=0")
    cpu = assemble.assemble(config, runs_dir=tmp_path, name="on-the-cpu", device="cpu")
    cpu.trainer.run()
    with fake_card() as card:
        _, run = run_on(card, config, tmp_path)
    losses = [[r["loss"] for r in reader.raw_lines("metrics")] for reader in (run, RunReader(cpu.path))]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5) and len(losses[0]) == 10


STEPPING = pytest.mark.parametrize(
    "changes",
    [
        (),
        ("optimizer.kind=muon", "train.ema=0.9"),
        ("optimizer.kind=lion",),
        ("optimizer.kind=sgd", "objective.z_loss=0.01"),
    ],
    ids=["adamw", "muon", "lion", "sgd"],
)


@pytest.mark.usefixtures("no_self_check")
@STEPPING
def test_a_run_on_a_card_resumes_bit_for_bit(tmp_path, changes) -> None:
    """Wherever it is stopped: with results that are not read yet, and batches made for a step that was never taken."""
    small = ("train.accumulation=2", "log.every=3", "evaluation.sample_length=0", "data.corpus_size=8000")
    config = miniature("baseline", *small, *changes)
    with fake_card() as card, found(card):
        control = StopAt(10**9)
        whole = assemble.assemble(config, runs_dir=tmp_path, name="whole", device="cuda", control=control)
        assert whole.trainer.run().state == "finished"
        n = (10**9 - control.left) // 2
        broken = assemble.assemble(config, runs_dir=tmp_path, name="broken", device="cuda", control=StopAt(n))
        assert broken.trainer.run().state == "stopped"
        again = assemble.resume(broken.path, device="cuda")
        assert again.trainer.stepper.precision == "bf16"
        assert again.trainer.run().state == "finished"
    assert outcome(broken.path) == outcome(whole.path)


@pytest.mark.usefixtures("no_self_check")
@STEPPING
def test_the_host_waits_once_at_each_log_point_and_never_between(tmp_path, changes) -> None:
    config = miniature("baseline", "train.steps=11", "log.every=4", "checkpoint.every=0", *changes)
    config = RunConfig.model_validate(presets.merge(config.dump(), {"evaluation": {"every": 0, "sample_every": 0}}))
    waited: dict[int, int] = {}
    with fake_card() as card:
        advance = Trainer.advance

        def counted(self: Trainer) -> None:
            before = len(card.waits)
            advance(self)
            waited[self.state.step] = len(card.waits) - before

        with mock.patch.object(Trainer, "advance", counted):
            _, run = run_on(card, config, tmp_path)
    assert waited == {step: int(step in (4, 8, 11)) for step in range(1, 12)}
    assert [r["step"] for r in run.raw_lines("metrics") if r["kind"] == "train"] == [4, 8, 11]


def test_results_are_read_every_hundred_steps_if_nothing_else_reads_them(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("engine.training.trainer.MOST_UNREAD", 3)
    config = miniature("demo", "train.steps=8", "log.every=1000", "checkpoint.every=0", "evaluation.every=0")
    ready = assemble.assemble(config, runs_dir=tmp_path, name="seldom", device="cpu")
    ready.trainer.stepper.deferred = True
    unread, advance = [], Trainer.advance

    def counted(self: Trainer) -> None:
        advance(self)
        unread.append(len(self._unread))

    monkeypatch.setattr(Trainer, "advance", counted)
    assert ready.trainer.run().state == "finished"
    assert unread == [1, 2, 0, 1, 2, 0, 1, 0]


def test_the_next_batches_are_made_while_the_card_computes() -> None:
    with fake_card() as card:
        stepper, said = stepper_on(card, miniature("baseline", "train.accumulation=2")), []
        stepper.config = stepper.config.model_copy(
            update={"train": stepper.config.train.model_copy(update={"steps": 3})}
        )
        batch, update = stepper.batches.batch, stepper.optimizer.step
        stepper.batches.batch = lambda step, micro: said.append((step, micro)) or batch(step, micro)
        stepper.optimizer.step = lambda: said.append("update") or update()
        for step in (1, 2, 3):
            stepper.step(step)
    ahead = [[(step, 0), (step, 1)] for step in (1, 2, 3)]
    assert said == [*ahead[0], "update", *ahead[1], "update", *ahead[2], "update"]


def test_a_step_is_taken_once_even_if_the_next_batches_do_not_fit() -> None:
    config = miniature("demo", "train.steps=3")
    losses = []
    for fails in (False, True):
        with fake_card() as card:
            stepper = stepper_on(card, config)
            batch, asked = stepper.batches.batch, []

            def short_of_memory(step: int, micro: int, batch=batch, asked=asked, fails=fails) -> Batch:
                asked.append(step)
                if fails and asked.count(step) == 1 and step > 1:
                    raise torch.OutOfMemoryError
                return batch(step, micro)

            stepper.batches.batch = short_of_memory
            losses.append([stepper.step(step).read() for step in (1, 2, 3)])
            assert asked == ([1, 2, 2, 3, 3] if fails else [1, 2, 3])
    assert losses[0] == losses[1]


# What "auto" means on a card


def test_bf16_is_chosen_only_if_the_card_supports_it_in_hardware() -> None:
    config, card = miniature("baseline"), torch.device("cuda", 1)
    for major, precision in ((7, "fp32"), (8, "bf16"), (9, "bf16")):
        with (
            fake_card(index=1),
            mock.patch.object(
                torch.cuda,
                "is_bf16_supported",
                lambda including_emulation=True, new=major >= 8: new or including_emulation,
            ),
        ):
            assert numerics.chosen_precision(config.train, card) == precision
    assert numerics.chosen_precision(config.train, torch.device("cpu")) == "fp32"
    assert numerics.chosen_precision(config.train, torch.device("mps")) == "fp32"


def resolved(name: str, **train: object) -> RunConfig:
    config = presets.resolve(presets.find(name), overrides=[{"train": train}])
    return config.resolved(vocab_size=config.model.vocab_size or 65, threads=1, train_tokens=10**7)


@pytest.mark.parametrize(
    ("preset", "device", "train", "compiles"),
    [
        ("gpt2-small", "cuda", {"steps": 10_000}, True),
        ("gpt2-small", "cuda", {"steps": 100}, False),
        ("gpt2-small", "cuda", {"steps": 10_000, "compile": "never"}, False),
        ("gpt2-small", "cpu", {"steps": 10_000}, False),
        ("gpt2-small", "mps", {"steps": 10_000}, False),
        ("baseline", "cuda", {"steps": 10_000}, False),
        ("baseline", "cpu", {"steps": 10, "compile": "always"}, True),
    ],
)
def test_compiling_is_for_large_models_on_cuda(preset: str, device: str, train: dict, compiles: bool) -> None:
    assert numerics.compiles_step(resolved(preset, **train), torch.device(device)) is compiles


@pytest.mark.usefixtures("no_self_check")
def test_a_model_that_cannot_be_compiled_is_trained_uncompiled(tmp_path, monkeypatch) -> None:
    def broken(*inputs: object) -> Tensor:
        raise RuntimeError("Failed to find C compiler")

    config, ends = miniature("demo"), []
    for wanted in ("auto", "always"):
        with monkeypatch.context() as patch:
            patch.setattr(numerics, "compiles_step", lambda config, device: True)
            ready = assemble.assemble(miniature("demo", f"train.compile={wanted}"), runs_dir=tmp_path, device="cpu")
        ready.trainer.stepper.compiles, ready.trainer.stepper._forward = True, broken
        ends.append((ready.trainer.run().state, RunReader(ready.path)))
    assert [state for state, _ in ends] == ["finished", "failed"]
    assert [run.raw("model")["built"]["compiled"] for _, run in ends] == [False, True]
    said = [event for event in ends[0][1].raw_lines("events") if event["event"] == "compile"]
    assert len(said) == 1 and "Failed to find C compiler" in json.dumps(said)
    plain = assemble.assemble(config, runs_dir=tmp_path, name="plain", device="cpu")
    plain.trainer.run()
    losses = [[r["loss"] for r in run.raw_lines("metrics")] for run in (ends[0][1], RunReader(plain.path))]
    assert losses[0] == losses[1]


@pytest.mark.parametrize(
    ("began", "on", "expected"),
    [
        ("cuda:0 NVIDIA L4", "cuda", ("fp32", False)),  # another version, or another card, would say bf16 and compile
        ("cuda:0 NVIDIA L4", "cpu", ("bf16", True)),
        ("cpu", "cuda", ("bf16", True)),
        (None, "cuda", ("bf16", True)),  # a run of an earlier version
    ],
)
def test_a_resumed_run_keeps_the_arithmetic_it_began_with(
    began: str | None, on: str, expected: tuple[str, bool], monkeypatch
) -> None:
    monkeypatch.setattr(numerics, "is_gpu_with_bf16", lambda device: True)
    monkeypatch.setattr(numerics, "compiles_step", lambda config, device: True)
    facts = {
        "environment": {"attempts": [{"device": began}]} if began else {},
        "model": {"built": {"precision": "fp32", "compiled": False}} if began else {},
    }
    reader = SimpleNamespace(environment=Environment.read(facts["environment"]), model=ModelFacts.read(facts["model"]))
    recorded = assemble._recorded_choices(reader, torch.device(on))
    found = numerics.Numerics.choose(miniature("baseline"), torch.device(on), recorded)
    assert (found.precision, found.compiles) == expected


def test_a_card_refuses_what_a_real_one_would() -> None:
    with fake_card("mps") as card:
        there = torch.ones(3, device=card.device)
        for wrong in (
            lambda: there + torch.ones(3),
            lambda: there.double(),
            lambda: there.numpy(),
            lambda: torch.zeros_like(there).bernoulli_(0.5, generator=torch.Generator()),
            lambda: torch.rand(3, device=card.device, generator=torch.Generator()),
        ):
            with pytest.raises(WrongDevice):
                wrong()
        assert (there + 1).tolist() == [2.0, 2.0, 2.0] and len(card.waits) == 1


@pytest.mark.parametrize(
    ("preset", "device", "train", "records"),
    [
        ("demo", "cuda", {}, True),
        ("demo", "cpu", {}, False),
        ("demo", "mps", {}, False),
        ("demo", "cuda", {"activation_checkpointing": True}, False),
        ("phrasebook", "cuda", {}, False),
    ],
)
def test_recording_is_for_batches_of_one_shape_on_cuda(preset: str, device: str, train: dict, records: bool) -> None:
    assert numerics.records_graphs(resolved(preset, **train), torch.device(device)) is records


@pytest.mark.parametrize(
    "changes",
    [
        ("train.accumulation=2",),
        ("train.accumulation=4", "train.ema=0.9"),
        ("data.window_stride=3", "data.corpus_size=20000"),
        ("optimizer.kind=muon", "train.ema=0.9"),
        ("optimizer.kind=lion",),
    ],
    ids=str,
)
def test_recorded_steps_equal_plain_ones(changes: tuple[str, ...]) -> None:
    """Over an epoch's end, with dropout: weights and losses to the last bit."""
    ends = []
    for recorded in (True, False):
        with fake_card() as card:
            stepper = stepper_on(card, miniature("demo", "model.dropout=0.1", *changes))
            stepper.records_steps = recorded
            losses = [stepper.step(step).read() for step in range(1, 7)]
            assert bool(stepper._recordings) is recorded
            updates = [recording.update is not None for recording in stepper._recordings.values()]
            assert any(updates) is (recorded and stepper.config.train.accumulation == 1)
            ends.append((losses, [data_of(weight).inner.clone() for weight in stepper.model.parameters()]))
    assert ends[0][0] == ends[1][0]
    assert all(torch.equal(one, other) for one, other in zip(ends[0][1], ends[1][1], strict=True))


def test_translations_and_watched_networks_are_not_recorded() -> None:
    with fake_card() as card:
        assert not stepper_on(card, miniature("phrasebook")).records_steps
        stepper, seen = stepper_on(card, miniature("demo")), []
        stepper.model.register_forward_pre_hook(lambda model, given: seen.append(1))
        for step in (1, 2, 3):
            stepper.step(step)
        assert len(seen) == 3 and not stepper.records_steps


def test_a_step_that_cannot_be_recorded_is_taken_plainly(monkeypatch) -> None:
    def refuses(*given: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with fake_card() as card:
        monkeypatch.setattr(steps, "RecordedPass", refuses)
        stepper = stepper_on(card, miniature("demo", "train.accumulation=2"))
        losses = [stepper.step(step).read() for step in (1, 2)]
        assert not stepper.records_steps
        plain = stepper_on(card, miniature("demo", "train.accumulation=2"))
        plain.records_steps = False
        assert losses == [plain.step(step).read() for step in (1, 2)]


def test_an_update_that_cannot_be_recorded_is_made_plainly(monkeypatch, caplog) -> None:
    def refuses(*given: object) -> None:
        raise RuntimeError("operation not permitted when stream is capturing")

    with fake_card() as card:
        plain = stepper_on(card, miniature("demo"))
        expected = [plain.step(step).read() for step in (1, 2, 3)]
        monkeypatch.setattr(steps, "RecordedUpdate", refuses)
        stepper = stepper_on(card, miniature("demo"))
        assert [stepper.step(step).read() for step in (1, 2, 3)] == expected
        assert not stepper.records_steps and len(caplog.records) == 1


def test_graphs_are_given_up_if_batches_keep_changing_and_when_memory_is_short(monkeypatch) -> None:
    with fake_card() as card:
        stepper = stepper_on(card, miniature("demo"))
        stepper.step(1)
        assert len(stepper._recordings) == 1
        stepper.step(2, pieces=2)
        assert not stepper._recordings and stepper.records_steps
        monkeypatch.setattr(steps, "MAX_GRAPHS", 0)
        stepper.step(3)
        assert not stepper._recordings and not stepper.records_steps


def test_documents_neither_make_the_host_wait_nor_are_recorded_again(tmp_path) -> None:
    text = tmp_path / "documents.txt"
    text.write_text("".join(f"the {i}th document ends here{END_OF_TEXT}" for i in range(2_000)))
    config = miniature("demo", f"data.corpus={text}", "data.tokenizer=bpe", "data.bpe_size=300")
    assert waits_of(config)[1] == []
    with fake_card() as card:
        stepper = stepper_on(card, config)
        targets = {stepper.step(step).n_targets for step in range(1, 7)}
        assert len(targets) > 1 and len(stepper._recordings) == 1
