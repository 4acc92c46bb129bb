"""The objectives: one class per `objective.kind`, used everywhere else through `RunConfig.task`.

Classes that need torch are named here and imported on first use, from the task's file in `engine.tasks`: `task` loads
and encodes the corpus and makes its batches, scorer and sampler; `examples` makes inputs and targets; `pipeline` asks
a trained model.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from engine.base.language import Message, tr
from engine.config.measures import ROUGE
from engine.config.rules import Rule
from engine.config.visibility import sees_ahead

if TYPE_CHECKING:
    from engine.config.schema import RunConfig

PAD, START, END, MASK, UNK = "[pad]", "[start]", "[end]", "[mask]", "[unk]"
MASKS_IN_A_ROW = 3  # of the assignment's span corruption: at the gap, before the span, and after it
SHORTEST_DOCUMENT = 4  # tokens; shorter documents are left out
CorpusKindName = Literal["text", "pairs", "documents", "labelled"]  # of a corpus
SMALLEST_CONTEXT = 6  # a document of four tokens, and the marks around its span
# The networks that each form of span corruption is for.
SPAN_FORMS = {"decoder": ("cs224n", "cs224n-half"), "encoder-decoder": ("t5",)}


class TaskKind:
    """The base class. Its defaults suit a source and a target cut from one window of a text."""

    name: str
    sentence = ""  # what is predicted from what
    task = "engine.tasks.text.TextTask"
    examples = "engine.tasks.text.CopyObjective"
    pipeline = "engine.tasks.text.TextPipeline"

    # What it works with.
    architectures: Sequence[str] = ("encoder-decoder",)
    why_not: ClassVar[Mapping[str, str]] = {}  # by architecture; those missing have no source
    corpus: CorpusKindName = "text"
    row_name = ""  # the examples it trains on, of any length; "" for windows of one text
    scores: Sequence[str] = ("loss",)  # those that can select the best checkpoint
    file_options: Sequence[str] = ("text",)  # those of `evaluate` that name files of your own; all needed together
    settings: Sequence[str] = ()  # those that only such objectives use, and those that Design shows only for them
    rules: Sequence[Rule] = ()  # on the whole config

    # What a prediction is.
    unit = Message("character")  # that the loss is averaged over
    special: Sequence[str] = ()
    continues = False  # it predicts each token of a text from all before it; generated text continues its prompt
    predicts_from_past = False  # it predicts a text from its past alone, so the text's entropy bounds the loss
    fills_gaps = False  # hidden tokens are predicted in place, from both sides

    aim = ""  # in a report: what a run of it was trained for

    # In messages.
    needs_phrase = ""  # subject and verb of what corpus it needs; "" for its name
    action = tr("writes")
    hub_pipeline = "text-generation"  # its name on the Hugging Face hub
    prompt_command = "sample"  # the command that prompts it
    next_step = ("sample", tr("generate text with it"))  # after training: a command, and its purpose

    # How it is prompted.
    invitation = tr("type a source text")  # of a prompt
    prompt_example = ""  # in quotation marks, as in messages
    empty_prompt = ""  # the refusal of an empty prompt
    surprise_usage = ""  # what `surprise` needs
    ranks_answers = False  # whole answers, which have an end, by probability; and it shows held-out examples
    cross_attention_rule = tr("cross-attention: each target token sees the whole source")
    attention_note = ""  # added to the rule of what a decoder's token attends to

    # For a miniature (see `RunConfig.miniature`).
    small_context = 16
    small_corpus: tuple[str, int] = ("playlets", 20_000)

    def window_tokens(self, config: "RunConfig") -> int:
        """Return the tokens of text in one example."""
        return config.model.source_tokens

    def window_targets(self, config: "RunConfig") -> int:
        """Return how many positions of one example predict, or could predict, a token."""
        return config.model.context_length

    def special_tokens(self, config: "RunConfig") -> tuple[str, ...]:
        """Return the special tokens it needs; their ids follow those of the text's tokens."""
        return tuple(self.special)

    def uses(self, key: str, config: "RunConfig") -> bool:
        """Return whether this objective uses a setting that only some objectives use."""
        return key in self.settings

    def copy_leak(self, config: "RunConfig") -> str | None:
        """Return why a model of this config could copy its answers from its input; None if it cannot."""
        return None

    def source_truncation_length(self, config: "RunConfig") -> int | None:
        """Return how many tokens a longer source is cut to, not counting its end token; None if none is cut."""
        return None

    def surprise_length_range(self, config: "RunConfig") -> tuple[int, int]:
        """Return the fewest and the most tokens of text that it can divide into a source and a target."""
        return 1, config.model.source_tokens


class NextToken(TaskKind):
    name = "next-token"
    sentence = Message("each token from those before it, as in GPT")
    aim = Message("prediction of the next token")
    examples = "engine.tasks.text.NextTokenObjective"
    architectures = ("decoder", "encoder")
    why_not: ClassVar[Mapping[str, str]] = {
        "encoder-decoder": tr(
            "an encoder-decoder reads a source and writes a target, but next-token has only one "
            "text; use translation, copy, reverse or continuation"
        )
    }
    continues = predicts_from_past = True
    rules = (
        Rule(
            ("objective.kind", "model.causal"),
            lambda c: c.task.copy_leak(c) is not None and not c.train.allow_leak,
            lambda c: tr(
                "{leak}; choose architecture = 'decoder', or objective.kind = 'masked', or --set "
                "train.allow_leak=true to see it happen",
                leak=c.task.copy_leak(c),
            ),
        ),
    )
    invitation = tr("type some text to continue")

    def window_tokens(self, config: "RunConfig") -> int:
        return config.model.context_length + 1

    def copy_leak(self, config: "RunConfig") -> str | None:
        if not sees_ahead(config.model):
            return None
        return tr(
            "every position sees the tokens after it, including the one it must predict: the model would "
            "reach a perplexity near 1 without learning anything"
        )


class Masked(TaskKind):
    name = "masked"
    sentence = Message("hidden tokens from those on both sides, as in BERT")
    aim = Message("prediction of hidden tokens")
    examples = "engine.tasks.text.MaskedObjective"
    pipeline = "engine.tasks.text.GapPipeline"
    architectures = ("encoder",)
    why_not: ClassVar[Mapping[str, str]] = {
        "decoder": tr(
            "a decoder predicts the next token and never looks ahead; to fill gaps, use architecture = 'encoder'"
        ),
        "encoder-decoder": tr("to fill gaps, use architecture = 'encoder'"),
    }
    settings = ("objective.mask_fraction",)
    unit = Message("hidden character")
    special = (MASK,)
    fills_gaps = True
    invitation = tr("type some text, with a _ for each {unit} to fill in")

    def window_tokens(self, config: "RunConfig") -> int:
        return config.model.context_length


class Copy(TaskKind):
    name = "copy"
    sentence = Message("the source itself, to test whether information gets through")
    aim = Message("copying the source")
    special = (START,)

    def window_targets(self, config: "RunConfig") -> int:
        return config.model.source_tokens


class Reverse(Copy):
    name = "reverse"
    sentence = Message("the source backwards, to test whether each position finds its counterpart")
    aim = Message("writing the source backwards")
    examples = "engine.tasks.text.ReverseObjective"


class Continuation(TaskKind):
    """The text that follows the source."""

    name = "continuation"
    sentence = Message("the text that follows the source")
    aim = Message("continuing the source")
    examples = "engine.tasks.text.ContinuationObjective"
    predicts_from_past = True

    def window_tokens(self, config: "RunConfig") -> int:
        return config.model.source_tokens + config.model.context_length

    def surprise_length_range(self, config: "RunConfig") -> tuple[int, int]:
        return config.model.source_tokens + 1, self.window_tokens(config)


class Shifted(TaskKind):
    """A course report's mistake: the target is the source shifted by one token."""

    name = "shifted"
    sentence = Message("the source shifted by one token, to show the effect of a common mistake")
    aim = Message("the source shifted by one token")
    examples = "engine.tasks.text.ShiftedObjective"
    predicts_from_past = True
    rules = (
        Rule(
            ("objective.kind",),
            lambda c: not c.train.allow_leak,
            lambda c: tr(
                "{leak}; choose 'continuation', whose target is the text after the source, or --set "
                "train.allow_leak=true to see it happen",
                leak=c.task.copy_leak(c),
            ),
        ),
        Rule(
            ("model.source_length", "objective.kind"),
            lambda c: c.model.source_tokens < 3,
            "a shifted target needs a source of at least 3 tokens",
        ),
    )

    def window_tokens(self, config: "RunConfig") -> int:
        return config.model.source_tokens + 1

    def window_targets(self, config: "RunConfig") -> int:
        return config.model.source_tokens - 1

    def copy_leak(self, config: "RunConfig") -> str | None:
        return tr(
            "nearly all of the target is in the source, one place further on: copying it gives a perplexity near 1"
        )

    def surprise_length_range(self, config: "RunConfig") -> tuple[int, int]:
        return 3, config.model.source_tokens


def _min_context_for_pairs(config: "RunConfig") -> int:
    """Return the shortest context in which a decoder reads a source and writes a target."""
    return max(SMALLEST_CONTEXT, 2 + (config.task.source_truncation_length(config) or 0))


class Translation(TaskKind):
    """The translation of a sentence. A decoder reads both as one text, with the start token between them."""

    name = "translation"
    sentence = Message("a sentence in another language")
    aim = Message("translation")
    task = "engine.tasks.translation.TranslationTask"
    examples = "engine.tasks.translation.pair_objective"
    pipeline = "engine.tasks.translation.TranslationPipeline"
    architectures = ("encoder-decoder", "decoder")
    corpus, row_name = "pairs", Message("sentences")
    scores: Sequence[str] = ("loss", "bleu", "exact_match")
    file_options = ("source", "reference")
    settings = ("data.max_length", "data.shared_vocabulary", "objective.label_smoothing", "evaluation.beam")
    unit = Message("token")
    special = (PAD, START, END)
    needs_phrase = tr("translation needs")
    action = tr("translates sentences")
    hub_pipeline = "translation"
    prompt_command = "translate"
    next_step = ("translate", tr("translate with it"))
    invitation = tr("type a sentence to translate (temperature 0 is greedy)")
    empty_prompt = tr("prompt '': enter a sentence to translate")
    surprise_usage = tr("a sentence and its translation are needed, e.g. I see. → Ich sehe.")
    small_context = 40
    small_corpus = ("phrasebook", 2_000)
    rules = (
        Rule(
            ("data.shared_vocabulary", "model.architecture"),
            lambda c: not c.has_source and not c.data.shared_vocabulary,
            "a decoder reads source and target as one text, so they share a vocabulary; --set "
            "data.shared_vocabulary=true",
        ),
        Rule(
            ("model.context_length", "model.source_length"),
            lambda c: not c.has_source and c.model.context_length < _min_context_for_pairs(c),
            lambda c: tr(
                "a decoder reads the source and writes the target in one context, which takes more than "
                "{context_length:,} tokens; --set model.context_length={least}",
                context_length=c.model.context_length,
                least=_min_context_for_pairs(c),
            ),
        ),
    )

    def window_tokens(self, config: "RunConfig") -> int:
        context = config.model.context_length
        return min(config.model.source_tokens, context) if config.has_source else context - 1

    def window_targets(self, config: "RunConfig") -> int:
        return self.window_tokens(config)


class Summarization(Translation):
    """The summary of an article: a pair, as in translation, but the article is cut to the source's length, by default
    half of a decoder's context.
    """

    name = "summarization"
    sentence = Message("the summary or the headline of an article")
    aim = Message("summarization")
    task = "engine.tasks.summarization.SummaryTask"
    row_name = Message("articles")
    scores = ("loss", *ROUGE, "exact_match")
    needs_phrase = tr("summarization needs")
    action = tr("summarizes articles")
    hub_pipeline = "summarization"
    next_step = ("translate", tr("summarize with it"))
    invitation = tr("type an article to summarize (temperature 0 is greedy)")
    empty_prompt = tr("prompt '': enter an article to summarize")
    surprise_usage = tr("an article and its summary are needed, with → between them")
    small_corpus = ("headlines", 1_000)

    def source_truncation_length(self, config: "RunConfig") -> int:
        model = config.model
        most = model.source_tokens if config.has_source else model.source_length or model.context_length // 2
        return min(most, config.data.max_length or most) - 1


class _DocumentTask(TaskKind):
    architectures = ("decoder", "encoder-decoder")
    corpus = "documents"
    file_options = ()
    special = (PAD, MASK)
    next_step = ("evaluate", tr("score its best checkpoint again"))
    ranks_answers = True
    cross_attention_rule = tr("cross-attention: each answer token sees the whole input")
    attention_note = tr("; the last {mark} before the answer predicts its first token", mark="⁇")
    small_context = 64
    small_corpus = ("biographies", 20)
    rules: Sequence[Rule] = (
        Rule(
            ("objective.kind", "model.context_length"),
            lambda c: min(c.model.context_length, c.model.source_tokens) < SMALLEST_CONTEXT,
            lambda c: tr(
                "'{objective}' needs a context and a source of at least {least} tokens each",
                objective=c.task.name,
                least=SMALLEST_CONTEXT,
            ),
        ),
    )


class SpanCorruption(_DocumentTask):
    name = "span-corruption"
    sentence = Message("a removed span from the text around it, as in T5")
    aim = Message("span-corruption")
    task = "engine.tasks.spans.SpanTask"
    examples = "engine.tasks.spans.corruption_objective"
    pipeline = "engine.tasks.spans.SpanPipeline"
    row_name = Message("documents")
    why_not: ClassVar[Mapping[str, str]] = {
        "encoder": tr(
            "masked spans are written token by token, which takes a decoder or an encoder-decoder; "
            "an encoder fills gaps in place: objective.kind = 'masked'"
        )
    }
    unit = Message("token")
    action = tr("fills gaps in documents")
    rules = (
        Rule(
            ("objective.span_form", "model.architecture"),
            lambda c: c.objective.span_form not in SPAN_FORMS[c.model.architecture],
            lambda c: tr(
                "span_form = '{form}' {what}; for architecture = '{architecture}', --set "
                "objective.span_form={suggested}",
                form=c.objective.span_form,
                what=tr("puts the spans in a separate target")
                if c.objective.has_sentinels
                else tr("puts the span at the end of a single text"),
                architecture=c.model.architecture,
                suggested=SPAN_FORMS[c.model.architecture][0],
            ),
        ),
        *_DocumentTask.rules,
    )
    invitation = tr("type a document with ___ where something is missing (temperature 0 is greedy)")
    prompt_example = "'Ada Lovelace was born in ___.'"
    surprise_usage = tr("a document with ___ and what is missing")

    def window_tokens(self, config: "RunConfig") -> int:
        if config.objective.has_sentinels:
            return config.model.source_tokens
        context = config.model.context_length
        return max(1, min(int(config.objective.cut_fraction * context), context - MASKS_IN_A_ROW + 1))

    def window_targets(self, config: "RunConfig") -> int:
        longest, objective = self.window_tokens(config), config.objective
        if objective.has_sentinels:
            return corrupted_lengths(max(longest, 2), objective.mask_fraction, objective.span_mean)[1]
        return longest + MASKS_IN_A_ROW - 1

    def special_tokens(self, config: "RunConfig") -> tuple[str, ...]:
        if not config.objective.has_sentinels:
            return super().special_tokens(config)
        longest, objective = max(self.window_tokens(config), 2), config.objective
        spans = span_counts(longest, objective.mask_fraction, objective.span_mean)[1]
        return (PAD, START, *(f"[span {i}]" for i in range(1, spans + 2)))

    def uses(self, key: str, config: "RunConfig") -> bool:
        names = ("mask_fraction", "span_mean") if config.objective.has_sentinels else ("span_fraction", "cut_fraction")
        return key in ("objective.span_form", *(f"objective.{name}" for name in names))


class QuestionAnswer(_DocumentTask):
    name = "question-answer"
    sentence = Message("the answer to a question about the documents")
    aim = Message("question-answer")
    task = "engine.tasks.questions.QuestionTask"
    examples = "engine.tasks.questions.QuestionObjective"
    pipeline = "engine.tasks.questions.QuestionPipeline"
    row_name = Message("questions")
    why_not: ClassVar[Mapping[str, str]] = {
        "encoder": tr("an answer is written token by token, which takes architecture = 'decoder' or 'encoder-decoder'")
    }
    scores = ("loss", "exact_match")
    unit = Message("answer token")
    action = tr("answers questions")
    invitation = tr("type a question (temperature 0 is greedy)")
    prompt_example = "'Where was Ada Lovelace born?'"
    surprise_usage = tr("a question and its answer")

    def window_tokens(self, config: "RunConfig") -> int:
        return (config.model.source_tokens if config.has_source else 0) + config.model.context_length - 1


class Classification(TaskKind):
    """The class of a whole text. Every token of it has a vote: their logits over the classes are averaged."""

    name = "classification"
    sentence = Message("the class of a text, such as the section a news item belongs to")
    aim = Message("classification")
    task = "engine.tasks.classification.ClassificationTask"
    examples = "engine.tasks.classification.ClassificationObjective"
    pipeline = "engine.tasks.classification.ClassPipeline"
    architectures = ("encoder", "decoder")
    why_not: ClassVar[Mapping[str, str]] = {
        "encoder-decoder": tr(
            "classification generates no text; use architecture = 'encoder', or 'decoder' to read from left to right "
            "only"
        )
    }
    corpus, row_name = "labelled", Message("texts")
    scores = ("loss", "accuracy", "macro_f1")
    file_options = ("csv",)
    settings = ("model.classes", "data.lowercase", "objective.label_smoothing")
    unit = Message("text")
    special = (PAD, UNK)
    needs_phrase = tr("classification needs")
    action = tr("classifies texts")
    hub_pipeline = "text-classification"
    rules = (
        Rule(
            ("model.tie_embeddings", "objective.kind"),
            lambda c: c.model.tie_embeddings,
            "the head predicts classes, not tokens, so it cannot be tied to the embedding; --set "
            "model.tie_embeddings=false",
        ),
        Rule(
            ("model.context_length", "objective.kind"),
            lambda c: c.model.context_length < 2,
            "a text to classify must have at least 2 tokens",
        ),
    )
    next_step = ("sample", tr("classify a text with it"))
    invitation = tr("type a text to classify")
    ranks_answers = True
    small_context = 48
    small_corpus = ("bulletins", 200)

    def window_tokens(self, config: "RunConfig") -> int:
        return config.model.context_length


TASKS: Mapping[str, TaskKind] = {
    kind.name: kind()
    for kind in (
        *(NextToken, Masked, Copy, Reverse, Continuation, Shifted),
        *(Translation, Summarization, SpanCorruption, QuestionAnswer, Classification),
    )
}


def task_named(objective: object) -> TaskKind:
    """Return the task of an unchecked `objective.kind`; for an unknown kind, the common defaults."""
    return TASKS.get(objective, TaskKind()) if isinstance(objective, str) else TaskKind()


def span_counts(length: int, mask_fraction: float, span_mean: float) -> tuple[int, int]:
    """Return (tokens that T5's span corruption removes from a document, number of spans they form).

    At least one of each; at least one of the `length` ≥ 2 tokens is left. Raffel et al. 2020, §3.1.4, and
    `random_spans_noise_mask` of their code.
    """
    taken = min(max(round(length * mask_fraction), 1), length - 1)
    spans = max(round(taken / span_mean), 1)
    return taken, min(spans, taken, length - taken)


def corrupted_lengths(length: int, mask_fraction: float, span_mean: float) -> tuple[int, int]:
    """Return (tokens of the source, tokens of the target), sentinels included; the last one ends the target."""
    taken, spans = span_counts(length, mask_fraction, span_mean)
    return length - taken + spans, taken + spans + 1
