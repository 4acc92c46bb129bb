"""Translation: tokenizers, batches of similar length, exact scores and BLEU, translated examples."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from engine.base.errors import InputError, join_or
from engine.base.language import Message, tr, trn
from engine.config.lints import Lint
from engine.config.schema import RunConfig
from engine.config.schemes import POSITIONS
from engine.config.tasks import END, PAD, START
from engine.data.baselines import sentence_losses
from engine.data.objectives import Batch, Objective, TokenPrompt, joined_batch, make_objective
from engine.data.overlap import Overlap, pair_overlap
from engine.data.padding import AnyDevice, Tokens
from engine.data.parallel.by_path import read_aligned
from engine.data.parallel.pairs import Pairs, ParallelCorpus
from engine.data.rows import BothSpecials, BucketedBatches, EncodedPairs, Relabel, identity, pair_batch
from engine.data.tokenizers import (
    AnyTokenizer,
    CharacterTokenizer,
    PairTokenizer,
    TaggedTokenizer,
    Tokenizer,
    cached_bpe,
    describe,
)
from engine.data.tokenizers.tagged import add_tag, remove_tag, target_language_of
from engine.evaluation.metrics import TargetScores
from engine.evaluation.translation import (
    CHARACTER_BLEU_NOTE,
    OutputScores,
    bleu_tokenizer,
    exact_match,
    score_translations,
)
from engine.generation.beam import Hypothesis
from engine.generation.output import AnswerToken, BeamResult, ScoredText
from engine.generation.sampling import Sampling
from engine.generation.surprise import translation_surprise
from engine.generation.translation import Translator, pair_special_tokens
from engine.model.transformer import Network
from engine.runs.records import DataFacts, EvaluationScores, ExamplePrompt, LeadBaseline, ProbeFacts, Translations
from engine.tasks.pipeline import END_MARK, START_MARK, AnswerPipeline, scored_text, split_at_arrow
from engine.tasks.task import (
    N_SAMPLES,
    OWN_SPLIT,
    OwnFiles,
    ReportLine,
    RowSampler,
    RowScorer,
    RowTask,
    evaluation_batch,
    require_encodable,
    require_min_vocab_size,
    sample_prompts,
)
from engine.tasks.text import CopyObjective

N_EXAMPLES = 5  # held-out sentences among the examples
SPLITS = ("train", "validation", "test")  # any other is a probe
BY_TARGET = ("bleu", "exact_match", "sentences")  # of each of several target languages, in JSON


class JoinedPairs(Objective):
    """`source ⟨start⟩ target ⟨end⟩` in one text: what follows the start token is predicted, each token from all before
    it. A window's first half is the source.
    """

    reorders_text = True

    def __init__(self, config: RunConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        self.pad, self.start, self.end = (self.special[name] for name in (PAD, START, END))

    def batch(self, windows: Tensor, generator: Generator) -> Batch:
        rows, read = windows.cpu().numpy(), self.window // 2
        ended = [np.append(row, self.end) for row in rows[:, read:]]
        return joined_batch(list(rows[:, :read]), ended, self.start, self.pad, windows.device)


def pair_objective(config: RunConfig, vocab_size: int) -> Objective:
    return (CopyObjective if config.has_source else JoinedPairs)(config, vocab_size)


class PairBatches(BucketedBatches[Objective]):
    """The batch stream of sentence pairs. Raises InputError: a pair is longer than the budget, or there is none."""

    def __init__(
        self,
        pairs: EncodedPairs,
        config: RunConfig,
        objective: Objective,
        special: BothSpecials,
        device: AnyDevice = "cpu",
    ) -> None:
        self.pairs, self.objective, self.special, self.device = pairs, objective, special, device
        self._joined = not config.has_source
        if not len(pairs):
            problem = Message("no sentence pairs are left to train on; raise data.max_length or model.context_length")
            raise InputError(problem)
        or_else = tr(", or leave longer ones out with data.max_length")
        lengths = pairs.joined_lengths if self._joined else pairs.lengths
        super().__init__(lambda epoch: lengths, config, tr("sentence"), or_else)

    def _make_batch(self, rows: Sequence[int], step: int, micro: int, relabel: Relabel = identity) -> Batch:
        pairs = self.pairs.select(rows)
        pairs = EncodedPairs(pairs.sources, [*map(relabel, pairs.targets)])
        return pair_batch(pairs, self.special, self.device, joined=self._joined)


@dataclass
class TranslationScorer(RowScorer["TranslationTask"]):
    """Exact scores and BLEU of one split, and exact matches of other splits, such as unseen constructions."""

    _outputs: Sequence[str] = ()

    @property
    def pairs(self) -> Pairs:
        return self.task.corpus.splits[self.split]

    @property
    def activity(self) -> str:
        return trn("translating {n:,} sentence", "translating {n:,} sentences", len(self.pairs))

    def score_model(self, model: Network, between: Callable[[], None] = lambda: None) -> EvaluationScores:
        scores = self.token_scores(model, between)
        written = self.translate_and_score(model, between)
        self._outputs = [row.output for row in written.rows]
        characters = sum(len(target) + 1 for target in self.pairs.targets)  # each ends
        probes = self.task.probe_splits() if self.config.evaluation.probes else {}
        apart = written.scores_by_target()
        return EvaluationScores.create(
            sentences=len(self.pairs),
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
                    self.task.corpus.splits[name].targets[: self._n_translated(name)],
                    self._translate(model, name, between),
                )
                for name in probes
            },
            probe_places={f"to_{target}": n for target, (*_, n) in apart.items()}
            | {name: self._n_translated(name) for name in probes},
            profile=scores.profile(),
        )

    def evaluate(self, model: Network, n_shown: int) -> tuple[dict[str, Any], list[ReportLine]]:
        tokens, written = self.token_scores(model), self.translate_and_score(model)
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
        references = self.pairs.targets[: len(self._outputs)]
        of_split = {"step": 0, "split": "validation", "beam": self.config.evaluation.beam}
        return Translations.create(**of_split, references=tuple(references), outputs=tuple(self._outputs))

    def batches(self) -> Iterator[Batch]:
        encoded, size, joined = self.task.encoded[self.split], evaluation_batch(self.config), not self.config.has_source
        special = pair_special_tokens(self.task.tokenizer)
        order = np.argsort(encoded.lengths.sum(1), kind="stable").tolist()
        for start in range(0, len(order), size):
            yield pair_batch(encoded.select(order[start : start + size]), special, self.device, joined=joined)

    def sentence_lengths_and_losses(self, scores: TargetScores) -> list[tuple[int, float]]:
        """Return each pair's number of target tokens, its end included, and their mean nll, from the split's scores."""
        lengths = self.task.encoded[self.split].lengths
        order = np.argsort(lengths.sum(1), kind="stable")
        parts = np.split(scores.nll, np.cumsum(lengths[order, 1])[:-1])
        found = dict(zip(order.tolist(), parts, strict=True))
        return [(len(found[i]), math.fsum(found[i]) / len(found[i])) for i in range(len(order))]

    def translate_and_score(self, model: Network, between: Callable[[], None] = lambda: None) -> OutputScores:
        outputs = self._translate(model, self.split, between)
        sources, references = (side[: len(outputs)] for side in (self.pairs.sources, self.pairs.targets))
        return self.score_outputs(sources, references, outputs)

    def score_outputs(self, sources: Sequence[str], references: Sequence[str], outputs: Sequence[str]) -> OutputScores:
        corpus = self.task.corpus
        language = "" if corpus.tagged_languages else corpus.languages[-1]  # sources name theirs, if there are several
        return score_translations(sources, references, outputs, language, self.task.records)

    @property
    def lead(self) -> LeadBaseline | None:
        """What the first sentence of each article scores as its summary, where articles are summarized."""
        return None

    def _n_translated(self, split: str) -> int:
        n = len(self.task.encoded[split])
        return min(self.config.evaluation.translations or n, n)

    def _translate(self, model: Network, split: str, between: Callable[[], None]) -> list[str]:
        beam, sources = self.config.evaluation.beam, self.task.encoded[split].sources[: self._n_translated(split)]
        translator = Translator(model, self.task.tokenizer, self.config)
        found = translator.translate(sources, beam=beam, between=between)
        return [best[0].text for best in found]


class TranslationPipeline(AnswerPipeline):
    """Translates or summarizes. It ranks no whole answers: a beam ranks with a length penalty, not by probability."""

    default_length = 200

    def __init__(self, model: Network, tokenizer: AnyTokenizer, config: RunConfig, classes: tuple[str, ...]) -> None:
        super().__init__(model, tokenizer, config, classes)
        self.source, self.translator = tokenizer.source, Translator(model, tokenizer, config)

    def prompt(self, text: str) -> TokenPrompt:
        return self.translator.prompt(text)

    def encode_answer(self, written: str, prompt: TokenPrompt) -> Tokens:
        return self.tokenizer.encode(written)

    def max_length(self, prompt: TokenPrompt) -> int:
        return self.translator.max_length(len(prompt.source_or_tokens))

    def write(self, text: str, how: Sampling, seed: int, length: int, alternatives: int) -> Iterator[AnswerToken]:
        self._require_text(text)
        yield from super().write(text, how, seed, length, alternatives)

    def search(self, text: str, how: Mapping[str, float], between: Callable[[], None]) -> tuple[BeamResult, ...]:
        """Raise InputError also if a beam cannot give as many."""
        self._require_text(text)
        beam, n_best = int(how["beam"]), int(how["nbest"])
        if n_best > beam:
            raise InputError(
                Message(
                    "/nbest {n_best}: more than a beam of {beam} can give; enter /beam {n_best}",
                    n_best=n_best,
                    beam=beam,
                )
            )
        sources, alpha = self.translator.encode([text]), float(how["alpha"])
        (found,) = self.translator.translate(
            sources, beam=beam, n_best=n_best, alpha=alpha, most=int(how["length"]), between=between
        )
        return tuple(self._beam_result(one.hypothesis) for one in found)

    def _beam_result(self, one: Hypothesis) -> BeamResult:
        decoder = self.tokenizer.decoder()
        pieces = (AnswerToken(decoder.feed(t), chance) for t, chance in zip(one.tokens, one.chances, strict=True))
        return BeamResult(tuple(pieces), one.score)

    def _require_text(self, text: str) -> None:
        if not text.strip():
            raise InputError(self.config.task.empty_prompt)

    def surprise(self, text: str, alternatives: int) -> ScoredText:
        source, target = split_at_arrow(text, self.config.task.surprise_usage)
        found = translation_surprise(self.translator, source, target, alternatives)
        rule = tr(
            "each token given the source “{source}” and the target tokens before it; ■ marks the end", source=source
        )
        text_of = lambda token: self.decode_token(token) if token < self.size else END_MARK
        return scored_text(found, text_of, text_of, source, rule)

    def token_labels(self, ids: Tensor, *, is_source: bool) -> tuple[str, ...]:
        side, special = (self.source, END_MARK) if is_source else (self.tokenizer, START_MARK)
        return tuple(side.decode([token]) if token < side.vocab_size else special for token in ids.tolist())


@dataclass(frozen=True)
class TranslationTask(RowTask):
    corpus: ParallelCorpus
    tokenizer: AnyTokenizer
    encoded: Mapping[str, EncodedPairs]
    corpus_class = ParallelCorpus
    scorer_class: ClassVar[type[TranslationScorer]] = TranslationScorer

    @classmethod
    def from_corpus(
        cls, corpus: ParallelCorpus, config: RunConfig, given_tokenizer: AnyTokenizer | None = None
    ) -> Self:
        tokenizer = (
            make_tokenizer(corpus, config) if given_tokenizer is None else _inherited_tokenizer(given_tokenizer, corpus)
        )
        most = config.task.source_truncation_length(config)
        encoded = {}
        for name, pairs in corpus.splits.items():
            sources = _truncate(tokenizer.source.encode_all(pairs.sources), most)
            encoded[name] = EncodedPairs(sources, tokenizer.target.encode_all(pairs.targets))
        task = cls(corpus, tokenizer, encoded)
        task._fitting_pairs(config)
        for name in ("validation", *task.probe_splits()):
            task._require_positions(config, name)
        return task

    @classmethod
    def user_files_scorer(cls, user_files: OwnFiles) -> TranslationScorer:
        files, tokenizer = user_files.files, user_files.tokenizer
        source, reference = (Path(files[side]).expanduser() for side in ("source", "reference"))
        pairs = read_aligned(source, reference, user_files.reading)
        encoded = []
        for side, sentences in (("source", pairs.sources), ("reference", pairs.targets)):
            known = tokenizer.source if side == "source" else tokenizer.target
            for number, sentence in enumerate(sentences, start=1):
                place = known.first_unknown(sentence)
                if place is not None:
                    problem = Message(
                        "{file}: line {line}: this model has never seen {character!r} (U+{ord:04X})",
                        file=files[side][:200],
                        line=number,
                        character=sentence[place],
                        ord=ord(sentence[place]),
                    )
                    raise InputError(problem)
            encoded.append(known.encode_all(sentences))
        tags = tokenizer.source.tags
        untold = next((n for n, one in enumerate(pairs.sources, start=1) if target_language_of(one) not in tags), None)
        if tags and untold is not None:
            problem = Message(
                "{file}: line {line}: must start with the tag of the language to translate into: {known}",
                file=files["source"][:200],
                line=untold,
                known=join_or(add_tag("…", tag) for tag in tags),
            )
            raise InputError(problem)
        languages = ("source", *(tags or user_files.facts.languages[-1:] or ("target",)))
        corpus = ParallelCorpus(files["source"], "", "", languages, {OWN_SPLIT: pairs})
        sources, targets = encoded
        most = user_files.config.task.source_truncation_length(user_files.config)
        task = cls(corpus, tokenizer, {OWN_SPLIT: EncodedPairs(_truncate(sources, most), targets)})
        seen = cls.user_files_overlap(cls.reload_training_split(user_files), pairs)
        return replace(
            task.scorer(user_files.config, user_files.device, OWN_SPLIT), scores_own_files=True, overlap=seen
        )

    def rows(self, split: str) -> Iterator[dict[str, Any]]:
        pairs, encoded = self.corpus.splits[split], self.encoded[split]
        sides = zip(pairs.sources, pairs.targets, encoded.sources, encoded.targets, strict=True)
        keys = ("source", "target", "source_tokens", "target_tokens")
        return (dict(zip(keys, row, strict=True)) for row in sides)

    def n_predicted(self, split: str) -> int:
        return int(self.encoded[split].lengths[:, 1].sum())  # ends included

    @staticmethod
    def overlap_between(train: Pairs, held_out: Pairs, split: str) -> Overlap | None:
        return pair_overlap(train, held_out, split)

    def check_sizes(self, config: RunConfig) -> dict[str, int | None]:
        require_min_vocab_size(config, self.vocab_size, "tokens")
        sources = config.min_vocab_size(self.tokenizer.source.vocab_size)
        wanted = config.model.source_vocab_size
        if wanted is not None and wanted < sources:
            problem = Message(
                "model.source_vocab_size = {wanted}: the sources have {vocab_size} different tokens, plus "
                "special ones; leave it out, or set it to at least {sources}",
                wanted=wanted,
                vocab_size=self.tokenizer.source.vocab_size,
                sources=sources,
            )
            raise InputError(problem)
        return {"source_vocab_size": None if config.data.shared_vocabulary else sources}

    def facts(self, config: RunConfig) -> DataFacts:
        train, held_out = (self.encoded[name].targets for name in ("train", "validation"))
        batches = self.batches(config, torch.device("cpu"))
        examples = [(source, Message("a training sentence")) for source in self.corpus.examples]
        examples += [(source, Message("held out")) for source in self.corpus.splits["validation"].sources[:N_EXAMPLES]]
        return DataFacts.create(
            **self.corpus_facts(languages=tuple(self.corpus.languages)),
            splits={
                name: {
                    "pairs": len(pairs),
                    "characters": sum(len(text) for text in pairs.targets),
                    "tokens": self.n_predicted(name),
                    "source_tokens": int(self.encoded[name].lengths[:, 0].sum()),
                }
                for name, pairs in self.corpus.splits.items()
            },
            left_out=len(self.encoded["train"]) - len(batches.pairs),
            padding=round(batches.padding_share, 4),
            vocabulary=self.vocab_size,
            source_vocabulary=self.tokenizer.source.vocab_size,
            tokenizer_sha256=self.tokenizer.sha256,
            examples=tuple(ExamplePrompt.create(source=source, origin=origin) for source, origin in examples),
            overlap=self.overlap_facts,
            floor=None,
            plausible=None,
            **sentence_losses(train, held_out, self.vocab_size),
            probes=tuple(
                ProbeFacts.create(name=name, description=Message("sentences translated exactly"), n=n, chance=None)
                for name, n in self._probe_sizes().items()
            ),
        )

    def batches(self, config: RunConfig, device: torch.device) -> PairBatches:
        objective = make_objective(config, self.vocab_size)
        return PairBatches(self._fitting_pairs(config), config, objective, pair_special_tokens(self.tokenizer), device)

    def scorer(self, config: RunConfig, device: torch.device, split: str = "validation") -> TranslationScorer:
        """The scorer of a split; `InputError` for a pair longer than the learned positions."""
        self._require_positions(config, split)
        return self.scorer_class(self, config, device, split)

    def sampler(self, config: RunConfig) -> RowSampler:
        """Translate the lines of `evaluation.sample_prompt`, or some sentences of the validation split.
        `InputError`: a prompt with characters the model will never know.
        """
        prompts, held_out = sample_prompts(config), self.corpus.splits["validation"]
        self.tokenizer.source.encode_all(prompts)  # refused now, not at step 500
        places = range(0, len(held_out), max(1, len(held_out) // N_SAMPLES))[:N_SAMPLES]
        shown = held_out.select(places) if not prompts else Pairs(tuple(prompts), ("",) * len(prompts))

        def write(model: Network, between: Callable[[], None]) -> list[dict[str, str]]:
            translator, beam = Translator(model, self.tokenizer, config), config.evaluation.beam
            found = translator.translate(translator.encode(shown.sources), beam=beam, between=between)
            return [{"text": best[0].text} for best in found]

        return RowSampler(shown.sources, shown.targets, write)

    def lints(self, config: RunConfig) -> Iterator[Lint]:
        yield from super().lints(config)
        if any(bleu_tokenizer(one) != bleu_tokenizer(one, installed=False) for one in self.corpus.languages[1:]):
            yield Lint("data.corpus", CHARACTER_BLEU_NOTE)
        most = _training_limits(config)
        capped = config.data.max_length is not None and config.data.max_length <= most.min()
        key = "data.max_length" if capped else "model.context_length"
        for split, said in (
            (
                "train",
                Message(
                    "{n:,} of {pairs:,} training pairs ({share:.1%}) have more than {most:,} source or {most2:,} "
                    "target tokens: left out"
                )
                if config.has_source
                else Message(
                    "{n:,} of {pairs:,} training pairs ({share:.1%}) have more than {most:,} source or {most2:,} "
                    "target tokens, or {most3:,} together: left out"
                ),
            ),
            (
                "validation",
                Message(
                    "{n:,} of {pairs:,} validation pairs ({share:.1%}) have more than {most:,} source or {most2:,} "
                    "target tokens: still scored, at lengths that no training pair has"
                )
                if config.has_source
                else Message(
                    "{n:,} of {pairs:,} validation pairs ({share:.1%}) have more than {most:,} source or {most2:,} "
                    "target tokens, or {most3:,} together: still scored, at lengths that no training pair has"
                ),
            ),
        ):
            lengths = _lengths(self.encoded[split], config)
            n, pairs = int((lengths > most).any(1).sum()), len(lengths)
            if n:
                source, target, *both = most
                known = {"most": source, "most2": target, "most3": sum(both)}
                yield Lint(key, said.format(n=n, pairs=pairs, share=n / pairs, **known))

    def _require_positions(self, config: RunConfig, split: str) -> None:
        """Refuse pairs that do not fit: all position schemes are scored on the same pairs, so none is left out."""
        model, lengths = config.model, _lengths(self.encoded[split], config)
        room = _context_limits(config)
        over = int((lengths > room).any(1).sum())
        if not POSITIONS[model.position].bounded or not over:
            return
        source, *_, target = (int(longest) for longest in lengths.max(0))  # of a decoder, both together
        needed = max(source, target) if model.source_length is None else target
        remedy = f"--set model.context_length={max(needed, model.context_length)}"
        cut = config.task.source_truncation_length(config)
        if config.has_source and model.source_length is not None and source > model.source_length:
            remedy += f" --set model.source_length={source}"
        elif not config.has_source and model.source_length is None and cut is not None:
            remedy += f" --set model.source_length={cut + 1}"  # or a longer context would cut articles later
        places = (
            tr("{room:,} for sources, {room2:,} for targets", room=room[0], room2=room[1])
            if config.has_source
            else tr("{room:,} for source and target together", room=room[-1])
        )
        problem = Message(
            "corpus {name}: {over:,} of {n:,} {split} pairs have more tokens than there are learned "
            "positions ({places}), and scored pairs are never left out; {remedy}",
            name=self.corpus.name,
            over=over,
            n=len(lengths),
            split=split,
            places=places,
            remedy=remedy,
        )
        raise InputError(problem)

    def _probe_sizes(self) -> dict[str, int]:
        """Return the number of pairs by probe: per target language, if there are several, and per further split."""
        apart = {
            f"to_{one}": len(self.corpus.splits["validation"].for_language(one)) for one in self.corpus.tagged_languages
        }
        return apart | {name: len(pairs) for name, pairs in self.probe_splits().items()}

    def probe_splits(self) -> dict[str, EncodedPairs]:
        return {name: pairs for name, pairs in self.encoded.items() if name not in SPLITS}

    def _fitting_pairs(self, config: RunConfig) -> EncodedPairs:
        pairs, most = self.encoded["train"], _training_limits(config)
        fits = (_lengths(pairs, config) <= most).all(1)
        if not fits.any():
            problem = Message(
                "corpus {name}: no pair has at most {most} source and {most2} target tokens; raise "
                "data.max_length or model.context_length",
                name=self.corpus.name,
                most=most[0],
                most2=most[1],
            )
            raise InputError(problem)
        return pairs if fits.all() else pairs.select(np.flatnonzero(fits).tolist())


def _truncate(sources: Sequence[Tokens], most: int | None) -> Sequence[Tokens]:
    return sources if most is None else [source[:most] for source in sources]


def _lengths(pairs: EncodedPairs, config: RunConfig) -> NDArray[np.int64]:
    """(n, 2) tokens of source and target; for a decoder (n, 3), since it reads both together."""
    return pairs.lengths if config.has_source else np.hstack((pairs.lengths, pairs.joined_lengths))


def _context_limits(config: RunConfig) -> NDArray[np.int64]:
    model = config.model
    return np.array([model.source_tokens, model.context_length] if config.has_source else [model.context_length] * 3)


def _training_limits(config: RunConfig) -> NDArray[np.int64]:
    most = _context_limits(config)
    if config.data.max_length is not None:
        most[:2] = np.minimum(most[:2], config.data.max_length)
    return most


def _inherited_tokenizer(given: AnyTokenizer, corpus: ParallelCorpus) -> AnyTokenizer:
    """Return another run's tokenizer; raise `InputError` if it cannot encode these sentences."""
    if not given.is_pair:
        problem = Message(
            "train.init_from: translation needs a tokenizer for each side, but the parent's is '{kind}' "
            "({described}): its weights were trained on different tokens",
            kind=given.kind,
            described=tr(describe(given)),
        )
        raise InputError(problem)
    for side, tokenizer in (("source", given.source), ("target", given.target)):
        for name, pairs in corpus.splits.items():
            for number, sentence in enumerate(getattr(pairs, f"{side}s"), start=1):
                where = tr(
                    "corpus {corpus}: {side} {number:,} of its {split} split",
                    corpus=corpus.name,
                    side=side,
                    number=number,
                    split=name,
                )
                require_encodable(tokenizer, sentence, where)
    return given


def make_tokenizer(corpus: ParallelCorpus, config: RunConfig) -> PairTokenizer:
    """Make a tokenizer: byte pairs from the training split, or the characters of all splits."""
    by_characters = config.data.tokenizer == "characters"
    splits = list(corpus.splits.values()) if by_characters else [corpus.splits["train"]]
    texts = [[text for pairs in splits for text in getattr(pairs, side)] for side in ("sources", "targets")]
    if corpus.tagged_languages:
        texts[0] = [remove_tag(text) for text in dict.fromkeys(texts[0])]
    if config.data.shared_vocabulary:
        texts = [[*texts[0], *texts[1]]]
    made: list[Tokenizer] = [
        CharacterTokenizer.from_texts(side) if by_characters else cached_bpe(side, config.data.bpe_size)
        for side in texts
    ]
    if not corpus.tagged_languages:
        return PairTokenizer(made[0], made[-1])
    source = TaggedTokenizer(made[0], corpus.tagged_languages)
    return PairTokenizer(source, source if config.data.shared_vocabulary else made[-1])
