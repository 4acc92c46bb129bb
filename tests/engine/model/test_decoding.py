"""The linear maps of a step: laid out for a processor, they stay the network's own."""

from collections.abc import Iterator

import pytest
import torch

from engine.model.decoding import SPLIT, WORTH_SPLITTING, Predictor, _linear
from engine.model.transformer import build_model


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("long", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("outputs", [256, 8 * SPLIT + 1, 24])
@pytest.mark.parametrize("rows", [(1, 1), (1, 3, 1), (5, 1)], ids=str)
def test_a_map_is_the_same_however_it_is_laid_out(
    threads: int, rows: tuple[int, ...], outputs: int, bias: bool, long: bool
) -> None:
    torch.manual_seed(outputs)
    part = torch.nn.Linear(160, outputs, bias=bias)
    assert (part.weight.numel() >= WORTH_SPLITTING) == (outputs == 256)
    made = _linear(part, long)
    with torch.inference_mode():
        for n in rows:
            x = torch.randn(n, 160)
            assert torch.allclose(made(x), part(x), atol=1e-5)


@pytest.mark.parametrize("bias", ["true", "false"])
def test_large_networks_step_as_they_pass(tiny, threads: int, bias: str) -> None:
    config = tiny("model.d_model=192", "model.d_ff=768", "model.context_length=160", f"model.bias={bias}")
    model = build_model(config.model, 40, 1).eval()
    text = torch.randint(40, (1, 12), generator=torch.Generator().manual_seed(1))
    predictor = Predictor(model)
    predictor.begin(160)
    with torch.inference_mode():
        for t in range(text.shape[1]):
            stepped = predictor.feed(text[:, t : t + 1])
            assert torch.allclose(stepped, model(text[:, : t + 1])[:, -1], atol=1e-4), t
