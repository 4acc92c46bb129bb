"""The writers of all objectives: continuing a text, filling gaps, translating, answering; and those kept loaded.

A document model's answer follows the prompt that it was trained with (`engine.tasks`), in which ⁇ is a
mark. torch is imported only when a model is loaded, so load one off the event loop.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from engine.base.errors import InputError, reason
from engine.base.language import Message, tr
from engine.data.framing import beginnings
from engine.generation.output import Alternative, AnswerToken, BeamResult, FullAnswer, ScoredText
from engine.runs.reader import RunReader
from engine.runs.records import ModelOutput, Sample
from engine.runs.tail import newest_records, stamp
from tui_transformer.lab.play.pictures import layer_plan, mask_sentence
from tui_transformer.lab.play.prompt import SETTINGS, Settings
from tui_transformer.lab.play.written import AttentionView

if TYPE_CHECKING:
    from torch import Tensor

    from engine.config.schema import RunConfig
    from engine.data.objectives import TokenPrompt
    from engine.data.padding import Tokens
    from engine.data.tokenizers import AnyTokenizer, Tokenizer
    from engine.generation.beam import Hypothesis
    from engine.generation.sampling import SampledToken, Sampling
    from engine.generation.surprise import TokenSurprise
    from engine.model.transformer import Network
    from tui_transformer.lab.records.run_view import RunRow

START, MARK, END = "▷", "⁇", "■"  # marks for special tokens: start, gap, end
ARROWS = (" → ", " => ", "\t")  # between a prompt and its answer
GAP = re.compile(r"⁇|_{2,}")
_BARE = re.compile(rf"\s*{MARK}\s*")
TRIED, LATEST, MOST = 3, 4, 1 << 16  # prompts to try, from so many samples in so many last bytes
FOLLOWED = 8  # beam width of the search for the likeliest answers
WHICH = {"self": "", "cross": tr(", cross-attention"), "encoder": tr(", encoder self-attention")}
GREEDY: Settings = {"temperature": 0.0, "top_k": 0, "top_p": 1.0, "seed": 1, "length": 50}


class ModelWriter(ABC):
    """A checkpoint of a run: best, last, or a step. Raises InputError if it is missing or damaged."""

    continues: bool = False  # its text continues the prompt; else it is a separate answer
    # Its answers have an end: it can rank whole ones, see `answer_and_likeliest_others`, and shows held-out `examples`.
    ranks_answers: bool = False
    invitation: str = ""
    beam_settings: Settings = {}  # noqa: RUF012, the settings of its beam search, see `search`; none if it has none
    cross_attention_rule: ClassVar[str] = tr("cross-attention: each target token sees the whole source")
    step: int
    model: "Network"
    tokenizer: "AnyTokenizer"
    defaults: Settings

    def __init__(self, reader: RunReader, checkpoint: str, device: str) -> None:
        from engine.model.devices import resolve_device
        from engine.training.checkpoint import load_network

        self.reader, self.name = reader, reader.name
        self.config: RunConfig = reader.config
        self.device = resolve_device(device)
        self.model, tokenizer, self.step = load_network(reader, checkpoint, self.device)
        self._prepare(tokenizer)

    @abstractmethod
    def _prepare(self, tokenizer: "AnyTokenizer") -> None:
        """Set `tokenizer` and `defaults`."""

    def length_warning(self, text: str, settings: Settings) -> str:
        return ""

    def set_target(self, language: str) -> None:
        """Translate to this language from now on, one of several; `InputError` if it is none of them."""
        raise InputError(Message("/to: {name} is not a translation model", name=self.name))

    @abstractmethod
    def stream(
        self, text: str, settings: Settings, answer_index: int = 0, alternatives: int = 0
    ) -> Iterator[AnswerToken]:
        """Yield one answer as it comes, with the likeliest tokens at each place.

        `answer` counts answers to the same prompt. Raise InputError for an empty prompt, unknown characters, or no gap.
        """

    def search(
        self, text: str, settings: Settings, between: Callable[[], None] = lambda: None
    ) -> tuple[BeamResult, ...]:
        """Return the `nbest` best answers that a beam search finds; `between` is as in `Translator.translate`.

        Raise InputError as `pieces` does, or if a beam cannot give as many; return () if it has no beam search.
        """
        return ()

    def answer_and_likeliest_others(self, text: str, written: str, others: int) -> tuple[FullAnswer, ...]:
        """Return what was written as a whole answer with its probability, and the likeliest others.

        Return () if answers have no end, or are not ranked by probability.
        """
        return ()

    def filled_prompt(self, text: str, written: str) -> str:
        """Return the prompt with its gaps filled in brackets; "" if it has none to fill."""
        return ""

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
        found += self._more_prompts(samples)
        return tuple(islice(filter(self._can_read, dict.fromkeys(found)), TRIED))

    def _more_prompts(self, samples: Sequence[Sample]) -> Iterable[str]:
        return ()

    def _can_read(self, prompt: str) -> bool:
        try:
            return bool(prompt) and self._model_input(prompt, "") is not None
        except InputError:
            return False

    @abstractmethod
    def surprise(self, text: str, alternatives: int = 0) -> ScoredText:
        """Return how surprised the model is by a text."""

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

        tokens, source = self._model_input(text, written)
        found = head_attention(self.model, tokens, layer - 1, head - 1, which, source)
        layers, heads = self.attention_layer_and_head_counts(which)
        wrote = self._token_labels(tokens, is_source=False)
        read = () if source is None else self._token_labels(source, is_source=True)
        plan = layer_plan(self.config.model, layer - 1, encoder=which == "encoder")
        return AttentionView(
            read if which == "encoder" else wrote,
            wrote if which == "self" else read,
            found.weights.float().cpu().numpy(),
            found.visible.cpu().numpy(),
            None if found.bias is None else found.bias.float().cpu().numpy(),
            tr("layer {layer} of {layers}, head {head} of {heads}", layer=layer, layers=layers, head=head, heads=heads)
            + WHICH[which],
            self.cross_attention_rule if which == "cross" else mask_sentence(plan, plan.length),
            which == "cross",
        )

    @abstractmethod
    def _model_input(self, text: str, written: str) -> "tuple[Tensor, Tensor | None]":
        """Return the network's input for writing this: (T,) tokens, and a source if it has one."""

    def _prompted_input(self, prompt: "TokenPrompt", answer: "Tokens") -> "tuple[Tensor, Tensor | None]":
        import numpy as np
        import torch

        tokens = np.concatenate((prompt.tokens, answer)).astype(np.int64)[: self.config.model.context_length]
        source = None if prompt.source is None else torch.from_numpy(prompt.source).to(self.device)
        return torch.from_numpy(tokens).to(self.device), source

    @abstractmethod
    def _token_labels(self, ids: "Tensor", *, is_source: bool) -> tuple[str, ...]:
        """Return each token's text, special ones as marks."""


def make_alternatives(found: "Iterable[SampledToken]", name: Callable[[int], str]) -> tuple[Alternative, ...]:
    return tuple(Alternative(name(one.token), one.probability, one.chance) for one in found)


def answer_tokens(
    drawn: "Iterable[SampledToken]", text_of: Callable[[int], str], name: Callable[[int], str]
) -> Iterator[AnswerToken]:
    """Yield drawn tokens: `text_of` decodes them in sequence, `name` any token by itself."""
    for one in drawn:
        yield AnswerToken(text_of(one.token), one.probability, one.chance, make_alternatives(one.alternatives, name))


def make_scored_text(
    found: "Iterable[TokenSurprise]", text_of: Callable[[int], str], name: Callable[[int], str], source: str, rule: str
) -> ScoredText:
    """Return a text's tokens with their surprise; `text_of` and `name` are as in `answer_tokens`."""
    pieces, nats = [], []
    for token in found:
        probability = None if token.nats is None else math.exp(-token.nats)
        pieces.append(AnswerToken(text_of(token.token), probability, None, make_alternatives(token.alternatives, name)))
        nats.append(token.nats)
    return ScoredText(tuple(pieces), tuple(nats), source, rule)


def make_sampling(settings: Settings, answer_index: int, overflow: str = "restart") -> "tuple[Sampling, int]":
    from engine.base.seeds import seed_for
    from engine.generation.sampling import Sampling

    cut = float(settings["temperature"]), int(settings["top_k"]), float(settings["top_p"])
    return Sampling(*cut, overflow), seed_for(int(settings["seed"]), "sample", answer_index)


def split_at_arrow(text: str, needed: str, *, last: bool = False) -> tuple[str, str]:
    """Return the text before and after an arrow (the last, or the first), stripped."""
    arrow = next((sign for sign in ARROWS if sign in text), None)
    if arrow is None:
        raise InputError(Message("surprise: {needed}", needed=needed))
    asked, _, answer = text.rpartition(arrow) if last else text.partition(arrow)
    return asked.strip(), answer.strip()


class TextWriter(ModelWriter):
    tokenizer: "Tokenizer"
    special_label: ClassVar[str] = START  # for the special token, if there is one

    def _prepare(self, tokenizer: "AnyTokenizer") -> None:
        self.tokenizer = tokenizer.target
        by_character = self.tokenizer.per_character
        self.unit, self.units = (tr("character"), tr("characters")) if by_character else (tr("token"), tr("tokens"))
        generation = self.config.generation
        own = {name: getattr(generation, name) for name in SETTINGS if hasattr(generation, name)}
        self.defaults = {"seed": 1, "length": 200} | own
        self.continues = self.config.task.continues
        self.invitation = tr("type some text to continue") if self.continues else tr("type a source text")

    def _more_prompts(self, samples: Sequence[Sample]) -> Iterable[str]:
        """Yield beginnings of the lines that it wrote itself."""
        if self.continues:
            lines = "\n".join(sample.text for sample in samples).split("\n")[1:]  # the first goes on from its prompt
            yield from beginnings("\n".join(lines))

    def length_warning(self, text: str, settings: Settings) -> str:
        """Warn if the context will fill up, or the source's length differs from training."""
        tokens = len(text) if self.tokenizer.per_character else len(self.tokenizer.encode(text))
        if not self.continues:
            trained, given = self.config.model.source_tokens, tokens
            then = tr("only the end is used") if given > trained else tr("the model has not seen other lengths")
            words = tr(
                "the model was trained on sources of {trained} {units}, but this one has {given}: {then}",
                trained=trained,
                units=self.units,
                given=given,
                then=then,
            )
            return words if given != trained else ""
        context, wanted = self.config.model.context_length, tokens + int(settings["length"])
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

    def stream(
        self, text: str, settings: Settings, answer_index: int = 0, alternatives: int = 0
    ) -> Iterator[AnswerToken]:
        if not text:
            raise InputError(Message("prompt '': enter at least one character, e.g. 'O'"))
        how, seed = make_sampling(settings, answer_index, self.config.generation.overflow)
        yield from self._stream(text, int(settings["length"]), how, seed, alternatives)

    def _stream(self, text: str, length: int, how: "Sampling", seed: int, alternatives: int) -> Iterator[AnswerToken]:
        from engine.generation.sampling import sample_text

        ids, size = self._encode(text), self.tokenizer.vocab_size
        drawn = sample_text(self.model, self.config, size, ids, length, how, seed, alternatives)
        decoder = self.tokenizer.decoder()
        for token in ids.tolist():  # what is written continues it
            decoder.feed(token)
        yield from answer_tokens(drawn, decoder.feed, self._decode)

    def _encode(self, text: str) -> "Tensor":
        import torch

        ids = torch.from_numpy(self.tokenizer.encode(text)).to(self.device)
        if text and not ids.numel():
            raise InputError(Message("prompt: contains no tokens; enter at least one word"))
        return ids

    def _decode(self, token: int) -> str:
        return self.tokenizer.decode([token])

    def surprise(self, text: str, alternatives: int = 0) -> ScoredText:
        from engine.generation.surprise import text_surprise

        found = text_surprise(self.model, self.config, self.tokenizer.vocab_size, self._encode(text), alternatives)
        source, decoder = self.tokenizer.decode(found.source), self.tokenizer.decoder()
        rule = tr("each {unit} given the source “{source}” and the target before it", unit=self.unit, source=source)
        if not found.source:
            rule = tr(
                "each {unit} given up to {context} before it; from the second window on, at least {context2}",
                unit=self.unit,
                context=found.context,
                context2=found.context - found.stride,
            )
        return make_scored_text(found.tokens, decoder.feed, self._decode, source, rule)

    def _model_input(self, text: str, written: str) -> "tuple[Tensor, Tensor | None]":
        import torch

        model, size = self.config.model, self.tokenizer.vocab_size
        if self.continues:
            return self._encode(text + written)[-model.context_length :], None
        source = self._encode(text)[-model.source_tokens :]
        first = source.new_tensor([size]) if self.config.special_tokens else source[-1:]
        return torch.cat((first, self._encode(written)))[: model.context_length], source

    def _token_labels(self, ids: "Tensor", *, is_source: bool) -> tuple[str, ...]:
        size = self.tokenizer.vocab_size
        return tuple(self._decode(token) if token < size else self.special_label for token in ids.tolist())


class MaskedWriter(TextWriter):
    special_label = "_"

    def _prepare(self, tokenizer: "AnyTokenizer") -> None:
        super()._prepare(tokenizer)
        self.invitation = tr("type some text, with a _ for each {unit} to fill in", unit=self.unit)

    def length_warning(self, text: str, settings: Settings) -> str:
        return ""

    def _stream(self, text: str, length: int, how: "Sampling", seed: int, alternatives: int) -> Iterator[AnswerToken]:
        from engine.generation.sampling import fill_gaps

        ids, gaps = self._encode_with_gaps(text)
        filled, choices = fill_gaps(self.model, self.tokenizer.vocab_size, ids, gaps, how, seed, alternatives)
        decoder = self.tokenizer.decoder()
        found = answer_tokens(choices, decoder.feed, self._decode)
        for token, gap in zip(filled.tolist(), gaps.tolist(), strict=True):
            yield next(found) if gap else AnswerToken(decoder.feed(token))

    def _encode_with_gaps(self, text: str) -> "tuple[Tensor, Tensor]":
        """Return (T,) ids of a text, with placeholders at gaps, and (T,) bool of where they are."""
        import numpy as np
        import torch

        from engine.tasks.text import GAP

        context = self.config.model.context_length
        # A gap is one token, whatever a token is.
        parts = [self.tokenizer.encode(part) for part in text.split(GAP)]
        tokens = sum(map(len, parts)) + len(parts) - 1
        if GAP not in text or tokens > context:
            raise InputError(
                Message(
                    "prompt: this model fills gaps of one {unit}; mark each with {gap}, in a text of at most "
                    "{context} {units}, e.g. {example}",
                    unit=self.unit,
                    gap=GAP,
                    context=context,
                    units=self.units,
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

    def _model_input(self, text: str, written: str) -> "tuple[Tensor, Tensor | None]":
        import torch

        if written:  # the filled text
            return self._encode(written), None
        ids, gaps = self._encode_with_gaps(text)
        return torch.where(gaps, self.tokenizer.vocab_size, ids), None


class TranslationWriter(ModelWriter):
    """A checkpoint of a run that translates; see `ModelWriter`.

    It does not rank whole answers: `translate --nbest` ranks with a length penalty, not by probability.
    """

    invitation = tr("type a sentence to translate (temperature 0 is greedy)")
    empty: ClassVar[str] = tr("prompt '': enter a sentence to translate")
    surprise_usage: ClassVar[str] = tr("a sentence and its translation are needed, e.g. I see. → Ich sehe.")

    def _prepare(self, tokenizer: "AnyTokenizer") -> None:
        from engine.generation.translation import Translator

        self.tokenizer = tokenizer
        if not self.tokenizer.is_pair:
            raise InputError(
                Message(
                    "run '{name}' is not a translation model; use `{command}`",
                    name=self.name,
                    command=self.reader.command("sample"),
                )
            )
        self.translator = Translator(self.model, self.tokenizer, self.config)
        self.defaults = GREEDY | {"length": 200}
        self.beam_settings = {"beam": 1, "nbest": 1, "alpha": self.config.generation.alpha}

    def set_target(self, language: str) -> None:
        self.tokenizer.source.add_language_tags([], language.strip())
        self.translator.target_language = language.strip()

    def stream(
        self, text: str, settings: Settings, answer_index: int = 0, alternatives: int = 0
    ) -> Iterator[AnswerToken]:
        from engine.generation.answering import sample_answer

        if not text.strip():
            raise InputError(self.empty)
        how, seed = make_sampling(settings, answer_index)
        prompt, size = self.translator.prompt(text), self.tokenizer.vocab_size
        most = min(int(settings["length"]), self.translator.max_length(len(prompt.source_or_tokens)))
        drawn = sample_answer(self.model, prompt, how, seed, text_vocab_size=size, most=most, alternatives=alternatives)
        yield from answer_tokens(drawn, self.tokenizer.target.decoder().feed, self._token_text)

    def search(
        self, text: str, settings: Settings, between: Callable[[], None] = lambda: None
    ) -> tuple[BeamResult, ...]:
        if not text.strip():
            raise InputError(self.empty)
        how = self.beam_settings | settings
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

    def _beam_result(self, one: "Hypothesis") -> BeamResult:
        decoder = self.tokenizer.target.decoder()
        pieces = (AnswerToken(decoder.feed(t), chance) for t, chance in zip(one.tokens, one.chances, strict=True))
        return BeamResult(tuple(pieces), one.score)

    def surprise(self, text: str, alternatives: int = 0) -> ScoredText:
        from engine.generation.surprise import translation_surprise

        source, target = split_at_arrow(text, self.surprise_usage)
        found = translation_surprise(self.translator, source, target, alternatives)
        rule = tr(
            "each token given the source “{source}” and the target tokens before it; ■ marks the end", source=source
        )
        return make_scored_text(found, self._token_text, self._token_text, source, rule)

    def _model_input(self, text: str, written: str) -> "tuple[Tensor, Tensor | None]":
        return self._prompted_input(self.translator.prompt(text), self.tokenizer.target.encode(written))

    def _token_text(self, token: int) -> str:
        return self.tokenizer.target.decode([token]) if token < self.tokenizer.vocab_size else END

    def _token_labels(self, ids: "Tensor", *, is_source: bool) -> tuple[str, ...]:
        side = self.tokenizer.source if is_source else self.tokenizer.target
        special = END if is_source else START
        return tuple(side.decode([token]) if token < side.vocab_size else special for token in ids.tolist())


class SummaryWriter(TranslationWriter):
    invitation = tr("type an article to summarize (temperature 0 is greedy)")
    empty = tr("prompt '': enter an article to summarize")
    surprise_usage = tr("an article and its summary are needed, with → between them")


class DocumentWriter(ModelWriter):
    tokenizer: "Tokenizer"
    ranks_answers = True
    surprise_usage: ClassVar[str]  # what `surprise` needs, besides the arrow
    example: ClassVar[str]  # of a prompt
    cross_attention_rule = tr("cross-attention: each answer token sees the whole input")

    def _prepare(self, tokenizer: "AnyTokenizer") -> None:
        self.tokenizer = tokenizer.target
        self._size = self.tokenizer.vocab_size
        self._joins = self.tokenizer.joins_spaces
        self.defaults = dict(GREEDY)

    def stream(
        self, text: str, settings: Settings, answer_index: int = 0, alternatives: int = 0
    ) -> Iterator[AnswerToken]:
        from engine.generation.answering import require_room, sample_answer

        how, seed = make_sampling(settings, answer_index)
        prompt, most = self._make_prompt(text), int(settings["length"])
        require_room(self.model, prompt)
        found = sample_answer(
            self.model, prompt, how, seed, text_vocab_size=self._size, most=most, alternatives=alternatives
        )
        yield from answer_tokens(found, self._decoder(), lambda token: self._token_name(token, prompt))

    def answer_and_likeliest_others(self, text: str, written: str, others: int) -> tuple[FullAnswer, ...]:
        from engine.generation.answering import beam_answers
        from engine.generation.surprise import answer_surprise
        from engine.tasks.documents import decode_with_marks

        prompt = self._make_prompt(text)
        answer = self._encode_answer(written, prompt)
        room = self.config.model.context_length - len(prompt.tokens)
        nats = math.fsum(one.nats or 0.0 for one in answer_surprise(self.model, prompt, answer[:room], self._size))
        first = FullAnswer(_space_out_marks(written), math.exp(-nats))
        most, beam = max(2 * len(answer), 1) + 10, max(FOLLOWED, others + 1)
        found = beam_answers(self.model, prompt, text_vocab_size=self._size, most=most, beam=beam)
        ranked = [
            FullAnswer(_space_out_marks(decode_with_marks(self.tokenizer, one.tokens)), math.exp(one.log_probability))
            for one in found
            if one.finished
        ]
        return first, *[one for one in ranked if one.text != first.text][:others]

    def surprise(self, text: str, alternatives: int = 0) -> ScoredText:
        from engine.generation.surprise import answer_surprise

        needed = tr(
            "{surprised_by} are needed, with → between them, e.g. {example} → London",
            surprised_by=self.surprise_usage,
            example=self.example,
        )
        asked, answer = split_at_arrow(text, needed, last=True)
        prompt = self._make_prompt(asked)
        tokens = self._encode_answer(_BARE.sub(MARK, answer), prompt)
        found = answer_surprise(self.model, prompt, tokens, self._size, alternatives)
        decoder = self.tokenizer.decoder()
        rule = tr(
            "each token given “{asked}” and the answer tokens before it; {end} marks the end", asked=asked, end=END
        )
        text_of = lambda token: decoder.feed(token) if token < self._size else END
        return make_scored_text(found, text_of, lambda token: self.tokenizer.decode([token]), asked, rule)

    def attention(self, text: str, written: str, layer: int, head: int, which: str = "self") -> AttentionView:
        found = super().attention(text, written, layer, head, which)
        first = (
            "" if which == "encoder" else tr("; the last {mark} before the answer predicts its first token", mark=MARK)
        )
        return replace(found, rule=found.rule + first)

    def _model_input(self, text: str, written: str) -> "tuple[Tensor, Tensor | None]":
        prompt = self._make_prompt(text)
        return self._prompted_input(prompt, self._encode_answer(written, prompt))

    def _token_labels(self, ids: "Tensor", *, is_source: bool) -> tuple[str, ...]:
        return tuple(map(self._decoder(), ids.tolist()))

    def _decoder(self) -> Callable[[int], str]:
        """Return a token-by-token decoder that puts spaces before words and shows special tokens as marks."""
        decoder = self.tokenizer.decoder()

        def text_of(token: int) -> str:
            nonlocal decoder
            if token < self._size:
                return decoder.feed(token)
            decoder = self.tokenizer.decoder()
            return MARK

        return text_of

    def _more_prompts(self, samples: Sequence[Sample]) -> Iterable[str]:
        yield self.example.strip("'")

    @abstractmethod
    def _make_prompt(self, text: str) -> "TokenPrompt":
        """Return the prompt that the model was trained with; raise InputError if the text cannot be one."""

    def _encode_answer(self, written: str, prompt: "TokenPrompt") -> "Tokens":
        import numpy as np

        spans = written.split(MARK)
        if self._joins:
            spans = [f" {span.strip()}" if span.strip() else "" for span in spans]
        rows = self.tokenizer.encode_all(spans)
        marks = [np.array([mark], dtype=np.int64) for mark in prompt.extra_allowed[: len(rows) - 1]]
        joined = [rows[0], *(part for pair in zip(marks, rows[1:], strict=False) for part in pair)]
        return np.concatenate(joined).astype(np.int64)

    def _token_name(self, token: int, prompt: "TokenPrompt") -> str:
        if token < self._size:
            return self.tokenizer.decode([token])
        return END if token == prompt.end else MARK


class QuestionWriter(DocumentWriter):
    invitation = tr("type a question (temperature 0 is greedy)")
    surprise_usage = tr("a question and its answer")
    example = "'Where was Ada Lovelace born?'"

    def _make_prompt(self, text: str) -> "TokenPrompt":
        from engine.tasks.questions import QuestionObjective

        question = self.tokenizer.encode(text.strip())
        if not len(question):
            raise InputError(Message("prompt '': enter a question, e.g. {example}", example=self.example))
        return QuestionObjective(self.config, self._size).make_prompt(question)


class SpanWriter(DocumentWriter):
    invitation = tr("type a document with ___ where something is missing (temperature 0 is greedy)")
    surprise_usage = tr("a document with ___ and what is missing")
    example = "'Ada Lovelace was born in ___.'"

    def filled_prompt(self, text: str, written: str) -> str:
        spans = iter(written.split(MARK))
        return GAP.sub(lambda gap: f"[{next(spans, '').strip()}]", text)

    def _make_prompt(self, text: str) -> "TokenPrompt":
        from engine.tasks.spans import corruption_objective

        parts, sentinels = GAP.split(text.strip()), self.config.objective.has_sentinels
        most = len(self.config.special_tokens) - 3 if sentinels else 1  # without pad, start and end
        if not 1 < len(parts) <= most + 1:
            gaps = tr("one gap") if most == 1 else tr("1 to {most} gaps", most=most)
            raise InputError(
                Message(
                    "prompt: this model fills {gaps} in a document; mark what is missing with ___, e.g. {example}",
                    gaps=gaps,
                    example=self.example,
                )
            )
        before = [part.rstrip(" ") if self._joins else part for part in parts[:-1]]
        return corruption_objective(self.config, self._size).gap_prompt(self.tokenizer.encode_all([*before, parts[-1]]))


class ClassWriter(ModelWriter):
    """Says which class a text has: an answer of one word, the class, with its probability."""

    tokenizer: "Tokenizer"
    ranks_answers = True
    invitation = tr("type a text to classify")

    def _prepare(self, tokenizer: "AnyTokenizer") -> None:
        self.tokenizer = tokenizer.target
        n = self.config.model.classes or 0
        known = self.reader.data.classes  # without data.json classes only have numbers
        self.classes = known if len(known) == n else tuple(str(i + 1) for i in range(n))
        self.defaults = dict(GREEDY)

    def length_warning(self, text: str, settings: Settings) -> str:
        context = self.config.model.context_length
        longer = len(self.tokenizer.encode_with_unknown([text], 0)[0]) > context
        return tr("only the first {context} tokens of the text are read", context=context) if longer else ""

    def stream(
        self, text: str, settings: Settings, answer_index: int = 0, alternatives: int = 0
    ) -> Iterator[AnswerToken]:
        first, *others = self._ranked_classes(text)
        rest = tuple(Alternative(one.text, one.probability, one.probability) for one in others[:alternatives])
        yield AnswerToken(first.text, first.probability, None, rest)

    def answer_and_likeliest_others(self, text: str, written: str, others: int) -> tuple[FullAnswer, ...]:
        return tuple(self._ranked_classes(text)[: others + 1])

    def surprise(self, text: str, alternatives: int = 0) -> ScoredText:
        raise InputError(Message("surprise: this model classifies texts and does not predict their tokens"))

    def _ranked_classes(self, text: str) -> list[FullAnswer]:
        """Return every class with its probability, the likeliest first."""
        from engine.tasks.classification import class_probabilities

        found = class_probabilities(self.model, self.tokenizer, self.config, [text])[0].tolist()
        pairs = sorted(zip(self.classes, found, strict=True), key=lambda pair: -pair[1])
        return [FullAnswer(name, probability) for name, probability in pairs]

    def _model_input(self, text: str, written: str) -> "tuple[Tensor, Tensor | None]":
        import torch

        from engine.tasks.classification import encode_texts

        return torch.from_numpy(encode_texts(self.tokenizer, self.config, [text])[0]).to(self.device), None

    def _token_labels(self, ids: "Tensor", *, is_source: bool) -> tuple[str, ...]:
        size = self.tokenizer.vocab_size
        return tuple(self.tokenizer.decode([token]) if token < size else MARK for token in ids.tolist())


def _space_out_marks(written: str) -> str:
    """Strip an answer's white space, and put a space on either side of its marks."""
    return _BARE.sub(f" {MARK} ", written).strip()


# The writers of objectives that `TextWriter` does not fit.
WRITERS: Mapping[str, type[ModelWriter]] = {
    "masked": MaskedWriter,
    "translation": TranslationWriter,
    "summarization": SummaryWriter,
    "span-corruption": SpanWriter,
    "question-answer": QuestionWriter,
    "classification": ClassWriter,
}
KEPT = 3  # models kept in memory
CONSIDERED = 24  # newest runs among which the best is looked for


def load_writer(reader: RunReader, checkpoint: str, device: str) -> ModelWriter:
    return WRITERS.get(reader.config.task.name, TextWriter)(reader, checkpoint, device)


class WriterCache:
    """Loaded models, by run and checkpoint; one is reloaded only when its files change."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._loaded: dict[tuple[Path, object], ModelWriter] = {}

    def get(self, run: Path, which: str) -> ModelWriter:
        """Return the model of a run's checkpoint; blocks while it loads. Raises InputError as `load_writer`."""
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
        found = self._loaded.pop(key, None) or load_writer(reader, which, self.device)
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
