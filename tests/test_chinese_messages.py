"""No English word is left in a Chinese message, but what is called so in every language."""

import re

import pytest
from babel.messages.pofile import read_po

from tests.tui_transformer.studio.test_in_chinese import WORD, known, named
from tui_transformer.catalogues import FOLDER

AS_TYPED = re.compile(  # code, formulas, quotations, where links lead, gaps, options, commands, settings, papers
    r"`[^`\n]*`|\$[^$\n]*\$"
    r"|'[^'\n]*'|\"[^\"\n]*\"|https?://\S+|\{[^}]*\}|<[^>]*>|\[[\w|]+\]|--[\w-]+(?:[ =][\w@:./-]+)?"
    r"|(?:^|(?<=[^\w]))/[a-z]+|[\w.]+ ?[=<>]=? ?\S+|(?<![\w-])-[A-Za-z]\b|\b\w+(?:\.\w+)+\b|hf:\S+"
    r"|\b[A-Z]\w+(?: et al\.| and [A-Z]\w+)?(?: |（)\d{4}"
)
EXAMPLES = ("to be or not", "Where was NAME born?", "I see. → Ich sehe.", "→ London")  # of English texts
# Programs and systems; networks, people and units; what is typed; settings and fields of files.
CALLED_SO = """
    Apple DistributedDataParallel Face Hugging Hub LLaMA Live Llama Parquet PyTorch Python Ray Slurm TeX ctex gpu
    Windows huggingface_hub mlflow mps pip pyarrow pid sbatch shell squeue tabular transformers triton wandb
    x-transformers ray ssh slurm cuda local installed zip stdout stderr jsonl parquet csv tsv txt svg
    https MaxArraySize issue docid id surrogate cd bash scripts sync ui tr install
    Gemma Lion Nesterov SiLU Tatoeba YaRN minGPT chrF FLOPs KiB MiB Flickr alpha ln log² logits sigmoid swish tanh ms
    char-rnn karpathy dev2010 tst2010 tst2013 h50m h30m
    average best ema last category class label params state badge variant run de en zh evaluation memory sampling studio
    trainer training bench examples export doctor fetch measure-study node1 node2 reports recall beam nbest n_best train
    validation test old tag
    architecture data model objective backend base changes expect from preset stages variants schema extends input lr
    causal spaced model_type
    LayerScale bind bracket configs counter far first near nll results rhyme runs sacreBLEU src zh-Hans
"""
NAMES = {*CALLED_SO.split()}


def chinese() -> list[str]:
    with (FOLDER / "zh" / "LC_MESSAGES" / "messages.po").open("rb") as file:
        every = read_po(file, locale="zh")
    texts = [one.string if isinstance(one.string, tuple) else (one.string,) for one in every if one.id]
    return [text for some in texts for text in some]


def english(text: str, names: set[str]) -> list[str]:
    """The words of a message that are neither names, nor typed as they are, nor placeholders in capitals."""
    for example in EXAMPLES:
        text = text.replace(example, "·")
    words = (word[0].strip(".-+") for word in WORD.finditer(AS_TYPED.sub("·", text)))
    return [word for word in words if not (word.isupper() or known(word, names, cut=False))]


@pytest.fixture(scope="module")
def names() -> set[str]:
    return named() | NAMES


def test_no_message_has_an_english_word(names) -> None:
    wrong = {text: found for text in chinese() if (found := english(text, names))}
    assert not wrong, wrong


def test_every_name_is_needed() -> None:
    names = named()
    used = {word for text in chinese() for word in english(text, names)}
    assert not NAMES - used, sorted(NAMES - used)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("训练 {n} steps", ["steps"]),
        ("请用 --set train.steps=100", []),
        ("Reading 运行文件夹", ["Reading"]),
        ("同 Vaswani et al. 2017", []),
    ],
)
def test_english_words_are_found_in_a_message(text, found, names) -> None:
    assert english(text, names) == found
