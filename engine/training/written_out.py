"""The way from a corpus's file to tokens, targets and scores, written out a second time: one row at a time, unpadded.

Only the lists in a tokenizer, the numbers of special tokens and a small network are taken from the product. The run's
own functions read a small corpus (`small_corpora`) whose rows and held-out words are known; then its splits, tokenizer,
examples, losses and scores must be the ones stated here.
"""

import csv
import gzip
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from itertools import chain, islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, cast

import torch

from engine.cache_folder import cached_in
from engine.config.schema import RunConfig
from engine.config.sections import END, MASK, START, UNK
from engine.data import sources
from engine.data.corpora import TextCorpus
from engine.data.corpus import END_OF_TEXT
from engine.data.large import LargeSplit, large_splits
from engine.data.objectives import IGNORED, Batch, PooledBatch
from engine.data.overlap import shortened
from engine.data.tokenizers import Tokenizer
from engine.data.tokenizers.tagged import untagged
from engine.evaluation.metrics import score_batches
from engine.evaluation.scorers import TextScorer
from engine.language import english
from engine.model.transformer import Network
from engine.training.small_corpora import Row, SmallCorpus, write_like
from engine.training.task import Task

Ids = list[int]
# The mark that ends a document, or the part of it that is in a window.
EDGES = (rf"\A{re.escape(END_OF_TEXT[n:])}|{re.escape(END_OF_TEXT[:-n])}\Z" for n in range(1, len(END_OF_TEXT)))
MARK = re.compile("|".join((re.escape(END_OF_TEXT), *EDGES)))
LEAST_HELD_OUT = 0.05  # of a small text
BPE_SIZE = 4_000  # every pair that occurs twice is joined
FIRST = 100  # tokens of the text that is scored
AT_ONCE = 3  # rows of a batch: the last batch has fewer
COMPARED = 2  # training batches whose losses are compared
SMALL_CONTEXT = {"pairs": 192, "documents": 96, "labelled": 48}  # tokens
MOST_FILES = 200  # of a folder, and bytes of a corpus, that are read again
MOST_BYTES = 1 << 25
PACKED = 4  # times smaller than what it holds
ARCHIVES = (".zip", ".tgz", ".xml")  # of named corpora, which have loaders of their own
CLOSE = 1e-5  # relative: scores are rounded to fp32


class Fault(Exception):
    """What is not as written out here: one sentence."""


class Example(NamedTuple):
    source: Ids | None
    tokens: Ids
    targets: Ids  # IGNORED where nothing is scored


def require(right: bool, otherwise: str, **known: Any) -> None:
    if not right:
        raise Fault(otherwise.format(**known) if known else otherwise)


def small_task(config: RunConfig, task: Task, folder: Path) -> tuple[RunConfig, Task, SmallCorpus]:
    """Return a run's config and task on a small corpus in `folder`, read and encoded by the run's own functions."""
    data = config.miniature().dump()
    own, held_out = config.data, max(LEAST_HELD_OUT, config.data.validation_fraction)
    small = write_like(task.corpus, folder, held_out + own.test_fraction)
    kind = own.tokenizer
    if kind == "loaded":
        kind = "characters" if task.tokenizer.target.per_character else "bpe"
    data["data"].pop("corpus_size", None)
    data["data"] |= {"corpus": small.corpus, "tokenizer": kind, "validation_fraction": held_out}
    data["data"] |= {"test_fraction": own.test_fraction, "across_documents": own.across_documents}
    data["data"] |= {"lowercase": own.lowercase, "bpe_size": BPE_SIZE, "words_size": own.words_size}
    data["model"]["context_length"] = SMALL_CONTEXT.get(config.task.corpus, config.task.small_context)
    data["train"]["batch_size"] = data["evaluation"]["batch_size"] = AT_ONCE
    data["evaluation"] |= {"translations": 1, "beam": 1, "probes": False, "nanogpt_batches": 0}
    if config.stride < config.window_targets:
        data["evaluation"]["stride"] = config.task.small_context // 2
    if own.window_stride is not None:
        data["data"]["window_stride"] = 5
    asked = RunConfig.model_validate(data)
    if isinstance(task.corpus, TextCorpus) and isinstance(task.corpus.splits["train"], LargeSplit):
        source = sources.find(small.corpus)
        corpus = TextCorpus("small", "small", small.corpus, large_splits(source, asked.data))
        made = type(task).of(corpus, asked)
    else:
        made = type(task).load(asked, None)
    return made.resolved(asked, str(folder), 1), made, small


# --- the splits


def rows_of(config: RunConfig, task: Task) -> dict[str, list[Row]]:
    """Return the rows of each split as the product has them; of a text, all of it."""
    corpus, kind = cast(Any, task.corpus), config.task.corpus
    made: dict[str, Callable[[Any], list[Row]]] = {
        "text": lambda found: [(found.text,)],
        "pairs": lambda found: [*zip(found.sources, found.targets, strict=True)],
        "labelled": lambda found: [*zip(found.texts, map(corpus.classes.__getitem__, found.classes), strict=True)],
        "documents": lambda found: [(one,) if isinstance(one, str) else (one.text, one.answer) for one in found],
    }
    if kind == "documents":
        splits = corpus.questions if config.task.name == "question-answer" else corpus.documents
    else:
        splits = corpus.splits
    return {split: made[kind](found) for split, found in splits.items()}


def check_splits(config: RunConfig, splits: Mapping[str, Sequence[Row]], small: SmallCorpus) -> None:
    """Every row of the file is in one split, and each split is as large as asked."""
    asked = config.task.name == "question-answer"  # each split has a file
    rows: Sequence[Row] = small.questions if asked else small.rows
    if small.text:
        test = len(small.text) - int(len(small.text) * config.data.test_fraction)
        parts = (small.text[: small.train], small.text[small.train : test], small.text[test:])
        right = ["".join(one) for found in splits.values() for one in found] == [part for part in parts if part]
    else:
        right = Counter(row for found in splits.values() for row in found) == Counter(rows)
    require(right, english("the splits do not have each part of the file once"))
    for split, share in (("validation", config.data.validation_fraction), ("test", config.data.test_fraction)):
        few = abs(len(splits.get(split, ())) - round(len(rows) * share)) <= 1
        require(few or asked or bool(small.text), english("the {split} split has another size than asked"), split=split)


# --- tokens


def words_of(text: str) -> list[str]:
    """Words and marks, and each gap that is not the usual one: none before a mark that closes, else a space."""
    found: list[str] = []
    for gap, token in re.findall(r"(\s*)(\w+|[^\w\s]|\Z)", text):
        usual = "" if token in ".?" or not found else " "
        if gap != usual:
            found.append(gap)
        found += [token] if token else []
    return found


class Encoder:
    """Encodes texts by the list in a tokenizer; what has no token becomes `unknown`."""

    def __init__(self, tokenizer: Tokenizer, unknown: int | None) -> None:
        self.plain = cast(Any, tokenizer.untagged)
        self.tags = {f"<{tag}> ": self.plain.vocab_size + i for i, tag in enumerate(tokenizer.tags)}
        self.symbols = self.plain.pieces or (
            self.plain.characters if self.plain.per_character else self.plain.words
        )  # bytes, characters or words
        self.ids: dict[Any, int] = {symbol: token for token, symbol in enumerate(self.symbols)}
        self.unknown = self.ids.get("<unk>", unknown)

    def cut(self, text: str) -> Sequence[Any]:
        """Return the symbols of a text. Any that spell it will do for byte pairs: which ones is up to the library."""
        if not self.plain.pieces:
            return text if self.plain.per_character else words_of(text)
        found = [self.symbols[token] for token in self.plain.encode(text).tolist()]
        require(b"".join(found) == text.encode(), english("the tokens of a text do not spell it"))
        return found

    def __call__(self, text: str) -> Ids:
        tag = next((tag for tag in self.tags if text.startswith(tag)), "")
        ids = [self.ids.get(symbol, self.unknown) for symbol in self.cut(text.removeprefix(tag))]
        return [*([self.tags[tag]] if tag else []), *(token for token in ids if token is not None)]

    def check_vocabulary(self, known: str) -> None:
        """No token was learned from a text other than `known`."""
        raw = known.encode()
        for symbol in self.symbols:
            seen = symbol in raw or len(symbol) == 1 if isinstance(symbol, bytes) else symbol in known
            named = english("the tokenizer knows {symbol!r}, which is not in the training text", symbol=symbol)
            require(seen or symbol == "<unk>", named)


# --- examples


def examples(config: RunConfig, batch: Batch) -> Iterator[Example]:
    """Yield the rows of a batch without their padding."""
    real = None if batch.source_at is None else (batch.source_at.index >= 0).sum(1).tolist()
    pooled = isinstance(batch, PooledBatch)
    for row in range(len(batch.tokens)):
        targets = batch.targets[row].tolist()
        scored = [place for place, target in enumerate(targets) if target != IGNORED]
        n = (real[row] if real else None) if pooled else scored[-1] + 1 if config.on_rows else None
        source = None if batch.source is None else batch.source[row, : real[row] if real else None].tolist()
        yield Example(source, batch.tokens[row, :n].tolist(), targets if pooled else targets[:n])


def _later(row: Example, start: int) -> Ids:
    require(row.tokens == [start, *row.targets[:-1]], english("the decoder's input is not its target, one token later"))
    return row.targets


def _joined(row: Example, unscored: int = 0) -> Ids:
    """Return the text of which each token but the first is a target, the first few not scored."""
    pairs = [(token, target) for token, target in zip(row.tokens[1:], row.targets, strict=False) if target != IGNORED]
    require(all(token == target for token, target in pairs), english("a target is not the next token"))
    scored = [place for place, target in enumerate(row.targets) if target != IGNORED]
    require(scored == [*range(unscored, len(row.targets))], english("other tokens are scored than should be"))
    return [*row.tokens, row.targets[-1]]


def _split_at(ids: Ids, mark: Callable[[int], bool]) -> list[Ids]:
    """Return what stands before, between and after the marks."""
    parts: list[Ids] = [[]]
    for token in ids:
        if mark(token):
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


class Stated:
    """What a row of each objective was made of, in tokens; the special tokens are those after the text's."""

    def __init__(self, config: RunConfig, task: Task) -> None:
        self.config, self.size = config, task.tokenizer.vocab_size
        self.special = {name: self.size + i for i, name in enumerate(config.special_tokens)}
        self.of_source = task.tokenizer.source.vocab_size
        self.end = None if config.data.across_documents else task.tokenizer.target.end_of_text  # of a document

    def __call__(self, row: Example) -> tuple[Ids, ...]:
        return cast(tuple[Ids, ...], getattr(self, self.config.task.name.replace("-", "_"))(row))

    def next_token(self, row: Example) -> tuple[Ids, ...]:
        document = _split_at(row.tokens[1:], lambda token: token == self.end)[0]  # nothing is predicted across its end
        wanted = [a if i <= len(document) else IGNORED for i, a in enumerate([*row.tokens[1:], row.targets[-1]])]
        require(row.targets == wanted, english("the targets are not the next tokens, up to the end of a document"))
        return (row.tokens + [one for one in row.targets[-1:] if one != IGNORED],)

    def masked(self, row: Example) -> tuple[Ids, ...]:
        hidden = [place for place, target in enumerate(row.targets) if target != IGNORED]
        wanted = max(1, round(self.config.objective.mask_fraction * len(row.tokens)))
        require(len(hidden) == wanted, english("{n} tokens are hidden, not {wanted}"), n=len(hidden), wanted=wanted)
        return ([b if b != IGNORED else a for a, b in zip(row.tokens, row.targets, strict=True)],)

    def copy(self, row: Example) -> tuple[Ids, ...]:
        text = _later(row, self.special[START])
        text = text if self.config.task.name == "copy" else text[::-1]
        require(row.source == text, english("the source is not what is written of it"))
        return (text,)

    reverse = copy

    def continuation(self, row: Example) -> tuple[Ids, ...]:
        source = row.source or []
        return ([*source, *_later(row, source[-1])],)

    def shifted(self, row: Example) -> tuple[Ids, ...]:
        source = row.source or []
        require(row.tokens == source[1:], english("the decoder does not read the source, one token later"))
        return ([*source, _joined(row)[-1]],)

    def translation(self, row: Example) -> tuple[Ids, ...]:
        start, end = self.special[START], self.special[END]
        if row.source is None:
            given = row.tokens.index(start) if start in row.tokens else 0
            text = _joined(row, given)
            source, written = text[:given], text[given + 1 :]
        else:
            require(row.source[-1] == self.of_source + 2, english("the source has no end"))
            source, written = row.source[:-1], _later(row, start)
        require(written[-1] == end, english("the target has no end"))
        return source, written[:-1]

    summarization = translation

    def question_answer(self, row: Example) -> tuple[Ids, ...]:
        mark = self.special[MASK]
        if row.source is not None:
            written = _later(row, mark)
            require(written[-1] == mark, english("the target has no end"))
            return row.source, written[:-1]
        question, answer, rest = (*_split_at(_joined(row, row.tokens.index(mark) - 1), mark.__eq__), [0])[:3]
        require(not rest, english("the target has no end"))
        return question, answer

    def span_corruption(self, row: Example) -> tuple[Ids, ...]:
        if row.source is None:
            prefix, suffix, span, rest = _split_at(_joined(row), self.special[MASK].__eq__)
            require(not rest and bool(span), english("a row is not prefix, suffix and span, with a mark after each"))
            return (prefix + span + suffix,)
        first = self.special[START] + 1
        written = _later(row, self.special[START])
        shown, spans = (_split_at(ids, lambda token: token >= first) for ids in (row.source, written))
        marks = [[token for token in ids if token >= first] for ids in (row.source, written)]
        wanted = [*range(first, first + len(marks[1]))]
        require(marks == [wanted[:-1], wanted], english("a span is not between its sentinels"))
        return ([token for pair in zip(shown, [*spans[1:-1], []], strict=True) for part in pair for token in part],)

    def classification(self, row: Example) -> tuple[Ids, ...]:
        return row.tokens, row.targets


def check_rows(
    config: RunConfig, found: Sequence[tuple[Ids, ...]], expected: Sequence[tuple[Ids, ...]], of: str
) -> None:
    """The rows of one pass over a split are those of its file: windows of a text, beginnings of documents, or all."""
    if config.task.corpus == "text":
        whole = "".join(map(chr, expected[0][0]))
        right = all("".join(map(chr, text)) in whole for (text,) in found)
    elif config.task.name == "span-corruption":
        begins = {tuple(text[:n]) for (text,) in expected for n in range(1, len(text) + 1)}
        right = len(found) == len(expected) and all(tuple(text) in begins for (text,) in found)
    else:
        right = sorted(found) == sorted(expected)
    require(right, english("the {of} examples are not those of the {of} split"), of=of)


# --- losses and scores


@torch.no_grad()
def nll(network: Network, row: Example, never: int | None = None) -> tuple[list[float], list[bool]]:
    """Return −log p of each scored target of one row, read alone, and whether it is the likeliest token, but for
    `never`.
    """
    parts = [torch.tensor([part]) for part in (row.source, row.tokens) if part is not None]
    logits = network(*parts)[0]  # (T, V)
    logits = logits.mean(0, keepdim=True) if len(row.targets) < len(logits) else logits
    log_p = logits.log_softmax(-1)
    scored = [(place, target) for place, target in enumerate(row.targets) if target != IGNORED]
    likeliest = [int(log_p[at].argmax()) == target != never for at, target in scored]
    return [-float(log_p[at, target]) for at, target in scored], likeliest


def check_losses(config: RunConfig, batch: Batch, rows: Sequence[Example], network: Network) -> None:
    context = batch.tokens.shape[1]
    found = score_batches(network, [batch], context=context, stride=context).nll.tolist()
    same = _alike(found, [loss for row in rows for loss in nll(network, row)[0]])
    require(same, english("a batch, padded, has other losses than its rows, one at a time"))


def text_rows(config: RunConfig, ids: Ids, ends: Sequence[int]) -> Iterator[Example]:
    """Yield the windows that score a text: each token but the first once, in the first window that has it, and none
    from before its document; `ends` are the places of the tokens that end one.
    """
    context = config.model.context_length
    borders = [0, *ends, len(ids) - 1]
    for first, last in pairwise(borders):
        document, done = ids[first : last + 1], 0
        for start in range(0, len(document) - 1, config.stride):
            window = document[start : start + context + 1]
            new = start + len(window) - 1 - done
            if new > 0:
                targets = window[1:]
                yield Example(None, window[:-1], [IGNORED] * (len(targets) - new) + targets[-new:])
                done += new


def check_small_corpus(config: RunConfig, task: Task, build: Callable[[RunConfig, int], Network]) -> str:
    """Return what was compared, in words; raise `Fault` at the first difference. `build` returns a small float64
    network.
    """
    with TemporaryDirectory(prefix="tui-transformer-small-") as folder, cached_in(Path(folder) / "cache"):
        small_config, made, small = small_task(config, task, Path(folder))
        check_splits(small_config, rows_of(small_config, made), small)
        return check_path(small_config, made, build(small_config, made.vocab_size))


def check_path(config: RunConfig, task: Task, network: Network) -> str:
    """The same for a task on a small corpus: its tokens, examples, losses and scores."""
    cpu, name = torch.device("cpu"), config.data.tokenizer
    on, context = config.task.corpus, config.model.context_length
    stated = Stated(config, task)
    source, target = (Encoder(side, stated.special.get(UNK)) for side in task.tokenizer.sides)
    lower = str.lower if config.data.lowercase else str
    texts = {split: [(lower(text), *more) for text, *more in rows] for split, rows in rows_of(config, task).items()}
    if on != "documents":  # those of questions and documents are learned from both
        splits = texts if name == "characters" and on != "labelled" else ["train"]
        for side in (source, target):
            side.check_vocabulary("\n".join(part for split in splits for row in texts[split] for part in row))

    def encoded(row: Row) -> tuple[Ids, ...]:
        if on == "labelled":
            return source(row[0])[:context], [sorted({row[1] for row in texts["train"]}).index(row[1])]
        if on == "pairs":
            return source(row[0])[: config.task.longest_source(config)], target(row[1])
        before = " " if name == "bpe" else ""
        return tuple(target(before * bool(i) + part) for i, part in enumerate(row))

    rows = {split: [encoded(row) for row in texts[split]] for split in ("train", "validation")}
    batches = task.batches(config, cpu)
    steps = range(1, 1 + getattr(batches, "steps_per_epoch", COMPARED))
    trained = [batches.batch(step, micro) for step in steps for micro in range(config.train.accumulation)]
    check_rows(config, [stated(one) for batch in trained for one in examples(config, batch)], rows["train"], "training")
    scorer = task.scorer(config, cpu)
    if config.task.continues:
        ids = rows["validation"][0][0]
        asked = [*text_rows(config, ids, [place for place, token in enumerate(ids) if token == stated.end])]
    else:
        asked = [one for batch in scorer.batches() for one in examples(config, batch)]
        check_rows(config, [stated(one) for one in asked], rows["validation"], "validation")
    for batch in trained[:COMPARED]:
        check_losses(config, batch, [*examples(config, batch)], network)
    unknown = target.ids.get("<unk>")  # to predict it is never right, and its spelling costs more bits
    scored = [nll(network, one, unknown) for one in asked]
    losses, right = ([value for row in scored for value in row[i]] for i in (0, 1))
    record = scorer.record(network).dump()
    expected = {"loss": math.fsum(losses) / len(losses), "accuracy": sum(right) / len(right)}
    if "bits_per_byte" in record:
        text = texts["validation"][0][0]
        first, bits = target.cut(text)[0], math.fsum(losses) / math.log(2)  # the first token is not predicted
        rest = text.encode()[len(first if isinstance(first, bytes) else first.encode()) :]
        expected |= {"bits_per_character": bits / len(rest.decode()), "bits_per_byte": bits / len(rest)}
    said = english("the {key} of the validation split is {found:.6f}; one row at a time, it is {value:.6f}")
    for key, value in expected.items():
        spelled = unknown is not None and key.startswith("bits") and record[key] > value
        require(spelled or _alike([record[key]], [value]), said, key=key, found=record[key], value=value)
    n = len(asked) + sum(len(batch.tokens) for batch in trained)
    return english("so are splits, tokens, {n:,} examples, losses and scores of a small corpus of its kind", n=n)


def _alike(found: Sequence[float], expected: Sequence[float]) -> bool:
    pairs = zip(sorted(found), sorted(expected), strict=False)
    return len(found) == len(expected) and all(abs(a - b) <= CLOSE * max(1.0, abs(b)) for a, b in pairs)


# --- the run's own first batches


def on_disk(config: RunConfig, task: Task) -> str:
    """Return the text of a corpus's files, read in another way, with single spaces; "" where that is too much."""
    corpus = task.corpus
    if isinstance(corpus, TextCorpus) and isinstance(corpus.splits["train"], LargeSplit):
        return ""
    paths = [Path(part.strip()).expanduser() for part in corpus.source.split(",")]
    found = chain.from_iterable([path] if path.is_file() else islice(path.rglob("*"), MOST_FILES) for path in paths)
    files = sorted(file for file in found if file.is_file())
    size = sum(file.stat().st_size * (PACKED if file.suffix in (".gz", ".parquet") else 1) for file in files)
    if size > MOST_BYTES or any(file.suffix in ARCHIVES for file in files):
        return ""
    if not files:  # generated
        return " ".join(
            " ".join(part for rows in rows_of(config, task).values() for row in rows for part in row).split()
        )
    return " ".join("\n".join(map(_read, files)).split())


def _read(file: Path) -> str:
    """Return the rows of a table, their cells joined, or all of any other file."""
    if file.suffix == ".parquet":
        from pyarrow import parquet

        rows = [row.values() for row in parquet.read_table(file).to_pylist()]
        return "\n".join(" ".join(cell for cell in row if isinstance(cell, str)) for row in rows)
    raw = file.read_bytes()
    text = (gzip.decompress(raw) if file.suffix == ".gz" else raw).decode("utf-8-sig", "replace")
    with suppress(ValueError, AttributeError, csv.Error):  # another file of the folder
        if file.suffix == ".jsonl":
            rows = [json.loads(line).values() for line in text.split("\n") if line.strip()]
            return "\n".join(" ".join(cell for cell in row if isinstance(cell, str)) for row in rows)
        if ".csv" in file.suffixes:
            return "\n".join(map(" ".join, csv.reader(io.StringIO(text, newline=""))))
    return text + text.replace('""', '"') if ".tsv" in file.suffixes else text  # its cells may be quoted


def check_own_batches(config: RunConfig, task: Task, network: Network, cut: Callable[[Batch], Batch]) -> str:
    """Return what was compared of a run's first training and scoring batches, in words; raise `Fault` at the first
    difference: what rows were made of stands in the corpus's files, and in `network` their losses are those of each
    row alone. `cut` shortens a batch of long rows.
    """
    stated, cpu, scorer = Stated(config, task), torch.device("cpu"), task.scorer(config, torch.device("cpu"))
    if isinstance(scorer, TextScorer):  # the first windows
        scorer = copy(scorer)
        scorer.tokens = scorer.tokens[: FIRST if config.task.continues else config.window_tokens]
    batches = {"training": task.batches(config, cpu).batch(1, 0)}
    some: dict[str, list[Example]] = {}
    if config.task.continues:
        assert isinstance(scorer, TextScorer)
        ids = scorer.tokens[:].tolist()
        some["validation"] = [*text_rows(config, ids, [at for at, token in enumerate(ids) if token == stated.end])]
        by_hand = [loss for one in some["validation"] for loss in nll(network, one)[0]]
        same = _alike(scorer.token_scores(network).nll.tolist(), by_hand)
        require(same, english("the scorer's losses are not those of each window alone"))
    else:
        batches["validation"] = next(iter(scorer.batches()))
    for split, batch in batches.items():
        few = next(batch.pieces(-(-len(batch.tokens) // AT_ONCE)))
        some[split], short = [*examples(config, few)], cut(few)
        check_losses(config, short, [*examples(config, short)], network)
    said = english("a {split} example has a text that is not in the corpus: {part}")
    text = on_disk(config, task)
    text = END_OF_TEXT * bool(text) + (text.lower() if config.data.lowercase else text)
    for split, rows in some.items():
        for row in rows:
            windows = config.task.continues and split == "validation"  # not all of them are scored
            parts = (row.tokens,) if windows else stated(row)
            for side, ids in zip((task.tokenizer.target, task.tokenizer.source), parts[::-1], strict=False):
                for part in [] if config.task.corpus == "labelled" and ids is row.targets else _spelled(side, ids):
                    require(part in text or not text, said, split=split, part=shortened(part))
    found = english("the first {n} examples and their losses are as read by hand from the corpus")
    if not text:
        found = english("the losses of the first {n} examples are those of each read alone")
    return found.format(n=sum(map(len, some.values())))


def _spelled(tokenizer: Tokenizer, ids: Ids) -> list[str]:
    """Return the texts between unknown tokens and ends of documents, with single spaces."""
    runs = _split_at(ids, lambda token: token >= tokenizer.vocab_size or token == tokenizer.unknown)
    said = [tokenizer.decode(run).strip("\ufffd") for run in runs if run]
    return [part for text in said for end in MARK.split(text) if (part := " ".join(untagged(end).split()))]
