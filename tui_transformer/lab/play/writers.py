"""The writer of any run: a checkpoint's model with prompts to try and pictures of its attention; and those kept loaded.

How a task is prompted is in its `engine.tasks` pipeline. torch is imported only when a model is loaded, so load one off
the event loop.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from engine.base.errors import InputError, reason
from engine.base.language import Message, tr
from engine.data.framing import beginnings
from engine.generation.output import AnswerToken, BeamResult, FullAnswer, ScoredText
from engine.runs.reader import RunReader
from engine.runs.records import ModelOutput, Sample
from engine.runs.tail import newest_records, stamp
from tui_transformer.lab.play.pictures import layer_plan, mask_sentence
from tui_transformer.lab.play.prompt import SETTINGS, Settings
from tui_transformer.lab.play.written import AttentionView

if TYPE_CHECKING:
    from engine.generation.translation import Translator
    from tui_transformer.lab.records.run_view import RunRow

TRIED, LATEST, MOST = 3, 4, 1 << 16  # prompts to try, from so many samples in so many last bytes
WHICH = {"self": "", "cross": tr(", cross-attention"), "encoder": tr(", encoder self-attention")}
GREEDY: Settings = {"temperature": 0.0, "top_k": 0, "top_p": 1.0, "seed": 1, "length": 50}
KEPT = 3  # models kept in memory
CONSIDERED = 24  # newest runs among which the best is looked for


class ModelWriter:
    """A checkpoint of a run: best, last, or a step. Raises InputError if it is missing or damaged."""

    def __init__(self, reader: RunReader, checkpoint: str, device: str) -> None:
        from engine.model.devices import resolve_device
        from engine.tasks.task import make_pipeline
        from engine.training.checkpoint import load_network

        self.reader, self.name, self.config = reader, reader.name, reader.config
        self.model, self.tokenizer, self.step = load_network(reader, checkpoint, resolve_device(device))
        task, generation = self.config.task, self.config.generation
        if task.corpus == "pairs":
            self.require_translation()
        self.pipeline = make_pipeline(self.model, self.tokenizer, self.config, reader.data.classes)
        self.continues = task.continues  # its text continues the prompt; else it is a separate answer
        # Its answers have an end: it ranks whole ones, and shows held-out `examples`.
        self.ranks_answers = task.ranks_answers
        self.invitation = task.invitation.format(unit=self.pipeline.token_noun)
        own = {name: getattr(generation, name) for name in SETTINGS if hasattr(generation, name)}
        length = self.pipeline.default_length
        rows = self.config.trains_on_rows
        self.defaults: Settings = GREEDY | {"length": length} if rows else {"seed": 1, "length": length} | own
        # The settings of its beam search, see `search`; none if it has none.
        searches = task.corpus == "pairs"
        self.beam_settings: Settings = {"beam": 1, "nbest": 1, "alpha": generation.alpha} if searches else {}

    def require_translation(self) -> None:
        """Raise InputError unless it translates or summarizes."""
        if not self.tokenizer.is_pair:
            raise InputError(
                Message(
                    "run '{name}' is not a translation model; use `{command}`",
                    name=self.name,
                    command=self.reader.command("sample"),
                )
            )

    @property
    def translator(self) -> "Translator":
        return self.pipeline.translator

    def set_target(self, language: str) -> None:
        """Translate to this language from now on, one of several; `InputError` if it is none of them."""
        if not self.tokenizer.is_pair:
            raise InputError(Message("/to: {name} is not a translation model", name=self.name))
        self.tokenizer.source.add_language_tags([], language.strip())
        self.translator.target_language = language.strip()

    def length_warning(self, text: str, settings: Settings) -> str:
        return self.pipeline.length_warning(text, int(settings["length"]))

    def stream(
        self, text: str, settings: Settings, answer_index: int = 0, alternatives: int = 0
    ) -> Iterator[AnswerToken]:
        """Yield one answer as it comes, with the likeliest tokens at each place.

        `answer` counts answers to the same prompt. Raise InputError for an empty prompt, unknown characters, or no gap.
        """
        from engine.base.seeds import seed_for
        from engine.generation.sampling import Sampling

        cuts = float(settings["temperature"]), int(settings["top_k"]), float(settings["top_p"])
        how = Sampling(*cuts, "restart" if self.config.trains_on_rows else self.config.generation.overflow)
        seed = seed_for(int(settings["seed"]), "sample", answer_index)
        yield from self.pipeline.write(text, how, seed, int(settings["length"]), alternatives)

    def search(
        self, text: str, settings: Settings, between: Callable[[], None] = lambda: None
    ) -> tuple[BeamResult, ...]:
        """Return the `nbest` best answers that a beam search finds; `between` is as in `Translator.translate`.

        Raise InputError as `stream` does, or if a beam cannot give as many; return () if it has no beam search.
        """
        return self.pipeline.search(text, self.beam_settings | settings, between)

    def answer_and_likeliest_others(self, text: str, written: str, others: int) -> tuple[FullAnswer, ...]:
        return self.pipeline.likeliest_answers(text, written, others)

    def filled_prompt(self, text: str, written: str) -> str:
        return self.pipeline.filled_prompt(text, written)

    def surprise(self, text: str, alternatives: int = 0) -> ScoredText:
        return self.pipeline.surprise(text, alternatives)

    def answer_held_out_examples(self) -> Sequence[ModelOutput]:
        """Answer a few held-out questions or documents with gaps, always the same ones, greedily; loads the corpus."""
        if not self.ranks_answers:
            raise InputError(
                Message(
                    "examples: {name} continues any text; only runs trained on documents have examples", name=self.name
                )
            )
        from engine.tasks.task import make_task

        evaluation = self.config.evaluation.model_copy(update={"sample_prompt": ""})
        config = self.config.model_copy(update={"evaluation": evaluation})
        return make_task(config, None, self.tokenizer).sampler(config).sample(self.model, self.step).translations

    def prompts(self) -> tuple[str, ...]:
        """Return up to three prompts to try: its corpus's examples, and what it was asked while it trained."""
        samples = newest_records(self.reader.path / "samples.jsonl", Sample, LATEST, MOST)[::-1]
        examples = [example.source for example in self.reader.data.examples]
        rows = [row.source for sample in samples for row in sample.translations]
        asked = [sample.prompt for sample in samples]
        found = [*examples, *rows, *asked] if rows else [*asked, *examples]
        if self.continues:  # beginnings of the lines that it wrote itself; the first goes on from its prompt
            lines = "\n".join(sample.text for sample in samples).split("\n")[1:]
            found += beginnings("\n".join(lines))
        found.append(self.config.task.prompt_example.strip("'"))
        return tuple(islice(filter(self._can_read, dict.fromkeys(found)), TRIED))

    def _can_read(self, prompt: str) -> bool:
        try:
            return bool(prompt) and self.pipeline.model_input(prompt, "") is not None
        except InputError:
            return False

    @property
    def attention_kinds(self) -> tuple[str, ...]:
        from engine.generation.inspection import attention_kinds

        return attention_kinds(self.model)

    def attention_layer_and_head_counts(self, which: str) -> tuple[int, int]:
        from engine.generation.inspection import attention_layers

        return len(attention_layers(self.model, which)), self.config.model.n_heads

    def attention(self, text: str, written: str, layer: int, head: int, which: str = "self") -> AttentionView:
        """Return a head's attention over a prompt or source and the text written after it; layer and head from 1."""
        from engine.generation.inspection import head_attention

        task, (tokens, source) = self.config.task, self.pipeline.model_input(text, written)
        found = head_attention(self.model, tokens, layer - 1, head - 1, which, source)
        layers, heads = self.attention_layer_and_head_counts(which)
        wrote = self.pipeline.token_labels(tokens, is_source=False)
        read = () if source is None else self.pipeline.token_labels(source, is_source=True)
        plan = layer_plan(self.config.model, layer - 1, encoder=which == "encoder")
        rule = task.cross_attention_rule if which == "cross" else mask_sentence(plan, plan.length)
        return AttentionView(
            read if which == "encoder" else wrote,
            wrote if which == "self" else read,
            found.weights.float().cpu().numpy(),
            found.visible.cpu().numpy(),
            None if found.bias is None else found.bias.float().cpu().numpy(),
            tr("layer {layer} of {layers}, head {head} of {heads}", layer=layer, layers=layers, head=head, heads=heads)
            + WHICH[which],
            rule + ("" if which == "encoder" else task.attention_note),
            which == "cross",
        )


class WriterCache:
    """Loaded models, by run and checkpoint; one is reloaded only when its files change."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._loaded: dict[tuple[Path, object], ModelWriter] = {}

    def get(self, run: Path, which: str) -> ModelWriter:
        """Return the model of a run's checkpoint; blocks while it loads. Raises InputError as `ModelWriter`."""
        try:
            return self._find_or_load(run, which)
        except OSError as error:
            raise InputError(
                Message("{name}: its checkpoint cannot be read: {strerror}", name=run.name, strerror=reason(error))
            ) from None
        except InputError:
            if RunReader(run).status.state not in ("running", "paused", "handing-over"):
                raise
            return self._find_or_load(run, which)  # training may have replaced it with a newer checkpoint meanwhile

    def _find_or_load(self, run: Path, which: str) -> ModelWriter:
        from engine.training.checkpoint import MANIFEST, find

        reader = RunReader(run)
        folder = find(reader, which)
        key = (folder, stamp(folder / MANIFEST))
        found = self._loaded.pop(key, None) or ModelWriter(reader, which, self.device)
        self._loaded[key] = found  # newest last
        while len(self._loaded) > KEPT:
            del self._loaded[next(iter(self._loaded))]
        return found


def best_or_newest_run(rows: Sequence["RunRow"]) -> Path | None:
    """Return the run of the lowest loss among those that are finished, without badges, and comparable with the newest.

    The newest run with a checkpoint if none is; None if no run has one. `rows` are as in `FolderSnapshot`.
    """
    saved = [row for row in rows if row.last_checkpoint_step is not None]
    done = [row for row in saved if row.state == "finished" and row.scored]
    done = [row for row in done if not row.badges] or done
    kinds = {row.path: _comparison_key(row.path) for row in done[:CONSIDERED]}
    alike = [row for row in done[:CONSIDERED] if kinds[row.path] == kinds[done[0].path]]
    best = min(alike, key=lambda row: row.loss if row.loss is not None else math.inf, default=next(iter(saved), None))
    return None if best is None else best.path


def _comparison_key(run: Path) -> object:
    """What runs must share for their losses to be comparable here."""
    try:
        config = RunReader(run).config
    except (InputError, OSError):
        return None
    return config.data.corpus, config.data.tokenizer, config.task.name


def checkpoint_stamps(run: Path) -> tuple[object, ...]:
    """Return a value that changes with each new checkpoint; looks at two files."""
    return tuple(stamp(run / "checkpoints" / name) for name in ("last", "best"))
