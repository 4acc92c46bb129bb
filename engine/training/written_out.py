"""A second implementation of the way from a corpus's files to tokens, targets and scores: row by row, without padding.

Only a tokenizer's list of tokens, the numbers of special tokens and a small network come from the first. The run's own
functions read a small corpus (`small_corpora`) whose rows and held-out words are known; its splits, tokenizer,
examples, losses and scores must then be those computed here.
"""

import bz2
import csv
import gzip
import io
import json
import lzma
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

from engine.base.cache_folder import use_cache_folder
from engine.base.language import Message
from engine.config.schema import RunConfig
from engine.config.tasks import END, MASK, START, UNK
from engine.data import sources
from engine.data.corpora import TextCorpus
from engine.data.corpus import END_OF_TEXT
from engine.data.large import LargeSplit, large_splits
from engine.data.objectives import IGNORED, Batch
from engine.data.overlap import shorten
from engine.data.text_files import CODECS, PACKED_SUFFIXES, Reading
from engine.data.tokenizers import Tokenizer
from engine.data.tokenizers.tagged import remove_tag
from engine.evaluation.metrics import score_batches
from engine.model.transformer import Network
from engine.tasks.classification import PooledBatch
from engine.tasks.task import Task
from engine.tasks.text import TextScorer
from engine.training.small_corpora import Row, SmallCorpus, write_like

Ids = list[int]
# The mark that ends a document, or the part of it that is in a window.
EDGES = (rf"\A{re.escape(END_OF_TEXT[n:])}|{re.escape(END_OF_TEXT[:-n])}\Z" for n in range(1, len(END_OF_TEXT)))
MARK = re.compile("|".join((re.escape(END_OF_TEXT), *EDGES)))
KEPT = ("test_fraction", "across_documents", "lowercase", "words_size")  # settings in `data` of the small config
LEAST_HELD_OUT = 0.05  # of a small text
BPE_SIZE = 4_000  # every pair that occurs twice is merged
FIRST = 100  # tokens of the run's text that are scored
AT_ONCE = 3  # rows of a batch: the last batch has fewer
COMPARED = 2  # training batches whose losses are compared
SMALL_CONTEXT = {"pairs": 192, "documents": 96, "labelled": 48}  # tokens
MOST_FILES = 200  # of a folder, and bytes of a corpus, that are read a second time
MOST_BYTES = 1 << 25
PACKED = 4  # how many times smaller a compressed file is than its content
UNPACK = {b"\x1f\x8b": gzip.decompress, b"BZh": bz2.decompress, b"\xfd7zXZ": lzma.decompress}
ARCHIVES = (".zip", ".tgz", ".xml")  # of named corpora, which have loaders of their own
CLOSE = 1e-5  # relative: scores are rounded to fp32


class Mismatch(Exception):
    """What differs from this implementation, in one sentence."""


class TokenRow(NamedTuple):
    """A row of a batch, without its padding."""

    source: Ids | None
    tokens: Ids
    targets: Ids  # IGNORED where nothing is scored


def require(right: bool, otherwise: str) -> None:
    if not right:
        raise Mismatch(otherwise)


def small_task(config: RunConfig, task: Task, folder: Path) -> tuple[RunConfig, Task, SmallCorpus]:
    """Return a run's config and task on a small corpus in `folder`, read and encoded by the run's own functions."""
    own = config.data
    held_out = max(min(LEAST_HELD_OUT, (1.0 - own.test_fraction) / 2), own.validation_fraction)
    small, tokenizer = write_like(task.corpus, folder, 1.0 - held_out - own.test_fraction), own.tokenizer
    if tokenizer == "loaded":
        tokenizer = "characters" if task.tokenizer.target.per_character else "bpe"
    tables = config.miniature().dump()
    data, scored = tables["data"], tables["evaluation"]
    data.pop("corpus_size", None)
    data |= {key: getattr(own, key) for key in KEPT} | {"corpus": small.corpus, "tokenizer": tokenizer}
    data |= {"validation_fraction": held_out, "bpe_size": BPE_SIZE, "encoding": "auto"}
    if own.window_stride is not None:
        data["window_stride"] = 5
    scored |= {"translations": 1, "beam": 1, "probes": False, "nanogpt_batches": 0}
    if config.evaluation_stride < config.window_targets:
        scored["stride"] = config.task.small_context // 2
    tables["model"]["context_length"] = SMALL_CONTEXT.get(config.task.corpus, config.task.small_context)
    tables["train"]["batch_size"] = scored["batch_size"] = AT_ONCE
    asked = RunConfig.model_validate(tables)
    if isinstance(task.corpus, TextCorpus) and isinstance(task.corpus.splits["train"], LargeSplit):
        source = sources.find_source(small.corpus, Reading(task.corpus.reading.version))
        splits, _ = large_splits(source, asked.data)
        made = type(task).from_corpus(TextCorpus("small", "small", small.corpus, splits), asked)
    else:
        made = type(task).load(asked, None, version=task.corpus.reading.version)
    return made.resolve_config(asked, str(folder), 1), made, small


# --- splits


def rows_of(config: RunConfig, task: Task) -> dict[str, list[Row]]:
    """Return the rows of each split as the run's corpus has them; a text is one row."""
    corpus, kind = cast(Any, task.corpus), config.task.corpus
    rows: dict[str, Callable[[Any], list[Row]]] = {
        "text": lambda found: [(found.text,)],
        "pairs": lambda found: [*zip(found.sources, found.targets, strict=True)],
        "labelled": lambda found: [*zip(found.texts, map(corpus.classes.__getitem__, found.classes), strict=True)],
        "documents": lambda found: [(one,) if isinstance(one, str) else (one.text, one.answer) for one in found],
    }
    part = "splits" if kind != "documents" else "questions" if config.task.name == "question-answer" else kind
    return {split: rows[kind](found) for split, found in getattr(corpus, part).items()}


def check_splits(config: RunConfig, splits: Mapping[str, Sequence[Row]], small: SmallCorpus) -> None:
    """Every row of the file is in one split, and each split has the requested size."""
    by_file = config.task.name == "question-answer"  # each split has a file
    rows: Sequence[Row] = small.questions if by_file else small.rows
    if small.text:
        test = len(small.text) - int(len(small.text) * config.data.test_fraction)
        parts = (small.text[: small.train], small.text[small.train : test], small.text[test:])
        right = [*chain.from_iterable(chain(*splits.values()))] == [part for part in parts if part]
    else:
        right = Counter(chain(*splits.values())) == Counter(rows)
    require(right, Message("the splits do not contain every part of the file exactly once"))
    if not (by_file or small.text):
        for split, share in (("validation", config.data.validation_fraction), ("test", config.data.test_fraction)):
            near = abs(len(splits.get(split, ())) - round(len(rows) * share)) <= 1
            require(near, Message("the {split} split does not have the requested size", split=split))


# --- tokens


def word_symbols(text: str) -> list[str]:
    """Return the words and marks, and each unusual gap; usual are none before a closing mark, else one space."""
    found: list[str] = []
    for gap, token in re.findall(r"(\s*)(\w+|[^\w\s]|\Z)", text):
        usual = "" if token in ".?" or not found else " "
        found += [gap] * (gap != usual) + [token] * bool(token)
    return found


class Encoder:
    """Encodes texts by a tokenizer's list of tokens; what has no token becomes `unknown`, or is left out if None."""

    def __init__(self, tokenizer: Tokenizer, unknown: int | None) -> None:
        self.plain = cast(Any, tokenizer.untagged)
        self.tags = {f"<{tag}> ": self.plain.vocab_size + i for i, tag in enumerate(tokenizer.tags)}
        self.symbols = self.plain.token_bytes or (  # bytes, characters or words
            self.plain.characters if self.plain.per_character else self.plain.words
        )
        self.ids: dict[Any, int] = {symbol: token for token, symbol in enumerate(self.symbols)}
        self.unknown = self.ids.get("<unk>", unknown)

    def split_symbols(self, text: str) -> Sequence[Any]:
        """Return a text's symbols. Of byte pairs, any that spell it will do: the choice is the library's."""
        if not self.plain.token_bytes:
            return text if self.plain.per_character else word_symbols(text)
        found = [self.symbols[token] for token in self.plain.encode(text).tolist()]
        require(b"".join(found) == text.encode(), Message("the tokens of a text do not decode to it"))
        return found

    def __call__(self, text: str) -> Ids:
        tag = next((tag for tag in self.tags if text.startswith(tag)), "")
        ids = [self.ids.get(symbol, self.unknown) for symbol in self.split_symbols(text.removeprefix(tag))]
        return [token for token in (self.tags.get(tag), *ids) if token is not None]

    def require_symbols_occur_in(self, text: str) -> None:
        """No token was learned from a text other than `known`."""
        raw = text.encode()
        for symbol in self.symbols:
            seen = symbol in raw or len(symbol) == 1 if isinstance(symbol, bytes) else symbol in text
            wrong = Message("the tokenizer has {symbol!r}, which is not in the training text", symbol=symbol)
            require(seen or symbol == "<unk>", wrong)


# --- examples


def unpadded_rows(config: RunConfig, batch: Batch) -> Iterator[TokenRow]:
    """Yield the rows of a batch without their padding."""
    real = None if batch.source_positions is None else (batch.source_positions.index >= 0).sum(1).tolist()
    pooled = isinstance(batch, PooledBatch)
    for row, targets in enumerate(batch.targets.tolist()):
        n = real[row] if real and pooled else None
        if config.trains_on_rows and not pooled:
            n = _scored_places(targets)[-1] + 1
        source = None if batch.source is None else batch.source[row, : real[row] if real else None].tolist()
        yield TokenRow(source, batch.tokens[row, :n].tolist(), targets if pooled else targets[:n])


def _scored_places(targets: Ids) -> list[int]:
    return [place for place, target in enumerate(targets) if target != IGNORED]


def _shifted_text(row: TokenRow, start: int) -> Ids:
    """Return the targets, which the decoder must read one token late."""
    wrong = Message("the decoder's input is not its target, shifted by one token")
    require(row.tokens == [start, *row.targets[:-1]], wrong)
    return row.targets


def _joined_text(row: TokenRow, unscored: int = 0) -> Ids:
    """Return the text in which each token but the first is a target, the first few of them not scored."""
    scored = _scored_places(row.targets)
    right = all(row.tokens[place + 1] == row.targets[place] for place in scored if place + 1 < len(row.tokens))
    require(right, Message("a target is not the next token"))
    require(scored == [*range(unscored, len(row.targets))], Message("the wrong tokens are scored"))
    return [*row.tokens, row.targets[-1]]


def _split_at(ids: Ids, mark: Callable[[int], bool]) -> list[Ids]:
    """Return what stands before, between and after the marks."""
    at = [-1, *(place for place, token in enumerate(ids) if mark(token)), len(ids)]
    return [ids[start + 1 : stop] for start, stop in pairwise(at)]


class ExampleInverter:
    """Recovers the texts that a row of each objective was made from, in tokens; special tokens follow the text's."""

    def __init__(self, config: RunConfig, task: Task) -> None:
        self.config, size = config, task.tokenizer.vocab_size
        self.special = {name: size + i for i, name in enumerate(config.special_tokens)}
        self.of_source = task.tokenizer.source.vocab_size
        self.end = None if config.data.across_documents else task.tokenizer.target.end_of_text  # of a document

    @classmethod
    def supports(cls, objective: str) -> bool:
        """Return whether an `objective.kind` is written out here; one added to the program need not be."""
        return hasattr(cls, objective.replace("-", "_"))

    def __call__(self, row: TokenRow) -> tuple[Ids, ...]:
        return cast(tuple[Ids, ...], getattr(self, self.config.task.name.replace("-", "_"))(row))

    def next_token(self, row: TokenRow) -> tuple[Ids, ...]:
        document = _split_at(row.tokens[1:], lambda token: token == self.end)[0]  # nothing is predicted across its end
        wanted = [a if i <= len(document) else IGNORED for i, a in enumerate([*row.tokens[1:], row.targets[-1]])]
        require(row.targets == wanted, Message("the targets are not the next tokens up to the end of the document"))
        return (row.tokens + [one for one in row.targets[-1:] if one != IGNORED],)

    def masked(self, row: TokenRow) -> tuple[Ids, ...]:
        n = len(_scored_places(row.targets))
        wanted = max(1, round(self.config.objective.mask_fraction * len(row.tokens)))
        require(n == wanted, Message("{n} tokens are masked, not {wanted}", n=n, wanted=wanted))
        return ([b if b != IGNORED else a for a, b in zip(row.tokens, row.targets, strict=True)],)

    def copy(self, row: TokenRow) -> tuple[Ids, ...]:
        text = _shifted_text(row, self.special[START])
        text = text if self.config.task.name == "copy" else text[::-1]
        require(row.source == text, Message("the target does not match the source"))
        return (text,)

    reverse = copy

    def continuation(self, row: TokenRow) -> tuple[Ids, ...]:
        source = row.source or []
        return ([*source, *_shifted_text(row, source[-1])],)

    def shifted(self, row: TokenRow) -> tuple[Ids, ...]:
        source = row.source or []
        require(row.tokens == source[1:], Message("the decoder's input is not the source from its second token on"))
        return ([*source, _joined_text(row)[-1]],)

    def translation(self, row: TokenRow) -> tuple[Ids, ...]:
        start, end = self.special[START], self.special[END]
        if row.source is None:
            given = row.tokens.index(start) if start in row.tokens else 0
            text = _joined_text(row, given)
            source, written = text[:given], text[given + 1 :]
        else:
            require(row.source[-1] == self.of_source + 2, Message("the source lacks its end token"))
            source, written = row.source[:-1], _shifted_text(row, start)
        return source, self._strip_end(end, written)

    summarization = translation

    def _strip_end(self, end: int, written: Ids) -> Ids:
        require(written[-1] == end, Message("the target lacks its end token"))
        return written[:-1]

    def question_answer(self, row: TokenRow) -> tuple[Ids, ...]:
        mark = self.special[MASK]
        if row.source is not None:
            return row.source, self._strip_end(mark, _shifted_text(row, mark))
        given = row.tokens.index(mark)
        return row.tokens[:given], self._strip_end(mark, _joined_text(row, given - 1)[given + 1 :])

    def span_corruption(self, row: TokenRow) -> tuple[Ids, ...]:
        if row.source is None:
            prefix, suffix, span, rest = _split_at(_joined_text(row), self.special[MASK].__eq__)
            wrong = Message("a row is not prefix, suffix and span, each with a mark after it")
            require(not rest and bool(span), wrong)
            return (prefix + span + suffix,)
        first = self.special[START] + 1
        parts = (row.source, _shifted_text(row, self.special[START]))
        shown, spans = (_split_at(ids, lambda token: token >= first) for ids in parts)
        marks = [[token for token in ids if token >= first] for ids in parts]
        wanted = [*range(first, first + len(marks[1]))]
        require(marks == [wanted[:-1], wanted], Message("a span is not between its sentinels"))
        return ([*chain(*chain(*zip(shown, [*spans[1:-1], []], strict=True)))],)

    def classification(self, row: TokenRow) -> tuple[Ids, ...]:
        return row.tokens, row.targets


def check_rows(config: RunConfig, found: list[tuple[Ids, ...]], expected: list[tuple[Ids, ...]], split: str) -> None:
    """The rows of one pass over a split are its file's: windows of a text, beginnings of documents, or whole rows."""
    if config.task.corpus == "text":
        whole = "".join(map(chr, expected[0][0]))
        right = all("".join(map(chr, text)) in whole for (text,) in found)
    elif config.task.name == "span-corruption":
        begins = {tuple(text[:n]) for (text,) in expected for n in range(1, len(text) + 1)}
        right = len(found) == len(expected) and all(tuple(text) in begins for (text,) in found)
    else:
        right = sorted(found) == sorted(expected)
    require(right, Message("the {split} examples are not those of the {split} split", split=split))


# --- losses and scores


@torch.no_grad()
def nll_and_correctness(
    network: Network, row: TokenRow, never_correct: int | None = None
) -> tuple[list[float], list[bool]]:
    """Return −log p of each scored target of a row that is read alone, and whether it is the likeliest token; `never`
    does not count as such.
    """
    parts = [torch.tensor([part]) for part in (row.source, row.tokens) if part is not None]
    logits = network(*parts)[0]  # (T, V)
    logits = logits.mean(0, keepdim=True) if len(row.targets) < len(logits) else logits
    log_p = logits.log_softmax(-1)
    scored = [(place, row.targets[place]) for place in _scored_places(row.targets)]
    likeliest = [int(log_p[at].argmax()) == target != never_correct for at, target in scored]
    return [-float(log_p[at, target]) for at, target in scored], likeliest


def check_losses(config: RunConfig, batch: Batch, network: Network) -> None:
    context = batch.tokens.shape[1]
    found = score_batches(network, [batch], context=context, stride=context).nll.tolist()
    same = _all_close(
        found, [loss for row in unpadded_rows(config, batch) for loss in nll_and_correctness(network, row)[0]]
    )
    require(same, Message("a padded batch and its rows, read one at a time, have different losses"))


def scoring_windows(config: RunConfig, ids: Ids, end: int | None) -> Iterator[TokenRow]:
    """Yield the windows that score a text: each token but the first once, in the first window that has it, and none
    from before its document; `end` is the token that ends one.
    """
    for first, last in pairwise([0, *(place for place, token in enumerate(ids) if token == end), len(ids) - 1]):
        document, done = ids[first : last + 1], 0
        for start in range(0, len(document) - 1, config.evaluation_stride):
            window = document[start : start + config.model.context_length + 1]
            new = start + len(window) - 1 - done
            if new > 0:
                yield TokenRow(None, window[:-1], [IGNORED] * (len(window) - 1 - new) + window[-new:])
                done += new


def check_small_corpus(config: RunConfig, task: Task, build: Callable[[RunConfig, int], Network]) -> str:
    """Return what was compared, in words; raise `Mismatch` at the first difference. `build` returns a small float64
    network.
    """
    with TemporaryDirectory(prefix="tui-transformer-small-") as folder, use_cache_folder(Path(folder) / "cache"):
        small_config, made, small = small_task(config, task, Path(folder))
        check_splits(small_config, rows_of(small_config, made), small)
        return check_task(small_config, made, build(small_config, made.vocab_size))


def check_task(config: RunConfig, task: Task, network: Network) -> str:
    """`check_small_corpus` for the tokens, examples, losses and scores of a task on a small corpus."""
    cpu, name, on = torch.device("cpu"), config.data.tokenizer, config.task.corpus
    originals = ExampleInverter(config, task)
    source, target = (Encoder(side, originals.special.get(UNK)) for side in task.tokenizer.sides)
    lower = str.lower if config.data.lowercase else str
    texts = {split: [(lower(text), *more) for text, *more in rows] for split, rows in rows_of(config, task).items()}
    if on != "documents":  # whose tokenizer learns from questions and documents
        splits = texts if name == "characters" and on != "labelled" else ["train"]
        for side in (source, target):
            side.require_symbols_occur_in("\n".join(part for split in splits for row in texts[split] for part in row))

    def encoded(row: Row) -> tuple[Ids, ...]:
        if on == "labelled":
            classes = sorted({label for _, label in texts["train"]})
            return source(row[0])[: config.model.context_length], [classes.index(row[1])]
        if on == "pairs":
            return source(row[0])[: config.task.source_truncation_length(config)], target(row[1])
        return tuple(target(" " * (i > 0 and name == "bpe") + part) for i, part in enumerate(row))

    rows = {split: [*map(encoded, texts[split])] for split in ("train", "validation")}
    batches = task.batches(config, cpu)
    steps = range(1, 1 + getattr(batches, "steps_per_epoch", COMPARED))
    trained = [batches.batch(step, micro) for step in steps for micro in range(config.train.accumulation)]
    seen = [originals(one) for batch in trained for one in unpadded_rows(config, batch)]
    # An epoch's last step reads on into the next.
    one_pass = seen[: len(rows["train"])] if config.trains_on_rows else seen
    check_rows(config, one_pass, rows["train"], "training")
    scorer = task.scorer(config, cpu)
    if config.task.continues:
        asked = [*scoring_windows(config, rows["validation"][0][0], originals.end)]
    else:
        asked = [one for batch in scorer.batches() for one in unpadded_rows(config, batch)]
        check_rows(config, [*map(originals, asked)], rows["validation"], "validation")
    for batch in trained[:COMPARED]:
        check_losses(config, batch, network)
    unknown = target.ids.get("<unk>")  # to predict it is never right, and its spelling costs more bits
    scored = [nll_and_correctness(network, one, unknown) for one in asked]
    losses, right = ([value for row in scored for value in row[i]] for i in (0, 1))
    record = scorer.score_model(network).dump()
    expected = {"loss": math.fsum(losses) / len(losses), "accuracy": sum(right) / len(right)}
    if "bits_per_byte" in record:
        text = texts["validation"][0][0]
        first, bits = target.split_symbols(text)[0], math.fsum(losses) / math.log(2)  # the first token is not predicted
        rest = text.encode()[len(first if isinstance(first, bytes) else first.encode()) :]
        expected |= {"bits_per_character": bits / len(rest.decode()), "bits_per_byte": bits / len(rest)}
    for key, value in expected.items():
        found = record[key]
        spelled = unknown is not None and key.startswith("bits") and found > value
        wrong = Message("{key} on the validation split is {found:.6f}, but {value:.6f} if rows are read one at a time")
        require(spelled or _all_close([found], [value]), wrong.format(key=key, found=found, value=value))
    n = len(asked) + sum(len(batch.tokens) for batch in trained)
    return Message("so do splits, tokens, {n:,} examples, losses and scores of a small corpus of the same kind", n=n)


def _all_close(found: Sequence[float], expected: Sequence[float]) -> bool:
    pairs = zip(sorted(found), sorted(expected), strict=False)
    return len(found) == len(expected) and all(abs(a - b) <= CLOSE * max(1.0, abs(b)) for a, b in pairs)


# --- the run's own first batches


def text_on_disk(config: RunConfig, task: Task) -> str:
    """Return the text of a corpus's files, read a second way, with single spaces; "" if that is too much, or fails."""
    corpus = task.corpus
    if isinstance(corpus, TextCorpus) and isinstance(corpus.splits["train"], LargeSplit):
        return ""
    paths = [Path(part.strip()).expanduser() for part in corpus.source.split(",")]
    found = chain.from_iterable([path] if path.is_file() else islice(path.rglob("*"), MOST_FILES + 1) for path in paths)
    files = sorted(file for file in found if file.is_file())
    size = sum(file.stat().st_size * (PACKED if file.suffix in (*PACKED_SUFFIXES, ".parquet") else 1) for file in files)
    if size > MOST_BYTES or len(files) > MOST_FILES or any(file.suffix in ARCHIVES for file in files):
        return ""
    generated = (part for rows in rows_of(config, task).values() for row in rows for part in row)
    with suppress(OSError, EOFError, ValueError):  # another file of the folder
        read = (_file_text(file, corpus.reading.findings.encodings.get(file.name, "utf-8")) for file in files)
        return " ".join("\n".join(read if files else generated).split())
    return ""


def _file_text(file: Path, encoding: str) -> str:
    """Return the strings in a table's cells, or all of any other file."""
    if file.suffix == ".parquet":
        from pyarrow import parquet

        return "\n".join(_strings(parquet.read_table(file).to_pylist()))
    raw = file.read_bytes()
    raw = next((unpack(raw) for magic, unpack in UNPACK.items() if raw.startswith(magic)), raw)
    text = raw.decode(CODECS.get(encoding, encoding), "replace").removeprefix("\ufeff")
    with suppress(ValueError, csv.Error):  # another file of the folder
        if not {".json", ".jsonl", ".ndjson"}.isdisjoint(file.suffixes):
            whole = text.lstrip().startswith("[")
            rows = json.loads(text) if whole else [json.loads(line) for line in text.split("\n") if line.strip()]
            return "\n".join((*_strings(rows), text))
        if not {".csv", ".tsv"}.isdisjoint(file.suffixes):  # whatever separates the cells
            read = [csv.reader(io.StringIO(text, newline=""), delimiter=mark) for mark in ",;\t"]
            cells = "\n".join(" ".join(row) for rows in read for row in rows)
            return "\n".join((cells, text, text.replace('""', '"')))
    return text


def _strings(value: Any) -> Iterator[str]:
    """Yield all strings in a row of a table, and in the lists and objects in it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _strings(one)


def check_first_batches(config: RunConfig, task: Task, network: Network, cut: Callable[[Batch], Batch]) -> str:
    """Return what was compared of a run's first training and scoring batches, in words. Raise `Mismatch` if a row was
    made from a text that is not in the corpus's files, or if `network` gives it another loss when it is read alone.
    `cut` shortens a batch of long rows.
    """
    originals, cpu = ExampleInverter(config, task), torch.device("cpu")
    scorer = task.scorer(config, cpu)
    if isinstance(scorer, TextScorer):  # the first windows
        scorer = copy(scorer)
        scorer.tokens = scorer.tokens[: FIRST if config.task.continues else config.window_tokens]
    batches = {"training": task.batches(config, cpu).batch(1, 0)}
    first: dict[str, list[TokenRow]] = {}
    if config.task.continues:
        assert isinstance(scorer, TextScorer)
        first["validation"] = [*scoring_windows(config, scorer.tokens[:].tolist(), originals.end)]
        alone = [loss for one in first["validation"] for loss in nll_and_correctness(network, one)[0]]
        same = _all_close(scorer.token_scores(network).nll.tolist(), alone)
        require(same, Message("the scorer's losses differ from those of each window read alone"))
    else:
        batches["validation"] = next(iter(scorer.batches()))
    for split, batch in batches.items():
        few = next(batch.chunk(-(-len(batch.tokens) // AT_ONCE)))
        first[split] = [*unpadded_rows(config, few)]
        check_losses(config, cut(few), network)
    if text := text_on_disk(config, task):
        text = END_OF_TEXT + (text.lower() if config.data.lowercase else text)
    for split, row in [(split, row) for split, rows in first.items() for row in rows]:
        windows = config.task.continues and split == "validation"  # not all of their tokens are scored
        parts = (row.tokens,) if windows else originals(row)
        for side, ids in zip((task.tokenizer.target, task.tokenizer.source), parts[::-1], strict=False):
            for part in [] if config.task.corpus == "labelled" and ids is row.targets else _decoded_texts(side, ids):
                wrong = Message("a {split} example has text that is not in the corpus: {part}")
                require(not text or part in text, wrong.format(split=split, part=shorten(part)))
    found = Message("the first {n} examples and their losses match a second reading of the corpus")
    if not text:
        found = Message("the losses of the first {n} examples match those of each read alone")
    return found.format(n=sum(map(len, first.values())))


def _decoded_texts(tokenizer: Tokenizer, ids: Ids) -> list[str]:
    """Return the texts between unknown tokens and ends of documents, with single spaces."""
    runs = _split_at(ids, lambda token: token >= tokenizer.vocab_size or token == tokenizer.unknown)
    decoded = [tokenizer.decode(run).strip("\ufffd") for run in runs if run]
    return [text for run in decoded for part in MARK.split(run) if (text := " ".join(remove_tag(part).split()))]
