"""Reading a text piece by piece gives, token for token, the same as reading it into memory."""

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.base.errors import InputError
from engine.base.progress import listening
from engine.config.sections import DataConfig
from engine.data import corpora, overlap, shards
from engine.data.baselines import bigram_loss, unigram_loss
from engine.data.catalogue import load_corpus
from engine.data.corpora import TextCorpus
from engine.data.large import LargeSplit, distinct_characters
from engine.data.loader import StoredTokens, TextBatches, occurrences, wrap_tokens
from engine.data.spelling import spelling_model_counts, split_spelling_model_counts
from engine.data.text_sizes import sizes_of
from engine.data.tokenizers import AnyTokenizer, BpeTokenizer, ByteTokenizer, CharacterTokenizer, TextWordTokenizer
from engine.data.tokenizers.bpe import cached_bpe_by_hash
from engine.tasks.text import NextTokenObjective, make_tokenizer
from engine.training.assemble import assemble
from tests.engine.training.test_resume import broken, whole

PROSE = "the fox and The dog's über die Straße  gegangen\n\n\t12 345, 狐狸 “sagt” nichts… 🦊 end.\n"
WORDS = PROSE.split(" ")
STREAM = [(1, 0), (2, 1), (500, 3)]


def text_of(characters: int, seed: int = 1) -> str:
    draw, words, length = random.Random(seed), [], 0
    while length < characters:
        words.append(draw.choice(WORDS) + draw.choice([" ", " ", " ", "\n", ""]))
        length += len(words[-1])
    return "".join(words)[:characters]


@pytest.fixture
def small(monkeypatch, tmp_path) -> None:
    """Everything counts as large, so that a little text shows what a lot would."""
    monkeypatch.setenv("TUI_TRANSFORMER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(corpora, "LARGE", 1000)
    monkeypatch.setattr(shards, "PART", 700)
    monkeypatch.setattr(shards, "SHARD", 3000)
    monkeypatch.setattr("engine.data.large.PART", 700)
    monkeypatch.setattr("engine.data.text_files.BLOCK", 611)


def written(folder: Path, text: str) -> Path:
    path = folder / "text.txt"
    path.write_bytes(text.encode())
    return path


def in_memory(path: Path, monkeypatch, **data: float) -> TextCorpus:
    with monkeypatch.context() as patch:
        patch.setattr(corpora, "LARGE", 1 << 40)
        return load_corpus(TextCorpus, DataConfig(corpus=str(path), **data))


def test_its_splits_are_those_of_the_whole_text(tmp_path, small, monkeypatch) -> None:
    path, fractions = written(tmp_path, text_of(20_000)), {"validation_fraction": 0.15, "test_fraction": 0.1}
    large = load_corpus(TextCorpus, DataConfig(corpus=str(path), **fractions))
    expected = in_memory(path, monkeypatch, **fractions)
    assert list(large.splits) == ["train", "validation", "test"] and large.sha256 == expected.sha256
    for split, part in large.splits.items():
        same = expected.splits[split]
        assert isinstance(part, LargeSplit) and (part.text, part.length) == (same.text, same.length)
        assert part.characters == same.characters == distinct_characters(same.text)
        assert part.head(100) == same.text[:100] and part.head(10**9) == same.text
        assert "".join(part.pieces(1234)) == same.text[1234:]
    assert large.overlaps() == expected.overlaps()
    assert large.preview(DataConfig(), "", 5) == expected.preview(DataConfig(), "", 5)
    described, same = large.describe(""), expected.describe("")
    assert described.lines == same.lines and described.examples == same.examples


@pytest.mark.parametrize("most", [50_000, 60])
def test_the_same_documents_and_lines_are_found_in_training(tmp_path, small, monkeypatch, most: int) -> None:
    monkeypatch.setattr(overlap, "MAX_UNITS", most)
    rows = [text_of(60 + n, n) for n in range(100)] * 5
    random.Random(1).shuffle(rows)
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"text": row}) + "\n" for row in rows))
    data = {"validation_fraction": 0.5}
    large = load_corpus(TextCorpus, DataConfig(corpus=str(path), **data))
    (found,) = large.overlaps()
    assert isinstance(large.splits["train"], LargeSplit) and [found] == in_memory(path, monkeypatch, **data).overlaps()
    assert found is not None and found.sampled is (most == 60) and found.documents <= most
    assert found.documents_seen > 0.8 * found.documents > 20 and found.lines_seen > 0.8 * found.lines > 20


def test_rows_of_a_table_are_split_and_read_alike(tmp_path, small, monkeypatch) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps({"text": text_of(50 + n, n)}) + "\n" for n in range(200)))
    large, expected = load_corpus(TextCorpus, DataConfig(corpus=str(path))), in_memory(path, monkeypatch)
    assert large.sha256 == expected.sha256
    tokenizer = BpeTokenizer.train([expected.splits["train"].text], 400)
    assert (large.splits["train"].tokens(tokenizer)[:] == tokenizer.encode(expected.splits["train"].text)).all()


def tokenizer_of(kind: str, text: str) -> AnyTokenizer:
    if kind == "characters":
        return CharacterTokenizer.from_texts([text])
    if kind == "bytes":
        return ByteTokenizer()
    if kind == "bpe":
        return BpeTokenizer.train([text], 500)
    return TextWordTokenizer.train(text + "<unk>" * (kind == "spaced words"), 20)


@pytest.mark.parametrize("kind", ["characters", "bpe", "bytes", "words", "spaced words"])
def test_tokens_and_batches_equal_those_of_the_whole_text(tmp_path, small, monkeypatch, tiny, kind: str) -> None:
    text = text_of(30_000)
    path, tokenizer = written(tmp_path, text), tokenizer_of(kind, text)
    found = load_corpus(TextCorpus, DataConfig(corpus=str(path))).splits["train"].tokens(tokenizer)
    whole = tokenizer.encode(in_memory(path, monkeypatch).splits["train"].text)
    assert len(found) == found.size == len(whole) and (found[:] == whole).all()
    assert (found[5:-7] == whole[5:-7]).all() and (found[3:9000:11] == whole[3:9000:11]).all() and not len(found[9:4])
    assert found.dtype == ("u2" if kind == "bpe" else "u1") and len(list(folder_of(tmp_path).iterdir())) > 8
    objective = NextTokenObjective(tiny(), tokenizer.vocab_size)
    for stride in (None, 5):
        ways = [
            TextBatches(wrap_tokens(tokens), objective, 4, 7, stride=stride, accumulation=4)
            for tokens in (found, whole)
        ]
        for step, micro in STREAM:
            one, other = (way.batch(step, micro) for way in ways)
            assert torch.equal(one.tokens, other.tokens) and torch.equal(one.targets, other.targets)
    stored = StoredTokens(found)
    assert torch.equal(stored.unfold(0, 17, 9), torch.from_numpy(whole).unfold(0, 17, 9))
    assert torch.equal(stored[7:99], torch.from_numpy(whole)[7:99]) and int(stored[4321]) == whole[4321]
    assert occurrences(stored, int(whole[7])) == (whole == whole[7]).sum() > 1
    size = tokenizer.vocab_size
    assert unigram_loss(stored.numpy(), stored.numpy(), size) == unigram_loss(whole, whole, size)
    assert bigram_loss(stored.numpy(), stored.numpy(), size) == bigram_loss(whole, whole, size)


def folder_of(folder: Path) -> Path:
    (found,) = (folder / "cache" / "shards").iterdir()
    return found


def shards_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder_of(folder).iterdir() if path.name[0].isdecimal()}


def test_a_text_is_cut_where_its_encoding_is(small) -> None:
    """However the pieces of a text come: the parts depend on the text alone."""
    text = text_of(20_000, 3)
    for kind in ("characters", "bpe", "bytes", "words", "spaced words"):
        tokenizer = tokenizer_of(kind, text)
        ways = [
            list(shards.encodable_parts([text[i : i + n] for i in range(0, len(text), n)], tokenizer))
            for n in (1, 999, 10**6)
        ]
        assert ways[0] == ways[1] == ways[2] and "".join(ways[0]) == text and len(ways[0]) > 20
        ids = np.concatenate([tokenizer.encode(part) for part in ways[0]])
        assert (ids == tokenizer.encode(text)).all()


def test_a_vocabulary_is_learned_in_one_pass_as_from_the_whole_text(tmp_path, small) -> None:
    text = text_of(30_000)
    split = load_corpus(TextCorpus, DataConfig(corpus=str(written(tmp_path, text)))).splits["train"]
    passes: list[int] = []

    def parts():
        passes.append(1)
        yield from shards.encodable_parts(split.pieces(), BpeTokenizer(()))

    found = cached_bpe_by_hash(split.sha256, parts(), 500)
    assert found.merges == BpeTokenizer.train([split.text], 500).merges and len(passes) == 1
    assert cached_bpe_by_hash(split.sha256, parts(), 500).merges == found.merges and len(passes) == 1  # kept


@pytest.mark.parametrize("unknown", ["", "<unk> "])
def test_words_are_counted_part_by_part_as_in_the_whole_text(tmp_path, small, monkeypatch, tiny, unknown: str) -> None:
    path = written(tmp_path, text_of(15_000) + unknown + text_of(15_000, 2))
    config = tiny(f"data.corpus={path}", "data.tokenizer=words", "data.words_size=30")
    large, whole = load_corpus(TextCorpus, config.data), in_memory(path, monkeypatch)
    assert isinstance(large.splits["train"], LargeSplit) and not isinstance(whole.splits["train"], LargeSplit)
    assert make_tokenizer(large, config).sha256 == make_tokenizer(whole, config).sha256
    assert make_tokenizer(whole, config).sha256 == TextWordTokenizer.train(whole.splits["train"].text, 30).sha256
    tokenizer = make_tokenizer(whole, config)
    monkeypatch.setattr("engine.data.spelling.MIN_CACHED_LENGTH", 0)
    for split, found in whole.splits.items():
        assert large.splits[split].text_sizes == found.text_sizes == sizes_of(found.text.encode())
        for _ in range(2):  # the second time from the cache
            left_open = split_spelling_model_counts(large.splits[split], tokenizer)
            assert (left_open == spelling_model_counts(found.text, tokenizer)).all() and left_open.any()


def test_a_text_without_a_place_to_cut_is_encoded_at_once(small) -> None:
    tokenizer = BpeTokenizer.train(["abcabc" * 50], 270)
    assert tokenizer.last_cut("abc" * 3000) == 0
    assert list(shards.encodable_parts(["abc"] * 3000, tokenizer)) == ["abc" * 3000]


class Killed(BaseException):
    pass


def test_encoding_goes_on_after_the_last_whole_shard(tmp_path, small) -> None:
    text = text_of(30_000)
    tokenizer = tokenizer_of("bpe", text)
    split = load_corpus(TextCorpus, DataConfig(corpus=str(written(tmp_path, text)))).splits["train"]
    whole, kept = split.tokens(tokenizer)[:], shards_in(tmp_path)
    for path in folder_of(tmp_path).iterdir():
        path.unlink()
    starts = []

    def killing(what: str, share: float, left: float | None) -> None:
        starts.append(share)
        if len(starts) % 6 == 0:
            raise Killed

    while shards_in(tmp_path) != kept:
        try:
            with listening(killing):
                split.tokens(tokenizer)
        except Killed:
            continue
    assert len(starts) > 30 and sum(a >= b for a, b in pairwise(starts)) > 3
    assert (split.tokens(tokenizer)[:] == whole).all()


def test_a_damaged_shard_is_made_again_and_those_before_it_are_not(tmp_path, small) -> None:
    text = text_of(30_000)
    tokenizer = tokenizer_of("bpe", text)
    split = load_corpus(TextCorpus, DataConfig(corpus=str(written(tmp_path, text)))).splits["train"]
    whole, kept = split.tokens(tokenizer)[:], shards_in(tmp_path)
    names = sorted(kept)
    for damage in (b"", b"short", kept[names[4]][:-1] + b"x", kept[names[4]][2:]):
        (folder_of(tmp_path) / names[4]).write_bytes(damage)
        first = (folder_of(tmp_path) / names[0]).stat().st_mtime_ns
        assert (split.tokens(tokenizer)[:] == whole).all() and shards_in(tmp_path) == kept
        assert (folder_of(tmp_path) / names[0]).stat().st_mtime_ns == first


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_in_place_of_a_shard_is_replaced_without_waiting(tmp_path, small) -> None:
    text = text_of(30_000)
    tokenizer = tokenizer_of("characters", text)
    split = load_corpus(TextCorpus, DataConfig(corpus=str(written(tmp_path, text)))).splits["train"]
    whole, kept = split.tokens(tokenizer)[:], shards_in(tmp_path)
    first = folder_of(tmp_path) / min(kept)
    first.unlink()
    os.mkfifo(first)
    os.mkfifo(folder_of(tmp_path) / "00000.new")
    assert (split.tokens(tokenizer)[:] == whole).all() and shards_in(tmp_path) == kept


def test_a_text_that_changed_is_looked_through_again(tmp_path, small) -> None:
    text = text_of(9000)
    path = written(tmp_path, text)
    before = load_corpus(TextCorpus, DataConfig(corpus=str(path))).sha256
    assert load_corpus(TextCorpus, DataConfig(corpus=str(path))).sha256 == before
    path.write_bytes(text.replace("fox", "ox?").encode())
    assert load_corpus(TextCorpus, DataConfig(corpus=str(path))).sha256 != before


@pytest.mark.parametrize("raw", [b" \n" * 900, b"text \x00" * 300, "Grüße".encode("latin-1") * 400])
def test_a_large_file_that_is_no_text_is_refused(tmp_path, small, raw: bytes) -> None:
    (tmp_path / "text.txt").write_bytes(raw)
    with pytest.raises(InputError, match="text.txt"):
        load_corpus(TextCorpus, DataConfig(corpus=str(tmp_path / "text.txt")))


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path, small) -> None:
    text = text_of(9000)
    split = load_corpus(TextCorpus, DataConfig(corpus=str(written(tmp_path, text)))).splits["train"]
    (tmp_path / "cache" / "shards").write_text("in the way")
    with pytest.raises(InputError, match="shards.*cannot be written"):
        split.tokens(tokenizer_of("characters", text))


def test_its_progress_is_told(tmp_path, small) -> None:
    text, told = text_of(30_000), []
    with listening(lambda what, share, left: told.append((what, share))):
        split = load_corpus(TextCorpus, DataConfig(corpus=str(written(tmp_path, text)))).splits["train"]
        split.tokens(tokenizer_of("characters", text))
    steps = {what: [share for name, share in told if name == what] for what, _ in told}
    assert list(steps) == ["counting the characters in text.txt", "scanning text.txt", "encoding text.txt"]
    assert all(shares == sorted(shares) and shares[-1] == 1.0 for shares in steps.values())


@pytest.mark.usefixtures("no_self_check")
@pytest.mark.parametrize("kind", ["characters", "bpe", "words", "bytes"])
def test_a_run_on_a_large_text_is_the_run_on_the_text_in_memory(tmp_path, small, monkeypatch, tiny, kind: str) -> None:
    asked = (f"data.tokenizer={kind}", *(["data.bpe_size=300"] if kind == "bpe" else []))
    path = written(tmp_path, text_of(30_000))
    losses = []
    for large in (1000, 1 << 40):
        monkeypatch.setattr(corpora, "LARGE", large)
        ready = assemble(
            tiny(f"data.corpus={path}", *asked), runs_dir=tmp_path / f"runs-{large}", name="a", device="cpu"
        )
        assert len(list((tmp_path / "cache" / "shards").iterdir())) == 2  # training and validation text, once
        ready.trainer.run()
        losses.append((ready.path / "metrics.jsonl").read_text())
        losses[-1] = [{k: v for k, v in json.loads(line).items() if "loss" in k} for line in losses[-1].splitlines()]
    assert losses[0] == losses[1] and len(losses[0]) > 4


@pytest.mark.usefixtures("no_self_check")
def test_training_on_a_large_text_resumes_bit_for_bit(tmp_path, small, tiny) -> None:
    config = tiny(f"data.corpus={written(tmp_path, text_of(30_000))}")
    straight, listened = whole(config, tmp_path / "runs")
    for n in (listened // 3, listened - 2):
        assert broken(config, tmp_path / "runs", n) == straight


# --- a gigabyte

CHILD = """
import resource, sys
from engine.config.sections import DataConfig
from engine.data.catalogue import load_corpus
from engine.data.corpora import TextCorpus
from engine.data.tokenizers import CharacterTokenizer
splits = load_corpus(TextCorpus, DataConfig(corpus=sys.argv[1], validation_fraction=0.0005)).splits
tokenizer = CharacterTokenizer(sorted(set().union(*(split.characters for split in splits.values()))))
print(*(len(split.tokens(tokenizer)) for split in splits.values()))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_a_gigabyte_is_encoded_in_bounded_memory_and_survives_ten_kills(tmp_path, tiny, monkeypatch) -> None:
    """Training from it then resumes bit for bit."""
    path = tmp_path / "big.txt"
    block = text_of(4_000_000).encode()
    with path.open("wb") as file:
        while file.tell() < 1_000_000_000:
            file.write(b"%d\n" % file.tell() + block)

    def begun(cache: str) -> subprocess.Popen[bytes]:
        where = os.environ | {"TUI_TRANSFORMER_CACHE": str(tmp_path / cache)}
        return subprocess.Popen([sys.executable, "-c", CHILD, str(path)], env=where, stdout=subprocess.PIPE)

    def kept(cache: str) -> list[Path]:
        return shards_of(tmp_path / cache)

    clock = time.monotonic()
    child = begun("one")
    out = child.communicate()[0].split()
    took = time.monotonic() - clock
    characters, resident = int(out[0]) + int(out[1]), int(out[2]) / 1024**2  # in GiB
    print(f"{characters:,} tokens in {took:.0f} s, {resident:.2f} GiB resident")
    assert child.returncode == 0 and resident * 1024**3 <= 1.2e9
    draw, moments = random.Random(1), []
    for kill in range(10):
        before = len(kept("other"))
        child = begun("other")
        if kill == 0:
            time.sleep(took / 8)  # while the text is looked through
        else:
            while len(kept("other")) == before and child.poll() is None:
                time.sleep(0.02)
            time.sleep(draw.uniform(0.0, 0.4))
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
        moments.append(len(kept("other")))
    print(f"killed with {moments} of {len(kept('one'))} shards")
    assert begun("other").wait() == 0
    one, other = digests(tmp_path / "one"), digests(tmp_path / "other")
    assert one == other and len(one) > 10
    monkeypatch.setenv("TUI_TRANSFORMER_CACHE", str(tmp_path / "other"))
    config = tiny(f"data.corpus={path}", "data.validation_fraction=0.0005")
    straight, listened = whole(config, tmp_path / "runs")
    assert broken(config, tmp_path / "runs", listened // 2) == straight
    assert digests(tmp_path / "other") == one
    shutil.rmtree(tmp_path)  # gigabytes, which would be kept for a while


def digests(cache: Path) -> dict[str, str]:
    found = {}
    for path in shards_of(cache):
        with path.open("rb") as file:
            found[str(path.relative_to(cache))] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def shards_of(cache: Path) -> list[Path]:
    return [path for path in cache.glob("shards/*/*") if path.name[0].isdecimal()]
