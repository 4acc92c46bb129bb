"""Which combinations of choices make sense, as data, and the reason why not for those that do not.

One list of rules greys out choices in the app and gives the command line its error. No torch here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from engine.config.schema import RunConfig
from engine.config.sections import ModelConfig
from engine.data.catalogue import kind_by_name, names_of
from engine.data.entry import Kind
from engine.errors import InputError
from engine.model.visibility import self_attention

# Which networks an objective is for.
ARCHITECTURES: dict[str, tuple[str, ...]] = {
    "next-token": ("decoder", "encoder"),
    "masked": ("encoder",),
    "copy": ("encoder-decoder",),
    "reverse": ("encoder-decoder",),
    "continuation": ("encoder-decoder",),
    "shifted": ("encoder-decoder",),
    "translation": ("encoder-decoder",),
    "span-corruption": ("decoder", "encoder-decoder"),
    "question-answer": ("decoder", "encoder-decoder"),
}
WHY_NOT: dict[tuple[str, str], str] = {
    ("next-token", "encoder-decoder"): (
        "an encoder-decoder reads a source and writes a target, and next-token has only one text; its kinds are "
        "translation, copy, reverse and continuation"
    ),
    ("masked", "decoder"): (
        "a decoder predicts the next token and never looks right of it; gaps are filled by architecture = 'encoder'"
    ),
    ("masked", "encoder-decoder"): "gaps are filled by architecture = 'encoder'",
    ("span-corruption", "encoder"): (
        "what is masked is written, token by token, which a decoder and an encoder-decoder can; an encoder fills gaps "
        "in place: objective.kind = 'masked'"
    ),
    ("question-answer", "encoder"): (
        "an answer is written, token by token, which architecture = 'decoder' and 'encoder-decoder' can"
    ),
}
NO_BIAS = {
    "relative": "a learned bias",
    "alibi": "ALiBi",
    "t5": "T5's bias",
    "xl": "Transformer-XL's terms",
}
# The preset that trains on a corpus by itself, and one that does so when told for any other.
TRAINED_BY = {
    "playlets": "demo",
    "tiny-shakespeare": "shakespeare-cpu",
    "phrasebook": "phrasebook",
    "multi30k": "multi30k",
    "tatoeba-en-de": "tatoeba",
}
ANY: dict[Kind, str] = {"text": "demo", "pairs": "multi30k"}
# The kind of corpus that an objective is for, where that is not one text.
NEEDS: dict[str, Kind] = {"translation": "pairs", "span-corruption": "documents", "question-answer": "documents"}
IS_A: dict[Kind, str] = {"text": "one text", "pairs": "sentence pairs", "documents": "documents with questions"}
# Which networks a form of span corruption is for.
SPAN_FORMS = {"decoder": ("cs224n", "cs224n-half"), "encoder-decoder": ("t5",)}
# By which scores the best checkpoint can be chosen, where not by the loss alone.
SCORES_OF = {"translation": ("loss", "bleu", "exact_match"), "question-answer": ("loss", "exact_match")}
SMALLEST_CONTEXT = 6  # for a document of four tokens and the marks around its span
BACKENDS_OF = {"linear": ("auto", "reference", "chunked")}
SOFTMAX_BACKENDS = ("auto", "reference", "sdpa", "banded")


# Derived defaults by what they follow.
FOLLOWERS = {
    "model.architecture": ("causal",),
    "model.norm": ("final_norm",),
    "model.norm_placement": ("final_norm",),
    "model.attention": ("attention_dropout",),
}


def _divisors(config: RunConfig) -> str:
    width = config.model.d_model
    near = [n for n in range(1, min(width, 64) + 1) if width % n == 0]
    return ", ".join(str(n) for n in near[:8])


def sees_ahead(model: ModelConfig) -> bool:
    """Whether any position's self-attention may look at a later one."""
    see = self_attention(model)
    length = model.context_length
    if see.causal or length < 2:
        return False
    return see.window is None or see.window // 2 > 0 or (see.link_every is not None and see.link_every <= length)


def leaks(config: RunConfig) -> str | None:
    """Why a model of this config could read its answers off its input, or None if it cannot."""
    if config.objective.kind == "next-token" and sees_ahead(config.model):
        return (
            "every position sees the tokens after it, and the next one is what it has to predict: it would score near "
            "perplexity 1 and have learned nothing"
        )
    if config.objective.kind == "shifted":
        return "nearly all of the target stands in the source, a place further on: copying it scores near perplexity 1"
    return None


def _objective_is_for_others(config: RunConfig) -> str:
    kind, architecture = config.objective.kind, config.model.architecture
    fitting = " or ".join(ARCHITECTURES[kind])
    why = WHY_NOT.get((kind, architecture), f"'{kind}' has a source and a target, and architecture = '{fitting}' both")
    return f"objective '{kind}' is not for architecture '{architecture}': {why}"


def corpus_kind(config: RunConfig) -> Kind:
    """Return the kind of corpus that the objective is for."""
    return NEEDS.get(config.objective.kind, "text")


def _corpus_is_for_others(config: RunConfig) -> str:
    corpus, wanted = config.data.corpus, corpus_kind(config)
    kind = kind_by_name(corpus) or "text"
    told = f"{ANY[kind]} --corpus {corpus[:80]}" if kind in ANY else None
    preset = TRAINED_BY.get(corpus, told)
    instead = f"; --preset {preset} trains on it" if preset is not None else ""
    needed = "a translation needs" if config.translates else f"'{config.objective.kind}' needs"
    such = names_of(wanted)[0]
    return f"'{corpus[:80]}' is {IS_A[kind]}, and {needed} {IS_A[wanted]}, such as {such} or files of yours{instead}"


@dataclass(frozen=True)
class Refusal:
    """Why a config cannot be built: the keys it is about and one sentence."""

    keys: tuple[str, ...]
    reason: str


def _refusals(c: RunConfig) -> Iterator[Refusal]:
    """Yield each combination that cannot be, and why a student should expect that; later rules rely on earlier ones."""
    if c.model.d_model % c.model.n_heads != 0:
        yield Refusal(
            ("model.n_heads", "model.d_model"),
            f"{c.model.n_heads} heads cannot share d_model {c.model.d_model} equally; heads that can: {_divisors(c)}",
        )
    if c.model.position == "rope" and c.model.head_width % 2 != 0:
        yield Refusal(
            ("model.position", "model.n_heads"),
            f"rope turns features in pairs, and a head of {c.model.head_width} features has an odd one left; "
            f"d_model / n_heads must be even (is {c.model.d_model} / {c.model.n_heads})",
        )
    if c.model.n_heads % c.model.kv_heads != 0:
        yield Refusal(
            ("model.n_kv_heads", "model.n_heads"),
            f"{c.model.n_heads} query heads cannot share {c.model.kv_heads} key and value heads equally; "
            f"n_kv_heads must divide n_heads",
        )
    if c.model.architecture not in ARCHITECTURES[c.objective.kind]:
        yield Refusal(("objective.kind", "model.architecture"), _objective_is_for_others(c))
    if not c.model.causal and c.model.architecture != "encoder":
        yield Refusal(
            ("model.causal", "model.architecture"),
            "a decoder writes from left to right, so it may not see what it has not written yet; "
            "a model that sees both sides is architecture = 'encoder'",
        )
    if c.objective.kind == "next-token" and leaks(c) is not None and not c.train.allow_leak:
        yield Refusal(
            ("objective.kind", "model.causal"),
            f"{leaks(c)}; choose architecture = 'decoder', or objective.kind = 'masked', "
            "or --set train.allow_leak=true to see it happen",
        )
    if c.objective.kind == "shifted" and not c.train.allow_leak:
        yield Refusal(
            ("objective.kind",),
            f"{leaks(c)}; choose 'continuation', whose target is the text after the source, "
            "or --set train.allow_leak=true to see it happen",
        )
    if c.objective.kind == "span-corruption" and c.objective.span_form not in SPAN_FORMS[c.model.architecture]:
        yield Refusal(
            ("objective.span_form", "model.architecture"),
            f"span_form = '{c.objective.span_form}' "
            + ("writes spans after a source that is read" if c.has_sentinels else "is one text that ends with its span")
            + f"; for architecture = '{c.model.architecture}' there is --set objective.span_form="
            + SPAN_FORMS[c.model.architecture][0],
        )
    if c.on_documents and min(c.model.context_length, c.model.source_tokens) < SMALLEST_CONTEXT:
        yield Refusal(
            ("objective.kind", "model.context_length"),
            f"'{c.objective.kind}' needs a context, and a source, of at least {SMALLEST_CONTEXT} tokens",
        )
    if c.window_targets > c.model.context_length:
        yield Refusal(
            ("model.source_length", "model.context_length"),
            f"a target of '{c.objective.kind}' is {c.window_targets:,} tokens long and the decoder's context only "
            f"{c.model.context_length:,}; --set model.context_length={c.window_targets}",
        )
    if c.objective.kind == "shifted" and c.model.source_tokens < 3:
        yield Refusal(("model.source_length", "objective.kind"), "a shifted target needs a source of at least 3 tokens")
    if c.model.attention == "linear" and c.model.position in NO_BIAS:
        yield Refusal(
            ("model.position", "model.attention"),
            f"linear attention has no score matrix to add {NO_BIAS[c.model.position]} to; positions that go with it: "
            "none, sinusoidal, learned, rope",
        )
    if c.model.attention == "linear" and c.model.attention_dropout > 0.0:
        yield Refusal(
            ("model.attention_dropout", "model.attention"),
            "linear attention has no weights to drop; --set model.attention_dropout=0.0",
        )
    if c.model.backend not in BACKENDS_OF.get(c.model.attention, SOFTMAX_BACKENDS):
        yield Refusal(
            ("model.backend", "model.attention"),
            f"backend '{c.model.backend}' does not compute {c.model.attention} attention; those that do: "
            f"{', '.join(BACKENDS_OF.get(c.model.attention, SOFTMAX_BACKENDS))}",
        )
    if c.model.backend == "banded" and c.model.attention != "window":
        yield Refusal(
            ("model.backend", "model.attention"),
            f"backend 'banded' computes attention = 'window', and this is '{c.model.attention}'",
        )
    if c.model.backend == "sdpa" and c.model.position == "xl":
        yield Refusal(
            ("model.backend", "model.position"),
            "the fused kernel has no place for Transformer-XL's terms; leave backend at 'auto'",
        )
    if c.model.norm == "none" and c.model.norm_placement == "post":
        yield Refusal(
            ("model.norm_placement", "model.norm"),
            "norm = 'none' leaves no norm to place; leave norm_placement at 'pre'",
        )
    if c.model.norm == "none" and c.model.final_norm:
        yield Refusal(
            ("model.final_norm", "model.norm"), "norm = 'none' leaves no final norm; --set model.final_norm=false"
        )
    if c.model.position == "t5" and c.model.t5_max_distance <= c.model.t5_buckets // 2:
        yield Refusal(
            ("model.t5_max_distance", "model.t5_buckets"),
            f"half of the {c.model.t5_buckets} buckets hold one distance each, so t5_max_distance must be above "
            f"{c.model.t5_buckets // 2} (is {c.model.t5_max_distance})",
        )
    if c.model.position == "xl" and c.model.d_model % 2 != 0:
        yield Refusal(
            ("model.position", "model.d_model"),
            f"Transformer-XL's sinusoids come in pairs; d_model must be even (is {c.model.d_model})",
        )
    if c.model.position == "sinusoidal" and c.model.d_model % 2 != 0:
        yield Refusal(
            ("model.position", "model.d_model"),
            f"sinusoidal positions come in sine-cosine pairs; d_model must be even (is {c.model.d_model})",
        )
    if c.model.position_init == "zero" and c.model.position != "learned":
        yield Refusal(
            ("model.position_init", "model.position"),
            f"position_init = 'zero' is about a learned table, and position = '{c.model.position}' learns none; "
            "leave it out or choose position = 'learned'",
        )
    if c.data.tokenizer == "bpe" and not c.on_rows:
        yield Refusal(
            ("data.tokenizer", "objective.kind"),
            "byte pairs are for translations and documents; texts are read by characters: "
            "--set data.tokenizer=characters",
        )
    if c.data.tokenizer == "words" and corpus_kind(c) != "documents":
        yield Refusal(
            ("data.tokenizer", "objective.kind"),
            "words are for documents with questions, such as biographies, where every word is known beforehand; texts "
            "and translations are read by characters: --set data.tokenizer=characters",
        )
    if not c.data.shared_vocabulary and not c.translates:
        yield Refusal(
            ("data.shared_vocabulary", "objective.kind"),
            "only a translation has a vocabulary for each side; leave shared_vocabulary at true",
        )
    if c.data.shared_vocabulary and c.model.source_vocab_size is not None:
        yield Refusal(
            ("model.source_vocab_size", "data.shared_vocabulary"),
            "source and target share one vocabulary, which model.vocab_size is about; leave source_vocab_size out "
            "or --set data.shared_vocabulary=false",
        )
    if c.evaluation.select not in SCORES_OF.get(c.objective.kind, ("loss",)):
        yield Refusal(
            ("evaluation.select", "objective.kind"),
            f"'{c.objective.kind}' has no {c.evaluation.select}: translations have bleu and exact_match, questions "
            "exact_match; --set evaluation.select=loss",
        )
    if c.on_rows and c.data.window_stride is not None:
        yield Refusal(
            ("data.window_stride", "objective.kind"),
            f"'{c.objective.kind}' is trained on sentences, documents or questions, which have no windows; leave "
            "window_stride out",
        )
    if c.optimizer.schedule == "inverse-sqrt" and c.optimizer.warmup == 0:
        yield Refusal(
            ("optimizer.warmup", "optimizer.schedule"),
            "inverse-sqrt falls from the end of warm-up; give it some, e.g. --set optimizer.warmup=400",
        )
    if c.optimizer.schedule != "cosine" and c.optimizer.decay_over is not None:
        yield Refusal(
            ("optimizer.decay_over", "optimizer.schedule"),
            f"decay_over is how long a cosine takes, and the schedule is '{c.optimizer.schedule}'; leave it out",
        )
    if c.optimizer.schedule == "constant" and c.optimizer.decay_every is not None:
        yield Refusal(
            ("optimizer.decay_every", "optimizer.schedule"),
            "decay_every says when the rate changes, and a constant one never does; leave it out",
        )
    if kind_by_name(c.data.corpus) not in (None, corpus_kind(c)):
        yield Refusal(("data.corpus", "objective.kind"), _corpus_is_for_others(c))


def check(config: RunConfig) -> Refusal | None:
    """Return the first reason why a config cannot be built and trained; None if it can."""
    return next(_refusals(config), None)


def require(config: RunConfig, where: str) -> None:
    """Raise an `InputError` that names the reason, if the config cannot be built."""
    refusal = check(config)
    if refusal is not None:
        raise InputError(f"{where}: {' and '.join(refusal.keys)}: {refusal.reason}")


def with_value(config: RunConfig, key: str, value: Any) -> RunConfig:
    """Return the config with one dotted key of a section changed."""
    section, name = key.split(".")
    data = config.dump()
    for follower in FOLLOWERS.get(key, ()):  # a derived default follows, where nobody has set another
        others = {one: said for one, said in data["model"].items() if one != follower}
        derived = RunConfig.model_validate({**data, "model": others}).dump()["model"][follower]
        if data["model"].get(follower) == derived:
            del data["model"][follower]
    data[section][name] = value
    return RunConfig.model_validate(data)
