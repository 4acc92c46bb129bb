"""Score a split as a run's config asks, as the fields of a validation record: one class per kind of task."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from engine.base.language import tr, trn
from engine.config.measures import MEASURES, MEASURES_BY_KEY, ROUGE
from engine.config.schema import RunConfig
from engine.config.visibility import self_attention
from engine.data.documents.corpus import Question
from engine.data.loader import TextBatches, TextTokens, boundary_token, mask_generator, occurrences, token_positions
from engine.data.objectives import (
    Batch,
    Classification,
    Objective,
    QuestionAnswer,
    TokenPrompt,
    corruption_objective,
    make_objective,
    token_origins,
)
from engine.data.overlap import Overlap
from engine.data.padding import Tokens
from engine.data.parallel.pairs import Pairs
from engine.data.rows import EncodedPairs, documents_to_score, pair_batch, questions_to_score, texts_to_score
from engine.data.spelling import spelling_model_costs, spelling_model_counts, split_spelling_model_counts
from engine.data.splits import AnySplit
from engine.data.text_sizes import TextSizes, sizes_of
from engine.data.tokenizers import AnyTokenizer, Tokenizer
from engine.evaluation.metrics import (
    PlaceFilter,
    TargetScores,
    confusion_matrix,
    excess_over_floor,
    macro_f1,
    nanogpt_loss,
    places_with_evidence,
    places_with_minimum_history,
    probe_counts,
    score_batches,
    score_tokens,
    scores_by_distance,
)
from engine.evaluation.reachable import ReachableFloor, reachable_floor
from engine.evaluation.summaries import copied_word_share, first_sentence, score_summaries
from engine.evaluation.translation import OutputScores, exact_match, score_translations
from engine.generation.answering import answer_questions, greedy_answers
from engine.generation.beam import Hypothesis
from engine.generation.translation import Translator, pair_special_tokens
from engine.model.transformer import Network, evaluating
from engine.ranks import SINGLE
from engine.runs.record_version import RECORD_VERSION
from engine.runs.records import DataFacts, EvaluationScores, LeadBaseline, Translations

TOKEN_COLUMNS = ("nll", "correct", "place")  # of each token
SEPARATE_MEASURES = ("loss", "perplexity", "accuracy", "bits per character")  # measures with a line of their own
N_SHOWN_QUESTIONS = 3  # questions that `evaluate` prints with their answers
BY_TARGET = ("bleu", "exact_match", "sentences")  # of each of several target languages, in JSON
ReportLine = tuple[str, str] | str  # a label and its value, or a line without a label
HEAD = 1 << 16  # characters of a text, in which its first token ends


def copyable_places(config: RunConfig, objective: Objective) -> NDArray[np.bool_] | None:
    """(T,) whether the model sees the answer of each place, in a source or, where self-attention may look ahead, in the
    input itself; None if no answer can be copied.
    """
    found_at = token_origins(objective)
    if found_at is None or config.task.copy_leak(config) is None:
        return None
    at = torch.arange(found_at.answers.numel())
    sees = [self_attention(kind)(at[:, None], at[None]) for kind, _ in config.model.layer_kinds()]
    shown = (found_at.answers[:, None] == found_at.tokens[None]) & torch.stack(sees).any(0)
    found = shown.any(1)
    if found_at.source is not None:
        found = found | (found_at.answers[:, None] == found_at.source[None]).any(1)
    return found.numpy() if found.any() else None


def evaluation_batch(config: RunConfig) -> int:
    return config.evaluation.batch_size or 2 * config.train.batch_size


class Scorer(ABC):
    """Scores one split; `between` is called between batches and may raise to stop."""

    config: RunConfig
    label_width: ClassVar[int] = 18  # columns of the labels of its lines
    probe_format: ClassVar[str] = tr("{share:>6.1%} of {places:,} places")  # what is said of a probe
    scores_own_files = False  # whether it scores files of your own, whose rows are listed one by one
    _rows: Sequence[Mapping[str, Any]] = ()  # the last record's scores of each
    ranks = SINGLE  # that score together
    overlap: Overlap | None = None  # of your own files with the run's training data, if known

    @abstractmethod
    def score_model(self, model: Network, between: Callable[[], None] = lambda: None) -> EvaluationScores:
        """Return the scores of a model, be it in training or evaluation mode."""

    @abstractmethod
    def batches(self) -> Iterable[Batch]:
        """Return the split's examples, the same each time."""

    @property
    def activity(self) -> str:
        """What is being done while a record is computed, in words."""
        return tr("scoring the split")

    @property
    def loss_unit(self) -> str:
        """The unit that the loss is averaged over, and how it was measured."""
        return tr(self.config.task.unit)

    def floor(self) -> dict[str, Any]:
        """Return the floors that a record's `excess` is measured from, in the format of data.json."""
        return {}

    def evaluate(self, model: Network, n_shown: int) -> tuple[dict[str, Any], list[ReportLine]]:
        """Return the scores of a model as JSON and in words, and the `shown` best and worst of its texts."""
        record = self.score_model(model).dump()
        if "excess" in record:
            record["floor"] = self.floor()
        lines = [*self.report_lines(record)]
        if self._rows:
            record["rows"] = [*map(dict, self._rows)]
        return record, lines

    def report_lines(self, record: Mapping[str, Any]) -> Iterator[ReportLine]:
        """Yield what a record says, as it suits every task."""
        yield tr("loss"), tr("{loss:.4f} nats per {per}", loss=record["loss"], per=self.loss_unit)
        yield tr("perplexity"), f"{record['perplexity']:.4f}"
        if "bits_per_character" in record:
            yield tr("bits per character"), f"{record['bits_per_character']:.4f}"
        yield tr("accuracy"), f"{record['accuracy']:.2%}"
        for measure in MEASURES:
            apart = measure.of_loss or measure.name in SEPARATE_MEASURES
            if measure.key in record and measure.charted and not apart:
                yield tr(measure.name), measure.exact_format.format(record[measure.key])
        yield from self.extra_lines(record)
        for name, share in record["probes"].items():
            yield name, self.probe_format.format(share=share, places=record["probe_places"][name])

    def extra_lines(self, record: Mapping[str, Any]) -> Iterator[ReportLine]:
        """Yield what else its record says."""
        yield from ()

    def token_scores(self, model: nn.Module, between: Callable[[], None] = lambda: None) -> TargetScores:
        """Return the nll of every target, ends and marks included, without smoothing."""
        context = self.config.model.context_length
        return score_batches(model, self.batches(), context=context, stride=context, between=between, ranks=self.ranks)

    def outputs(self) -> Translations | None:
        """Return the outputs scored for the last record, if any."""
        return None

    def predictions(self) -> str | None:
        """Return the last record's answers, one per line (predictions.txt), if questions are asked."""
        return None


def text_measures(scores: TargetScores, texts: Sequence["TextScorer"]) -> dict[str, float]:
    """Return the total loss of texts, spelling included, per character, byte and word, and the share of `<unk>`.
    Without the training text, the cost of spelling is unknown, and only that share is returned. Texts without spaces
    between words have no word perplexity.
    """
    one, sizes, found = texts[0], sum_sizes(text.predicted_text_sizes for text in texts), dict[str, float]()
    spelled = [text.unknown_spelling_nats for text in texts if text.unknown_spelling_nats is not None]
    if len(spelled) == len(texts):
        nats = scores.total + math.fsum(spelled)
        bits, per_word = nats / math.log(2), nats / max(1, sizes.words)
        found = {"bits_per_character": bits / max(1, sizes.characters), "bits_per_byte": bits / max(1, sizes.bytes)}
        if not one.tokenizer.per_character and (one.records < 3 or sizes.spaceless <= 0):
            found["word_perplexity"] = math.exp(per_word) if per_word < 700 else math.inf
    if one.tokenizer.unknown is not None:
        found["unknown"] = sum(text.n_unknown for text in texts) / max(1, len(scores.nll))
    return found


def sum_sizes(sizes: Iterable[TextSizes]) -> TextSizes:
    return TextSizes(*map(sum, zip(*sizes, strict=True)))


class TextScorer(Scorer):
    """Exact scores of one split of a text; `tokens` (n,) is the same text encoded, on the model's device. The cost of
    spelling a rare word is learned from `train`, the training split; None if that is not at hand.

    Since version 2 of a run's `records`, a probe counts where the window shows its evidence, and excess is above the
    floor reachable in the window; before, a probe counted after context − stride characters, and excess was above the
    floor given the whole past. Since version 3, spelling what `<unk>` stands for costs bits, predicting `<unk>` is
    never right, and texts without spaces between words have no word perplexity. A run keeps the rules it began with.
    """

    def __init__(
        self,
        config: RunConfig,
        split: AnySplit,
        tokens: TextTokens,
        tokenizer: Tokenizer,
        records: int = RECORD_VERSION,
        train: AnySplit | None = None,
    ) -> None:
        self.config, self.split, self.tokens, self.records = config, split, tokens, records
        self.tokenizer, self.train = tokenizer, train
        self.objective = make_objective(config, tokenizer.vocab_size)
        self.copyable = copyable_places(config, self.objective)

    @property
    def activity(self) -> str:
        return tr("scoring {n:,} characters", n=self.split.length)

    @property
    def loss_unit(self) -> str:
        return tr(
            "{unit}, context {context_length}, stride {stride}",
            unit=tr(self.config.english_loss_unit),
            context_length=self.config.model.context_length,
            stride=self.config.evaluation_stride,
        )

    def floor(self) -> dict[str, Any]:
        reachable = {} if self.reachable is None else {"reachable": self.reachable.facts.dump()}
        mean = self.split.floor_mean
        return reachable if mean is None else reachable | {"nats_per_char": mean[0], "se": mean[1]}

    def extra_lines(self, record: Mapping[str, Any]) -> Iterator[ReportLine]:
        if record.get("honest_loss") is not None:
            said = tr("{loss:.4f} nats on the answers that are not in the model's input", loss=record["honest_loss"])
            yield tr("cannot be copied"), said
        if "excess" in record:
            yield tr("above the floor"), tr("{excess:+.4f} nats per character", excess=record["excess"])
            for floor in DataFacts.read(record).floors:
                yield f"    {floor.loss_text}  {floor.description}"
            if "windows" in (reachable := record["floor"].get("reachable", {})):
                some, every = reachable["windows"]
                yield tr("    computed on {some:,} of {every:,} windows, evenly spaced", some=some, every=every)
        if "nanogpt_loss" in record:
            yield tr("nanoGPT's batches"), f"{record['nanogpt_loss']:.4f}"

    def token_scores(self, model: nn.Module, between: Callable[[], None] = lambda: None) -> TargetScores:
        how: dict[str, Any] = {"context": self.config.model.context_length, "stride": self.config.evaluation_stride}
        how |= {"unknown": self.tokenizer.unknown if self.records >= 3 else None, "between": between}
        how["ranks"] = self.ranks
        if self.config.task.continues:  # the last, shorter window counts too
            return score_tokens(
                model, self.tokens, batch_size=evaluation_batch(self.config), document_ends=self.document_ends, **how
            )
        return score_batches(model, self.batches(), **how)

    def batches(self) -> Iterable[Batch]:
        """Return every window's examples; the seed is fixed, so all evaluations ask the same."""
        if self.tokens.numel() < self.objective.window:
            problem = tr(
                "{numel} tokens are too few for one window of {window}",
                numel=self.tokens.numel(),
                window=self.objective.window,
            )
            raise ValueError(problem)
        windows = self.tokens.unfold(0, self.objective.window, self.config.evaluation_stride).long()
        masks = mask_generator(self.config.evaluation.seed, "evaluation")
        examples = self.objective.batch(windows, masks)  # drawn at once: independent of the batch size
        return examples.chunk(-(-len(windows) // evaluation_batch(self.config)))

    def score_model(self, model: Network, between: Callable[[], None] = lambda: None) -> EvaluationScores:
        scores, config = self.token_scores(model, between), self.config
        probes: dict[str, float] = {}
        more: dict[str, Any] = {}
        if config.task.continues:
            more |= text_measures(scores, [self])
            floor = self.split.floor if self.reachable is None else self.reachable.nats
            if floor is not None:
                more["excess"] = excess_over_floor(scores, floor)
            if config.evaluation.probes and self.tokenizer.per_character:
                first, asked = self.records < 2, self.split.probes
                counts = probe_counts(scores, asked, places_with_minimum_history if first else places_with_evidence)
                probes = {name: right / of for name, (right, of) in counts.items()}
                if not first:
                    more["probe_places"] = {name: of for name, (_, of) in counts.items()}
                both: PlaceFilter = lambda *of: places_with_minimum_history(*of) & places_with_evidence(*of)
                if by_distance := scores_by_distance(scores, asked, both if first else places_with_evidence):
                    more["by_distance"] = by_distance
        if self.copyable is not None:
            more["honest_loss"] = scores.mean_at(~self.copyable)  # over answers that cannot be copied
        if config.evaluation.nanogpt_batches and self.tokens.numel() >= self.objective.window:
            seed, device = config.evaluation.seed, self.tokens.device
            batches = TextBatches(self.tokens, self.objective, config.train.batch_size, seed, device)
            more["nanogpt_loss"] = nanogpt_loss(model, batches, config.evaluation.nanogpt_batches)
        return EvaluationScores.create(
            context=scores.context,
            stride=scores.stride,
            loss=scores.loss,
            perplexity=scores.perplexity,
            accuracy=scores.accuracy,
            probes=probes,
            profile=scores.profile(),
            **more,
        )

    @cached_property
    def predicted_text_sizes(self) -> TextSizes:
        """Of the text that is predicted: all but the first token's."""
        first, rest = self._first_token_and_rest
        whole, begun, after = self.split.text_sizes, sizes_of(first + rest), sizes_of(rest)
        return TextSizes(*(n - less + more for n, less, more in zip(whole, begun, after, strict=True)))

    @cached_property
    def _first_token_and_rest(self) -> tuple[bytes, bytes]:
        """The UTF-8 of the first token's text, and of some of the text after it."""
        head = self.split.head(HEAD)
        raw, end = head.encode("utf-8", "surrogatepass"), self.tokenizer.first_token_bytes(head, int(self.tokens[0]))
        return raw[:end], raw[end:]

    @cached_property
    def unknown_spelling_nats(self) -> float | None:
        """The nats of what the predicted tokens leave open, such as which word an `<unk>` is; None if not known."""
        if self.records < 3 or self.tokenizer.unknown is None:
            return 0.0
        first = self._first_token_and_rest[0].decode("utf-8", "surrogatepass")
        counts = split_spelling_model_counts(self.split, self.tokenizer) - spelling_model_counts(first, self.tokenizer)
        if not counts.any():
            return 0.0
        if self.train is None:
            return None
        return math.fsum(counts * spelling_model_costs(split_spelling_model_counts(self.train, self.tokenizer)))

    @cached_property
    def document_ends(self) -> Tensor | None:
        """(m,) the places where documents end; None if windows see across them."""
        boundary = boundary_token(self.config, self.tokenizer)
        return None if boundary is None else token_positions(self.tokens, boundary)

    @cached_property
    def n_unknown(self) -> int:
        """How many of the predicted tokens are `<unk>`."""
        token = self.tokenizer.unknown
        return 0 if token is None else occurrences(self.tokens, token) - int(int(self.tokens[0]) == token)

    @cached_property
    def reachable(self) -> ReachableFloor | None:
        if self.records < 2 or not self.config.task.continues:
            return None
        return reachable_floor(self.split, self.config.model.context_length, self.config.evaluation_stride)


@dataclass
class TextsScorer(Scorer):
    """Exact scores of several texts of your own, each by itself: no window sees two of them."""

    config: RunConfig
    texts: Sequence[TextScorer]
    left_out: int  # too short ones
    overlap: Overlap | None = None

    @property
    def activity(self) -> str:
        return trn("scoring {n:,} document", "scoring {n:,} documents", len(self.texts))

    @property
    def loss_unit(self) -> str:
        return self.texts[0].loss_unit

    def batches(self) -> Iterator[Batch]:
        for text in self.texts:
            yield from text.batches()

    def score_model(self, model: Network, between: Callable[[], None] = lambda: None) -> EvaluationScores:
        apart = [text.token_scores(model, between) for text in self.texts]
        nll, correct, place = (np.concatenate([getattr(one, part) for one in apart]) for part in TOKEN_COLUMNS)
        whole = TargetScores(nll, correct, place, apart[0].context, apart[0].stride)
        self._rows = [
            {"document": number, **self._text_scores(scores, [text])}
            for number, (scores, text) in enumerate(zip(apart, self.texts, strict=True), start=1)
        ]
        left_out = {"left_out": self.left_out} if self.left_out else {}
        return EvaluationScores.create(
            context=whole.context,
            stride=whole.stride,
            documents=len(self.texts),
            **left_out,
            **self._text_scores(whole, self.texts),
            probes={},
            profile=whole.profile(),
        )

    def extra_lines(self, record: Mapping[str, Any]) -> Iterator[ReportLine]:
        if self.config.task.continues and "bits_per_byte" not in record:
            yield (
                tr("bits per byte"),
                tr("unknown: the cost of spelling <unk> is learned from the run's training text, which is not here"),
            )
        if len(self._rows) == 1 and not self.left_out:
            return
        ordered = sorted(self._rows, key=lambda row: float(row["loss"]))
        said = tr(
            "{n:,}; losses range from {least:.4f} (document {first:,}) to {most:.4f} (document {last:,}); --json lists "
            "all",
            n=len(ordered),
            least=ordered[0]["loss"],
            first=ordered[0]["document"],
            most=ordered[-1]["loss"],
            last=ordered[-1]["document"],
        )
        left_out = tr("; {n:,} too short to be scored", n=self.left_out) if self.left_out else ""
        yield tr("documents"), said + left_out

    def _text_scores(self, scores: TargetScores, texts: Sequence[TextScorer]) -> dict[str, Any]:
        more: dict[str, float] = {}
        if self.config.task.continues:
            more = text_measures(scores, texts)
        whole = sum_sizes(text.split.text_sizes for text in texts)
        return {
            "characters": whole.characters,
            "bytes": whole.bytes,
            "tokens": len(scores.nll),
            "loss": scores.loss,
            "perplexity": scores.perplexity,
            **more,
            "accuracy": scores.accuracy,
        }


@dataclass(frozen=True)
class ScoredSplit:
    pairs: Pairs
    encoded: EncodedPairs


@dataclass
class TranslationScorer(Scorer):
    """Exact scores and BLEU of one split, and exact matches of `probes`, other splits such as unseen constructions."""

    config: RunConfig
    split: ScoredSplit
    probes: Mapping[str, ScoredSplit]
    tokenizer: AnyTokenizer
    device: torch.device
    language: str = ""  # of the translations; "" if there are several, which the sources name
    scores_own_files: bool = False
    overlap: Overlap | None = None
    records: int = RECORD_VERSION
    _outputs: Sequence[str] = ()
    label_width = 11

    @property
    def activity(self) -> str:
        return trn("translating {n:,} sentence", "translating {n:,} sentences", len(self.split.pairs))

    def score_model(self, model: Network, between: Callable[[], None] = lambda: None) -> EvaluationScores:
        scores = self.token_scores(model, between)
        written = self.translate_and_score(model, self.split, between)
        self._outputs = [row.output for row in written.rows]
        characters = sum(len(target) + 1 for target in self.split.pairs.targets)  # each ends
        probes = self.probes if self.config.evaluation.probes else {}
        apart = written.scores_by_target()
        return EvaluationScores.create(
            sentences=len(self.split.pairs),
            loss=scores.loss,
            perplexity=scores.perplexity,
            bits_per_character=math.fsum(scores.nll) / math.log(2) / characters,
            accuracy=scores.accuracy,
            **{name: value for name, value in written.scores.items() if name in EvaluationScores.model_fields},
            **({"bleu_to": {target: bleu for target, (bleu, *_) in apart.items()}} if apart else {}),
            beam=self.config.evaluation.beam,
            translated=written.n,
            probes={f"to_{target}": exact for target, (_, exact, _) in apart.items()}
            | {
                # Not `translations`: BLEU takes as long as translating.
                name: exact_match(
                    split.pairs.targets[: self._n_translated(split)], self._translate(model, split, between)
                )
                for name, split in probes.items()
            },
            probe_places={f"to_{target}": n for target, (*_, n) in apart.items()}
            | {name: self._n_translated(split) for name, split in probes.items()},
            profile=scores.profile(),
        )

    def evaluate(self, model: Network, n_shown: int) -> tuple[dict[str, Any], list[ReportLine]]:
        tokens, written = self.token_scores(model), self.translate_and_score(model, self.split)
        best, worst, beam = written.best(n_shown), written.worst(n_shown), self.config.evaluation.beam
        apart = {one: dict(zip(BY_TARGET, found, strict=True)) for one, found in written.scores_by_target().items()}
        record = {
            "loss": tokens.loss,
            "perplexity": tokens.perplexity,
            "accuracy": tokens.accuracy,
            "beam": beam,
            "sentences": written.n,
            **written.scores,
            **({"to": apart} if apart else {}),
            **({} if self.lead is None else {"lead": self.lead.dump()}),
            "rows": [asdict(row) for row in (*best, *reversed(worst))],
        }
        if self.scores_own_files:
            losses = zip(written.rows, self.sentence_lengths_and_losses(tokens), strict=True)
            record["rows"] = [
                {"sentence": number, **asdict(row), "tokens": n, "loss": loss}
                for number, (row, (n, loss)) in enumerate(losses, start=1)
            ]
        how = tr("greedily") if beam == 1 else tr("with a beam of {beam}", beam=beam)
        lines = [
            *self.score_lines(written, how),
            (tr("exact"), f"{written.scores['exact_match']:.2%}"),
            (tr("loss"), tr("{loss:.4f} nats per token, end tokens included, no label smoothing", loss=tokens.loss)),
            (tr("perplexity"), f"{tokens.perplexity:.4f}"),
        ]
        for title, some in ((tr("  best, {metric} {score:.1f}"), best), (tr("  worst, {metric} {score:.1f}"), worst)):
            for row in some:
                head = title.format(metric=written.metric, score=row.score)
                lines += [head, f"    {row.source}", f"  → {row.output}", f"  = {row.reference}"]
        return record, lines

    def score_lines(self, written: OutputScores, how: str) -> Iterator[ReportLine]:
        """Yield what the scores of translations say that were written greedily, or with a beam."""
        scores = written.scores
        said = trn(
            "{bleu:.2f}   {n:,} sentence translated {how}",
            "{bleu:.2f}   {n:,} sentences translated {how}",
            written.n,
            bleu=scores["bleu"],
            how=how,
        )
        yield "BLEU", said
        yield "", f"{scores['bleu_signature']}"
        for language, (bleu, exact, n) in written.scores_by_target().items():
            said = tr("BLEU {bleu:.2f}, {exact:.2%} of {n:,} exactly right", bleu=bleu, exact=exact, n=n)
            yield tr("to {language}", language=language[:20]), said
        yield "chrF", f"{scores['chrf']:.2f}   {scores['chrf_signature']}"

    def outputs(self) -> Translations:
        references = self.split.pairs.targets[: len(self._outputs)]
        of_split = {"step": 0, "split": "validation", "beam": self.config.evaluation.beam}
        return Translations.create(**of_split, references=tuple(references), outputs=tuple(self._outputs))

    def batches(self) -> Iterator[Batch]:
        encoded, size = self.split.encoded, evaluation_batch(self.config)
        special, order = pair_special_tokens(self.tokenizer), np.argsort(encoded.lengths.sum(1), kind="stable").tolist()
        joined = not self.config.has_source
        for start in range(0, len(order), size):
            yield pair_batch(encoded.select(order[start : start + size]), special, self.device, joined=joined)

    def sentence_lengths_and_losses(self, scores: TargetScores) -> list[tuple[int, float]]:
        """Return each pair's number of target tokens, its end included, and their mean nll, from the split's scores."""
        lengths = self.split.encoded.lengths
        order = np.argsort(lengths.sum(1), kind="stable")
        parts = np.split(scores.nll, np.cumsum(lengths[order, 1])[:-1])
        found = dict(zip(order.tolist(), parts, strict=True))
        return [(len(found[i]), math.fsum(found[i]) / len(found[i])) for i in range(len(order))]

    def translate_and_score(
        self, model: Network, split: ScoredSplit, between: Callable[[], None] = lambda: None
    ) -> OutputScores:
        outputs = self._translate(model, split, between)
        sources, references = (side[: len(outputs)] for side in (split.pairs.sources, split.pairs.targets))
        return self.score_outputs(sources, references, outputs)

    def score_outputs(self, sources: Sequence[str], references: Sequence[str], outputs: Sequence[str]) -> OutputScores:
        return score_translations(sources, references, outputs, self.language, self.records)

    @property
    def lead(self) -> LeadBaseline | None:
        """What the first sentence of each article scores as its summary, where articles are summarized."""
        return None

    def _n_translated(self, split: ScoredSplit) -> int:
        return min(self.config.evaluation.translations or len(split.pairs), len(split.pairs))

    def _translate(self, model: Network, split: ScoredSplit, between: Callable[[], None]) -> list[str]:
        beam, sources = self.config.evaluation.beam, split.encoded.sources[: self._n_translated(split)]
        translator = Translator(model, self.tokenizer, self.config)
        found = translator.translate(sources, beam=beam, between=between)
        return [best[0].text for best in found]


class SummaryScorer(TranslationScorer):
    """Exact scores and ROUGE of one split."""

    @property
    def activity(self) -> str:
        return trn("summarizing {n:,} article", "summarizing {n:,} articles", len(self.split.pairs))

    def score_outputs(self, sources: Sequence[str], references: Sequence[str], outputs: Sequence[str]) -> OutputScores:
        return score_summaries(sources, references, outputs)

    def score_lines(self, written: OutputScores, how: str) -> Iterator[ReportLine]:
        """The scores of summaries, beside those of each article's first sentence."""
        said = trn("{n:,} article summarized {how}", "{n:,} articles summarized {how}", written.n, how=how)
        yield f"  {said}"
        beside = tr("{score:.2f}   the first sentence: {lead:.2f}")
        for key in ROUGE:
            yield MEASURES_BY_KEY[key].name, beside.format(score=written.scores[key], lead=getattr(self.lead, key))
        copied = tr(
            "{share:.2%} of the words occur in the article; in the reference summaries, {right:.2%}",
            share=written.scores["copied"],
            right=self.lead.copied,
        )
        yield tr("copied"), copied

    @cached_property
    def lead(self) -> LeadBaseline:
        n, pairs = self._n_translated(self.split), self.split.pairs
        articles, references = pairs.sources[:n], pairs.targets[:n]
        found = score_summaries(articles, references, [first_sentence(article) for article in articles])
        rouge = {name: value for name, value in found.scores.items() if name in ROUGE}
        return LeadBaseline.create(**rouge, copied=copied_word_share(articles, references), articles=n)


@dataclass(frozen=True)
class RecallPrompt:
    """A question of a recall probe: a prompt and its answer."""

    prompt: TokenPrompt  # the text with a gap
    answer: str  # the original text
    length: int  # its tokens
    # whether the prompt is the start of a text without a gap, which continues after the answer
    continued: bool = False


@dataclass
class DocumentScorer(Scorer):
    """Exact scores of one split of documents, corrupted in the same way each time, and the share of facts recalled."""

    config: RunConfig
    documents: Sequence[Tokens]
    facts: Mapping[str, Sequence[RecallPrompt]]
    tokenizer: Tokenizer
    device: torch.device
    probe_format = tr("{share:.1%} of {places:,} facts exactly right")

    @property
    def activity(self) -> str:
        return trn("scoring {n:,} document", "scoring {n:,} documents", len(self.documents))

    @property
    def loss_unit(self) -> str:
        return tr("{unit}, mask tokens included", unit=tr(self.config.task.unit))

    def score_model(self, model: Network, between: Callable[[], None] = lambda: None) -> EvaluationScores:
        scores = self.token_scores(model, between)
        facts = self.facts if self.config.evaluation.probes else {}
        return EvaluationScores.create(
            documents=len(self.documents),
            loss=scores.loss,
            perplexity=scores.perplexity,
            accuracy=scores.accuracy,
            probes={name: self.recall_share(model, asked, between) for name, asked in facts.items()},
            probe_places={name: len(asked) for name, asked in facts.items()},
            profile=scores.profile(),
        )

    def batches(self) -> Iterable[Batch]:
        generator, size = mask_generator(self.config.evaluation.seed, "evaluation"), evaluation_batch(self.config)
        objective = corruption_objective(self.config, self.tokenizer.vocab_size)
        return documents_to_score(self.documents, objective, generator, size, self.device)

    def recall_share(self, model: Network, facts: Sequence[RecallPrompt], between: Callable[[], None]) -> float:
        """Return the share of facts that greedily fill their gap, or continue their text, exactly."""
        answers = greedy_answers(
            model,
            [fact.prompt for fact in facts],
            text_vocab_size=self.tokenizer.vocab_size,
            most=1 + max(fact.length for fact in facts),  # anything longer is wrong anyway
            between=between,
        )

        def text(fact: RecallPrompt, answer: Hypothesis) -> str:
            if fact.continued:
                return self.tokenizer.decode(answer.tokens[: fact.length])
            return self.tokenizer.decode(answer.tokens) if answer.finished else ""

        outputs = [text(fact, answer) for fact, answer in zip(facts, answers, strict=True)]
        return exact_match([fact.answer for fact in facts], outputs)


@dataclass
class AnswerScorer(Scorer):
    """Exact scores of one split of questions, `encoded` those with known answers; at most `most` tokens are written."""

    config: RunConfig
    questions: Sequence[Question]
    encoded: EncodedPairs
    tokenizer: Tokenizer
    device: torch.device
    max_tokens: int
    majority: tuple[str, int, int]  # as in `DocumentCorpus`
    _answers: Sequence[str] = ()
    label_width = 11

    @property
    def activity(self) -> str:
        return trn("answering {n:,} question", "answering {n:,} questions", len(self.questions))

    def score_model(self, model: Network, between: Callable[[], None] = lambda: None) -> EvaluationScores:
        asked = [question.text for question in self.questions]
        answers = answer_questions(model, self.tokenizer, self.config, asked, most=self.max_tokens, between=between)
        self._answers = answers
        if not len(self.encoded):
            return EvaluationScores.create(questions=len(answers))
        scores = self.token_scores(model, between)
        told = [(q.answer, given) for q, given in zip(self.questions, answers, strict=True) if q.answer is not None]
        right = sum(given == answer.strip() for answer, given in told)
        return EvaluationScores.create(
            questions=len(told),
            loss=scores.loss,
            perplexity=scores.perplexity,
            accuracy=scores.accuracy,
            right=right,
            exact_match=right / len(told),
            probes={},
            profile=scores.profile(),
        )

    def report_lines(self, record: Mapping[str, Any]) -> Iterator[ReportLine]:
        if "exact_match" in record:
            always, right, of = self.majority
            said = tr(
                "{share:.2%}   {right:,} of {questions:,} questions, answered greedily",
                share=record["exact_match"],
                right=record["right"],
                questions=record["questions"],
            )
            yield tr("exact match"), said
            yield tr(
                "  always answering “{always}” would score {right:.2%} ({right2:,} of {of:,})",
                always=always,
                right=right / of,
                right2=right,
                of=of,
            )
            loss = tr("{loss:.4f} nats per answer token, start and end marks included", loss=record["loss"])
            yield tr("loss"), loss
            yield tr("perplexity"), f"{record['perplexity']:.4f}"
            yield tr("accuracy"), tr("{share:.2%} of answer tokens, marks included", share=record["accuracy"])
        else:
            yield trn(
                "  {n:,} question answered; the split has no reference answers, so there is no score",
                "  {n:,} questions answered; the split has no reference answers, so there is no score",
                record["questions"],
            )
        # of the file, as an answer may have line breaks
        rows = list(zip(self.questions, self.predictions().splitlines(), strict=True))
        for question, written in rows[:N_SHOWN_QUESTIONS]:
            yield f"  {question.text}"
            yield f"  → {written}"
            if question.answer is not None and question.answer != written:
                yield f"  = {question.answer}"

    def predictions(self) -> str:
        return "".join(f"{answer}\n" for answer in self._answers)

    def batches(self) -> Iterable[Batch]:
        objective = QuestionAnswer(self.config, self.tokenizer.vocab_size)
        return questions_to_score(self.encoded, objective, evaluation_batch(self.config), self.device)


@dataclass
class ClassScorer(Scorer):
    """Exact scores of one split of labelled texts, cut to the context; `ordered` are the classes that only the order
    of words tells apart.
    """

    config: RunConfig
    texts: Sequence[Tokens]
    truth: Sequence[int]  # the class of each
    names: Sequence[str]  # of the classes
    order_only_classes: Sequence[int]
    objective: Classification
    device: torch.device
    scores_own_files: bool = False
    overlap: Overlap | None = None
    probe_format = tr("{share:.1%} of {places:,} texts")

    @property
    def activity(self) -> str:
        return trn("classifying {n:,} text", "classifying {n:,} texts", len(self.texts))

    def batches(self) -> Iterator[Batch]:
        return (batch for _, batch in self._numbered_batches())

    def _numbered_batches(self) -> Iterator[tuple[list[int], Batch]]:
        size = evaluation_batch(self.config)
        return texts_to_score(self.texts, self.truth, self.objective, size, self.device)

    def score_model(self, model: Network, between: Callable[[], None] = lambda: None) -> EvaluationScores:
        truth, nll = np.array(self.truth, dtype=np.int64), np.zeros(len(self.texts))
        found = np.zeros(len(self.texts), dtype=np.int64)
        with evaluating(model):
            for rows, batch in self._numbered_batches():
                between()
                log_p = batch.target_logits(model(*batch.inputs))[:, 0].float().log_softmax(-1)
                nll[rows] = -log_p.gather(1, batch.targets)[:, 0].cpu().double().numpy()
                found[rows] = log_p.argmax(-1).cpu().numpy()
        loss, counts = math.fsum(nll) / len(nll), confusion_matrix(truth, found, len(self.names))
        if self.scores_own_files:
            parts = zip(truth.tolist(), found.tolist(), nll.tolist(), strict=True)
            self._rows = [
                {"text": number, "class": self.names[right], "predicted": self.names[given], "loss": loss}
                for number, (right, given, loss) in enumerate(parts, start=1)
            ]
        asked = np.isin(truth, self.order_only_classes)
        probed = self.config.evaluation.probes and bool(asked.any())
        return EvaluationScores.create(
            texts=len(truth),
            loss=loss,
            perplexity=math.exp(loss) if loss < 700 else math.inf,
            accuracy=float((found == truth).mean()),
            macro_f1=macro_f1(counts),
            confusion=tuple(tuple(row) for row in counts.tolist()),
            probes={"order": float((found == truth)[asked].mean())} if probed else {},
            probe_places={"order": int(asked.sum())} if probed else {},
        )
