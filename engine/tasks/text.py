"""Windows of one text: objectives, exact scores, samples that continue a prompt."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from engine.base.errors import InputError
from engine.base.language import Message, tr, trn
from engine.base.seeds import seed_for
from engine.config.lints import Lint
from engine.config.measures import MOST_UNKNOWN
from engine.config.schema import RunConfig
from engine.config.tasks import MASK, START
from engine.config.toml import resolve_config
from engine.config.visibility import self_attention
from engine.data import sources
from engine.data.baselines import bigram_loss, unigram_loss
from engine.data.corpora import TextCorpus, cached_text_overlap
from engine.data.corpus import END_OF_TEXT
from engine.data.framing import beginnings
from engine.data.known import CORPORA
from engine.data.loader import (
    BatchStream,
    TextBatches,
    TextTokens,
    boundary_token,
    mask_generator,
    occurrences,
    token_positions,
    training_batches,
    wrap_tokens,
)
from engine.data.objectives import IGNORED, Batch, Objective, make_objective, token_origins
from engine.data.overlap import Overlap
from engine.data.padding import copy_to_device
from engine.data.shards import encodable_parts
from engine.data.spelling import spelling_model_costs, spelling_model_counts, split_spelling_model_counts
from engine.data.splits import AnySplit, Split
from engine.data.text_sizes import TextSizes, sizes_of
from engine.data.tokenizers import (
    AnyTokenizer,
    BpeTokenizer,
    ByteTokenizer,
    CharacterTokenizer,
    TextWordTokenizer,
    Tokenizer,
    describe,
    read_any_tokenizer,
)
from engine.data.tokenizers.bpe import cached_bpe_by_hash
from engine.data.tokenizers.text_words import UNK, has_unknown
from engine.evaluation.metrics import (
    PlaceFilter,
    TargetScores,
    excess_over_floor,
    nanogpt_loss,
    places_with_evidence,
    places_with_minimum_history,
    probe_counts,
    score_batches,
    score_tokens,
    scores_by_distance,
)
from engine.evaluation.reachable import ReachableFloor, reachable_floor
from engine.generation.output import AnswerToken, ScoredText
from engine.generation.sampling import Sampling, fill_gaps, sample_text
from engine.generation.surprise import text_surprise
from engine.model.transformer import Network, evaluating
from engine.runs.record_version import RECORD_VERSION
from engine.runs.records import DataFacts, EvaluationScores, ExamplePrompt, Floor, ProbeFacts, Sample
from engine.tasks.pipeline import START_MARK, Pipeline, answer_tokens, scored_text
from engine.tasks.task import (
    OwnFiles,
    ReportLine,
    Sampler,
    Scorer,
    Task,
    evaluation_batch,
    require_encodable,
    require_min_vocab_size,
)

GAP = "_"  # shown for a hidden character
HEAD = 1 << 16  # characters of a text that a prompt is taken from
# The kind that each tokenizer of a config makes; a loaded one may be of any.
TOKENIZER_KINDS = {
    "characters": CharacterTokenizer.kind,
    "bpe": BpeTokenizer.kind,
    "words": TextWordTokenizer.kind,
    "bytes": ByteTokenizer.kind,
}
N_PROMPTS = 3  # to try
MAX_PROMPT = 32  # characters of the validation text that samples continue, where no prompt is set
TOKEN_COLUMNS = ("nll", "correct", "place")  # of each token


class NextTokenObjective(Objective):
    """Source, if any, tokens and targets are parts of one window (B, L)."""

    source: slice | None = None
    tokens, targets = slice(None, -1), slice(1, None)

    def batch(self, windows: Tensor, generator: Generator) -> Batch:
        targets, source = windows[:, self.targets], None if self.source is None else windows[:, self.source]
        return Batch(windows[:, self.tokens], targets, targets.numel(), source)


class ContinuationObjective(NextTokenObjective):
    """The text that follows the source; the decoder's first token is the source's last."""

    def __init__(self, config: RunConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        read = config.model.source_tokens
        self.source, self.tokens, self.targets = slice(read), slice(read - 1, -1), slice(read, None)


class ShiftedObjective(NextTokenObjective):
    """A course report's mistake: the target is the shifted source, which holds all but the last target token."""

    source, tokens, targets = slice(None, -1), slice(1, -1), slice(2, None)


class MaskedObjective(Objective):
    """Some tokens are hidden and predicted from both sides (Devlin et al. 2019, BERT, §3.1).

    A fixed share of each row is scored. Of those 80 % are replaced by the mask token, 10 % by a random token and 10 %
    stay, drawn anew for each batch. Only scored places count.
    """

    predicts_hidden = True

    def __init__(self, config: RunConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        self.n_scored = max(1, round(config.objective.mask_fraction * self.window))
        self.mask = self.special[MASK]

    def batch(self, windows: Tensor, generator: Generator) -> Batch:
        # (B, T) → (B, T) tokens with gaps, and targets
        chosen = torch.rand(windows.shape, generator=generator).argsort(-1)[:, : self.n_scored]
        fate = torch.rand(chosen.shape, generator=generator)
        drawn = torch.randint(self.vocab_size, chosen.shape, generator=generator)
        chosen, fate, drawn = (copy_to_device(x, windows.device) for x in (chosen, fate, drawn))
        truth = windows.gather(1, chosen)
        shown = torch.where(fate < 0.8, self.mask, torch.where(fate < 0.9, drawn, truth))
        targets = torch.full_like(windows, IGNORED).scatter(1, chosen, truth)
        return Batch(windows.scatter(1, chosen, shown), targets, chosen.numel())


class CopyObjective(Objective):
    """The source again, in the same or another order, after a start token: toy tasks that need attention.

    The leak probe uses it for `translation`, with targets as long as their sources.
    """

    conditional = True

    def __init__(self, config: RunConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        self.start = self.special[START]
        self.source_tokens = config.model.source_vocab_size

    def batch(self, windows: Tensor, generator: Generator) -> Batch:
        # (B, S) → (B, S) source, tokens and targets
        targets = self.make_target(windows)
        start = torch.full_like(targets[:, :1], self.start)
        source = windows if self.source_tokens is None else windows.remainder(self.source_tokens)
        return Batch(torch.cat((start, targets[:, :-1]), dim=1), targets, targets.numel(), source)

    def make_target(self, source: Tensor) -> Tensor:
        """(B, S) → (B, S), the target of each source."""
        return source


class ReverseObjective(CopyObjective):
    def make_target(self, source: Tensor) -> Tensor:
        return source.flip(1)


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


class TextSampler(Sampler):
    """Samples text from a fixed prompt, which needs at least one character the tokenizer knows."""

    def __init__(self, config: RunConfig, tokenizer: Tokenizer, prompt: str, ids: torch.Tensor | None = None) -> None:
        self.config, self.tokenizer, self.prompt = config, tokenizer, prompt
        self._ids = torch.from_numpy(tokenizer.encode(prompt)) if ids is None else ids

    def sample(self, model: Network, step: int, between: Callable[[], None] = lambda: None) -> Sample:
        how, seed = Sampling.from_config(self.config), seed_for(self.config.seed, "sample", step)
        device, size = next(model.parameters()).device, self.tokenizer.vocab_size
        with evaluating(model):
            if self.config.task.fills_gaps:
                ids = self._ids[: self.config.model.context_length].to(device)
                objective = make_objective(self.config, size)
                hidden = objective.batch(ids[None], mask_generator(self.config.seed, "sample")).targets[0] != IGNORED
                filled, _ = fill_gaps(model, size, ids, hidden, how, seed)
                prompt = self.tokenizer.decode(torch.where(hidden, size, ids).tolist()).replace("\ufffd", GAP)
                text, given = self.tokenizer.decode(filled.tolist()), {}
            else:
                drawn, length = [], self.config.evaluation.sample_length
                for token in sample_text(model, self.config, size, self._ids.to(device), length, how, seed):
                    between()
                    drawn.append(token)
                written = [token.token for token in drawn]
                prompt, text = self.prompt, self.tokenizer.decode_continuation(self._ids.tolist(), written)
                given = {"chances": [round(token.chance, 4) for token in drawn]}
        drawn_with = {"temperature": how.temperature, "top_k": how.top_k, "top_p": how.top_p}
        return Sample.create(step=step, prompt=prompt, text=text, **given, **drawn_with)


class TextPipeline(Pipeline):
    """Continues a text, or writes a target from a source."""

    default_length = 200
    special_label = START_MARK  # for the special token, if there is one

    def length_warning(self, text: str, length: int) -> str:
        """Warn if the context will fill up, or the source's length differs from training."""
        tokens = len(text) if self.tokenizer.per_character else len(self.tokenizer.encode(text))
        if not self.config.task.continues:
            trained, given = self.config.model.source_tokens, tokens
            then = tr("only the end is used") if given > trained else tr("the model has not seen other lengths")
            words = tr(
                "the model was trained on sources of {trained} {units}, but this one has {given}: {then}",
                trained=trained,
                units=self.token_nouns,
                given=given,
                then=then,
            )
            return words if given != trained else ""
        context, wanted = self.config.model.context_length, tokens + length
        then = (
            tr(
                "each time the context fills up, the model continues from the last {max} tokens",
                max=max(1, context // 2),
            )
            if self.config.generation.overflow == "restart"
            else tr("writing stops there")
        )
        words = tr(
            "the model was trained on {context} tokens at a time, but you asked for {wanted}: {then}",
            context=context,
            wanted=wanted,
            then=then,
        )
        return words if wanted > context else ""

    @property
    def token_nouns(self) -> str:
        return tr("characters") if self.tokenizer.per_character else tr("tokens")

    def write(self, text: str, how: Sampling, seed: int, length: int, alternatives: int) -> Iterator[AnswerToken]:
        if not text:
            raise InputError(Message("prompt '': enter at least one character, e.g. 'O'"))
        ids = self.encode(text)
        drawn = sample_text(self.model, self.config, self.size, ids, length, how, seed, alternatives)
        decoder = self.tokenizer.decoder()
        for token in ids.tolist():  # what is written continues it
            decoder.feed(token)
        yield from answer_tokens(drawn, decoder.feed, self.decode_token)

    def encode(self, text: str) -> Tensor:
        ids = torch.from_numpy(self.tokenizer.encode(text)).to(self.device)
        if text and not ids.numel():
            raise InputError(Message("prompt: contains no tokens; enter at least one word"))
        return ids

    def surprise(self, text: str, alternatives: int) -> ScoredText:
        found = text_surprise(self.model, self.config, self.size, self.encode(text), alternatives)
        source, decoder, unit = self.tokenizer.decode(found.source), self.tokenizer.decoder(), self.token_noun
        rule = tr("each {unit} given the source “{source}” and the target before it", unit=unit, source=source)
        if not found.source:
            rule = tr(
                "each {unit} given up to {context} before it; from the second window on, at least {context2}",
                unit=unit,
                context=found.context,
                context2=found.context - found.stride,
            )
        return scored_text(found.tokens, decoder.feed, self.decode_token, source, rule)

    def model_input(self, text: str, written: str) -> tuple[Tensor, Tensor | None]:
        model = self.config.model
        if self.config.task.continues:
            return self.encode(text + written)[-model.context_length :], None
        source = self.encode(text)[-model.source_tokens :]
        first = source.new_tensor([self.size]) if self.config.special_tokens else source[-1:]
        return torch.cat((first, self.encode(written)))[: model.context_length], source

    def token_labels(self, ids: Tensor, *, is_source: bool) -> tuple[str, ...]:
        return tuple(self.decode_token(token) if token < self.size else self.special_label for token in ids.tolist())


class GapPipeline(TextPipeline):
    """Fills gaps of one token."""

    special_label = GAP

    def length_warning(self, text: str, length: int) -> str:
        return ""

    def write(self, text: str, how: Sampling, seed: int, length: int, alternatives: int) -> Iterator[AnswerToken]:
        if not text:
            raise InputError(Message("prompt '': enter at least one character, e.g. 'O'"))
        ids, gaps = self.encode_with_gaps(text)
        filled, choices = fill_gaps(self.model, self.size, ids, gaps, how, seed, alternatives)
        decoder = self.tokenizer.decoder()
        found = answer_tokens(choices, decoder.feed, self.decode_token)
        for token, gap in zip(filled.tolist(), gaps.tolist(), strict=True):
            yield next(found) if gap else AnswerToken(decoder.feed(token))

    def encode_with_gaps(self, text: str) -> tuple[Tensor, Tensor]:
        """Return (T,) ids of a text, with placeholders at gaps, and (T,) bool of where they are."""
        context = self.config.model.context_length
        # A gap is one token, whatever a token is.
        parts = [self.tokenizer.encode(part) for part in text.split(GAP)]
        tokens = sum(map(len, parts)) + len(parts) - 1
        if GAP not in text or tokens > context:
            raise InputError(
                Message(
                    "prompt: this model fills gaps of one {unit}; mark each with {gap}, in a text of at most "
                    "{context} {units}, e.g. {example}",
                    unit=self.token_noun,
                    gap=GAP,
                    context=context,
                    units=self.token_nouns,
                    example=tr("'the g_te'") if self.tokenizer.per_character else tr("'the _ sat'"),
                )
            )
        gaps = torch.zeros(tokens, dtype=torch.bool, device=self.device)
        ids = torch.zeros(tokens, dtype=torch.long, device=self.device)
        at = 0
        for part in parts[:-1]:
            at += len(part)
            gaps[at] = True
            at += 1
        ids[~gaps] = torch.from_numpy(np.concatenate(parts)).to(self.device)
        return ids, gaps

    def model_input(self, text: str, written: str) -> tuple[Tensor, Tensor | None]:
        if written:  # the filled text
            return self.encode(written), None
        ids, gaps = self.encode_with_gaps(text)
        return torch.where(gaps, self.size, ids), None


@dataclass(frozen=True)
class TextTask(Task):
    """A text corpus with its tokenizer and encoded splits, (n,) whole numbers each."""

    corpus: TextCorpus
    tokenizer: Tokenizer
    tokens: dict[str, TextTokens]
    corpus_class = TextCorpus
    overlap_between = staticmethod(cached_text_overlap)

    @classmethod
    def from_corpus(cls, corpus: TextCorpus, config: RunConfig, given_tokenizer: AnyTokenizer | None = None) -> Self:
        found = make_tokenizer(corpus, config) if given_tokenizer is None else given_tokenizer
        wanted = TOKENIZER_KINDS.get(config.data.tokenizer)
        if found.is_pair or wanted not in (None, found.kind):
            problem = Message(
                "train.init_from: '{name}' reads text with the '{tokenizer}' tokenizer, but the parent's is "
                "'{kind}' ({described}): its weights were trained on different tokens",
                name=config.task.name,
                tokenizer=config.data.tokenizer,
                kind=found.kind,
                described=tr(describe(found)),
            )
            raise InputError(problem)
        tokenizer = found.target
        if given_tokenizer is not None:
            for name, split in corpus.splits.items():
                where = tr("corpus {corpus}: its {split} split", corpus=corpus.name, split=name)
                for piece in split.pieces():
                    require_encodable(tokenizer, piece, where)
        tokens = {name: wrap_tokens(split.tokens(tokenizer)) for name, split in corpus.splits.items()}
        context = config.model.context_length
        for name in ("train", "validation"):
            have = tokens[name].numel() if name in tokens else 0
            shorter_will_do = name == "validation" and config.task.continues
            needed = 2 if shorter_will_do else config.window_tokens
            if have < needed:
                problem = Message(
                    "corpus {name}: its {name2} split has {have:,} tokens, fewer than the {needed:,} that a "
                    "context of {context:,} needs; use a longer text or "
                    "--set model.context_length={max}",
                    name=corpus.name,
                    name2=name,
                    have=have,
                    needed=needed,
                    context=context,
                    max=max(1, have // 4),
                )
                raise InputError(problem)
        return cls(corpus, tokenizer, tokens)

    @classmethod
    def user_files_scorer(cls, user_files: OwnFiles) -> TextsScorer:
        source, config, tokenizer = (
            sources.find_source(user_files.files["text"], user_files.reading),
            user_files.config,
            user_files.tokenizer.target,
        )
        whole = "".join(piece for split in source.files for piece in source.pieces(split))
        where, needed = str(source.path)[:200], 2 if config.task.continues else config.window_tokens
        texts, train = list[TextScorer](), cls.reload_training_split(user_files)
        found = [text for text in whole.split(END_OF_TEXT) if text and not text.isspace()]
        for number, text in enumerate(found, start=1):
            try:
                tokens = torch.from_numpy(tokenizer.encode(text)).to(user_files.device)
            except InputError as error:
                place = where if len(found) == 1 else tr("{file}: document {n:,}", file=where, n=number)
                raise InputError(f"{place}: {error}") from None
            if len(tokens) >= needed:
                texts.append(TextScorer(config, Split(text), tokens, tokenizer, train=train))
        if not texts:
            problem = Message(
                "{file}: too short to be scored; this model needs at least {n:,} tokens", file=where, n=needed
            )
            raise InputError(problem)
        given = Split(END_OF_TEXT.join(text.split.text for text in texts))
        return TextsScorer(config, texts, len(found) - len(texts), cls.user_files_overlap(train, given))

    def corpus_only_tokenizer(self) -> Tokenizer | None:
        return _character_tokenizer(self.corpus) if self.tokenizer.per_character else None

    def n_predicted(self, split: str) -> int:
        return self.tokens[split].numel()

    def lints(self, config: RunConfig) -> Iterator[Lint]:
        yield from super().lints(config)
        shares = ((self._count_unknown(name) / self.n_predicted(name), name) for name in ("train", "validation"))
        share, split = max(shares)
        if share > MOST_UNKNOWN:
            text = Message(
                "{share:.0%} of the tokens in the {split} split are <unk>, words that the model does not know: most of "
                "its bits per byte go into spelling them, so they are not compared; use a larger data.words_size, or "
                "byte pairs (--set data.tokenizer=bpe)",
                share=share,
                split=split,
            )
            yield Lint("data.tokenizer", text)

    def _count_unknown(self, split: str) -> int:
        """Return how many tokens of a split are `<unk>`."""
        token = self.tokenizer.unknown
        return 0 if token is None else occurrences(self.tokens[split], token)

    def resolve_config(self, config: RunConfig, where: str, threads: int) -> RunConfig:
        of = "characters" if self.tokenizer.per_character else Message("tokens")
        needed = require_min_vocab_size(config, self.vocab_size, of)
        return resolve_config(config, where, vocab_size=needed, threads=threads, train_tokens=self.n_predicted("train"))

    def facts(self, config: RunConfig) -> DataFacts:
        train, held_out = (self.tokens[name].numpy() for name in ("train", "validation"))
        examples = self._prompts(config)
        # With a given source or both sides of a gap, a lower loss than the floor is possible.
        floor = self.corpus.splits["validation"].floor_mean if config.task.predicts_from_past else None
        reachable = None if floor is None else self.scorer(config, torch.device("cpu")).reachable
        above = {} if reachable is None else {"reachable": reachable.facts}
        by_character = self.tokenizer.per_character
        return DataFacts.create(
            **self.corpus_facts(),
            splits={name: self._split_counts(name) for name in self.corpus.splits},
            vocabulary=self.vocab_size,
            tokenizer_sha256=self.tokenizer.sha256,
            overlap=self.overlap_facts,
            floor=None if floor is None else Floor.create(nats_per_char=floor[0], se=floor[1], **above),
            plausible=CORPORA[self.corpus.name].plausible if by_character and self.corpus.name in CORPORA else None,
            unigram=unigram_loss(train, held_out, self.vocab_size),
            bigram=bigram_loss(train, held_out, self.vocab_size),
            examples=examples,
            probes=tuple(
                ProbeFacts.create(
                    name=probe.name,
                    description=probe.description,
                    n=int(probe.at.size),
                    chance=probe.chance,
                    shortcut=probe.shortcut,
                )
                for probe in self.corpus.splits["validation"].probes
            ),
        )

    def _prompts(self, config: RunConfig) -> tuple[ExamplePrompt, ...]:
        """Return prompts to try, from the held-out text."""
        found = beginnings(self.corpus.splits["validation"].head(HEAD)) if config.task.continues else ()
        some = islice((one for one in found if len(self.tokenizer.encode(one))), N_PROMPTS)
        return tuple(ExamplePrompt.create(source=one, origin=Message("held out")) for one in some)

    def batches(self, config: RunConfig, device: torch.device) -> BatchStream:
        boundary = boundary_token(config, self.tokenizer)
        return training_batches(self.tokens["train"], config, make_objective(config, self.vocab_size), device, boundary)

    def scorer(self, config: RunConfig, device: torch.device, split: str = "validation") -> TextScorer:
        tokens = self.tokens[split].to(device)
        train, scored = self.corpus.splits["train"], self.corpus.splits[split]
        return TextScorer(config, scored, tokens, self.tokenizer, self.records, train)

    def _split_counts(self, split: str) -> dict[str, int]:
        """The sizes of a split; words and bytes where tokens are not characters."""
        found, tokenizer = self.corpus.splits[split], self.tokenizer
        counts = {"characters": found.length, "tokens": self.n_predicted(split)}
        if tokenizer.per_character:
            return counts
        counts |= {"words": found.text_sizes.words, "bytes": found.text_sizes.bytes}
        if tokenizer.unknown is not None:
            counts["unknown"] = self._count_unknown(split)
        return counts

    def sampler(self, config: RunConfig) -> Sampler:
        prompt = config.evaluation.sample_prompt
        if prompt:
            if not len(self.tokenizer.encode(prompt)):  # refused now, not at step 500
                raise InputError(Message("evaluation.sample_prompt: has no tokens; give it a word"))
            return TextSampler(config, self.tokenizer, prompt)
        held_out = self.corpus.splits["validation"].head(HEAD)
        if not config.task.continues:  # a source, or a text to hide parts of
            most = min(config.window_tokens, config.model.source_tokens)
            if not self.tokenizer.per_character:
                ids = self.tokens["validation"][:most].long()
                return TextSampler(config, self.tokenizer, self.tokenizer.decode(ids.tolist()), ids)
            prompt = held_out[:most]
        elif not self.tokenizer.per_character:  # whole words of the first line that has some
            line = next((line.strip() for line in held_out.split("\n") if line.strip()), "")
            first, more = line[:MAX_PROMPT], line[MAX_PROMPT : MAX_PROMPT + 1].strip()
            prompt = (first.rpartition(" ")[0] if more else first) or first
            if not len(self.tokenizer.encode(prompt)):
                prompt = self.tokenizer.decode([0])
        else:
            first = held_out.lstrip("\n")[:MAX_PROMPT]
            prompt = first.split("\n", 1)[0] or first[:1] or self.tokenizer.decode([0])
        return TextSampler(config, self.tokenizer, prompt)


def make_tokenizer(corpus: TextCorpus, config: RunConfig) -> Tokenizer:
    """Return the tokenizer that a config asks for; only `characters` look at more than the training split."""
    data, train = config.data, corpus.splits["train"]
    if data.tokenizer == "loaded":
        return read_any_tokenizer(Path(data.tokenizer_from or "").expanduser())
    if data.tokenizer == "bpe":
        return cached_bpe_by_hash(train.sha256, encodable_parts(train.pieces(), BpeTokenizer(())), data.bpe_size)
    if data.tokenizer == "words":
        spaced = has_unknown(train.pieces())
        parts = encodable_parts(train.pieces(), TextWordTokenizer([UNK], spaced=spaced))
        return TextWordTokenizer.from_parts(parts, data.words_size, spaced=spaced)
    return ByteTokenizer() if data.tokenizer == "bytes" else _character_tokenizer(corpus)


def _character_tokenizer(corpus: TextCorpus) -> CharacterTokenizer:
    """Return a tokenizer of every character of every split, as in nanoGPT."""
    return CharacterTokenizer(sorted(set[str]().union(*(split.characters for split in corpus.splits.values()))))
