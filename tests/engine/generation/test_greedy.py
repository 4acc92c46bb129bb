"""Greedy streaming, and where the decoder looked: the weights are those that the model's own output is made of."""

import pytest
import torch

from engine.data.tokenizers import CharacterTokenizer, PairTokenizer
from engine.generation.inspection import attention_layers, record_cross_attention
from engine.generation.translation import Translator
from tests.engine.generation.writers import CELLS, NAMES, SOURCES, SPECIALS, TEXT, writer
from tests.engine.model.cells import BASE

LETTERS = CharacterTokenizer("abcdefgh"[:TEXT])
SENTENCES = [LETTERS.decode(source) for source in SOURCES.tolist()]


def translator(model) -> Translator:
    config = BASE.model_copy(update={"model": model.config})
    return Translator(model, PairTokenizer(LETTERS, LETTERS), config)


def read(model, sentence: str) -> torch.Tensor:
    return torch.from_numpy(translator(model).prompt(sentence).source)


def align(model, source, target, *, start, layer=-1, head=None):
    """(T, S) where the decoder looks while it reads a given translation in one pass."""
    if target.numel() == 0:
        return torch.zeros(0, source.numel())
    read = torch.cat((target.new_tensor([start]), target[:-1]))
    with torch.inference_mode(), record_cross_attention(model, layer) as weights:
        model(source[None], read[None])
        found = weights[0][0].mean(0) if head is None else weights[0][0][head]
        return found.float()


@pytest.fixture(params=CELLS, ids=NAMES)
def model(request):
    return writer(request.param)


def test_streaming_writes_what_a_beam_of_1_finds(model) -> None:
    writes = translator(model)
    for sentence, [best] in zip(SENTENCES, writes.translate(writes.encode(SENTENCES)), strict=True):
        written, limit = list(writes.stream(sentence)), writes.max_length(len(read(model, sentence)))
        assert "".join(piece for piece, *_ in written) == best.text
        assert tuple(one.token for _, one, _ in written) == best.hypothesis.tokens
        assert [one.probability for _, one, _ in written] == pytest.approx(best.hypothesis.chances)
        assert (len(written) == limit) == (not best.hypothesis.finished)


def test_what_is_shown_while_streaming_is_the_alignment_of_the_whole(model) -> None:
    written, source = list(translator(model).stream(SENTENCES[1])), read(model, SENTENCES[1])
    tokens = torch.tensor([one.token for _, one, _ in written], dtype=torch.long)
    rows = align(model, source, tokens, start=SPECIALS.start)
    assert rows.shape == (len(written), len(source))
    assert torch.allclose(rows, torch.tensor([looked for *_, looked in written]).view_as(rows), atol=1e-6)
    assert torch.allclose(rows.sum(-1), torch.ones(len(written)), atol=1e-5)


def test_captured_weights_make_the_models_own_output() -> None:
    """weights · values, joined and projected, is what the layer gave: they are no picture of something else."""
    model, target = writer(CELLS[3]), SOURCES[:, :5]
    part, given, made = attention_layers(model, "cross")[1], [], []

    def keep(module, inputs, output) -> None:
        given.append(inputs)
        made.append(output)

    hook = part.register_forward_hook(keep)
    with torch.no_grad(), record_cross_attention(model, 1) as weights:
        model(SOURCES, target)
    hook.remove()
    _, _, (_, values), _ = given[0]
    mixed = (weights[0] @ values).transpose(1, 2).reshape(made[0].shape)
    assert (part.output(mixed) - made[0]).abs().max() <= 1e-12
    assert weights[0].shape == (4, 2, 5, SOURCES.shape[1])


def test_nothing_is_left_on_the_model() -> None:
    model = writer()
    list(translator(model).stream(SENTENCES[0]))
    with pytest.raises(RuntimeError), record_cross_attention(model, 0):
        raise RuntimeError
    assert not any(module._forward_hooks for module in model.modules())


def test_the_mean_of_the_heads_is_their_mean_and_layers_differ() -> None:
    model, target = writer(), torch.tensor([1, 2, 3])
    heads = [align(model, SOURCES[0], target, start=SPECIALS.start, head=head) for head in (0, 1)]
    mean = align(model, SOURCES[0], target, start=SPECIALS.start)
    assert torch.allclose(mean, (heads[0] + heads[1]) / 2) and not torch.allclose(*heads)
    assert torch.equal(mean, align(model, SOURCES[0], target, start=SPECIALS.start, layer=1))
    assert not torch.allclose(mean, align(model, SOURCES[0], target, start=SPECIALS.start, layer=0))


def test_no_target_has_no_alignment() -> None:
    assert align(writer(), SOURCES[0], torch.zeros(0, dtype=torch.long), start=SPECIALS.start).shape == (0, 14)
