"""Initial weights: each parameter draws from a generator seeded by its name.

So variants that share a parameter's name and shape start it from the same numbers: paired comparisons depend on it.
Numbers are drawn on the CPU in fp32, so they are the same on every device.
"""

import math
from collections.abc import Callable

import torch
from torch import Generator, Tensor, nn

from engine.base.seeds import seed_for
from engine.config.model import ModelConfig

RESIDUAL_OUTPUTS = ("attention.output.weight", "feed_forward.output.weight")  # cross-attention's too
# Modules that start at zero, by `zero_init` (Goyal et al. 2017; Zhang et al. 2019).
ZERO_MODULES: dict[str, tuple[str, ...]] = {
    "none": (),
    "outputs": ("attention.output", "feed_forward.output"),
    "outputs-and-head": ("attention.output", "feed_forward.output", "head"),
}

# Fused projections stack several matrices, each initialised separately.
FUSED_PROJECTIONS: dict[str, Callable[[ModelConfig], list[int]]] = {
    "query_key_value.weight": lambda model: [model.d_model, model.kv_width, model.kv_width],
    "key_value.weight": lambda model: [model.kv_width, model.kv_width],
    "feed_forward.expand.weight": lambda model: [model.d_ff] * (model.ff_expanded_width // model.d_ff),
}


def fused_rows(model: ModelConfig, name: str) -> list[int]:
    """Return the rows of each matrix in a fused projection, by parameter name; [] for a single matrix."""
    return next((rows(model) for suffix, rows in FUSED_PROJECTIONS.items() if name.endswith("." + suffix)), [])


def _fill_matrix(weight: Tensor, name: str, model: ModelConfig, generator: Generator) -> None:
    if model.init == "xavier":  # Glorot and Bengio 2010
        fan_out, fan_in = weight.shape
        bound = math.sqrt(6.0 / (fan_in + fan_out))
        weight.uniform_(-bound, bound, generator=generator)
    elif model.init == "torch":  # its defaults: N(0, 1) for embeddings, U(±1/√fan_in) for linear layers
        if "embedding" in name or "table" in name:
            weight.normal_(0.0, 1.0, generator=generator)
        else:
            bound = 1.0 / math.sqrt(weight.shape[1])
            weight.uniform_(-bound, bound, generator=generator)
    else:
        std = model.init_std
        if model.init == "scaled-normal" and name.endswith(RESIDUAL_OUTPUTS):
            # GPT-2: the residual stream's variance grows with the number of branches that are added to it.
            branches = 2 * model.n_layers
            if model.architecture == "encoder-decoder":
                branches = 2 * model.encoder_layers if name.startswith("encoder.") else 3 * model.n_layers
            std = std / math.sqrt(branches)
        weight.normal_(0.0, std, generator=generator)


@torch.no_grad()
def initialise(network: nn.Module, model: ModelConfig, seed: int) -> None:
    """Fill every parameter: matrices as `model.init` says, norm gains 1, biases 0 (`torch`: its own small ones), and
    what a module's own `set_initial_values` sets.
    """
    zero = ZERO_MODULES[model.zero_init]
    linears = {name: module for name, module in network.named_modules() if isinstance(module, nn.Linear)}
    for name, parameter in network.named_parameters():
        generator = torch.Generator().manual_seed(seed_for(seed, "init", name))
        values = torch.zeros(parameter.shape, dtype=torch.float32)
        owner, _, leaf = name.rpartition(".")
        if name.endswith("norm.weight"):
            values.fill_(1.0)
        elif name in ("token_embedding.weight", "source_embedding.weight") and model.embedding_std is not None:
            values.normal_(0.0, model.embedding_std, generator=generator)
        elif owner.endswith(zero) or (name.endswith("positions.table.weight") and model.position_init == "zero"):
            pass
        elif parameter.dim() >= 2:
            for part in torch.split(values, fused_rows(model, name) or len(values)):
                _fill_matrix(part, name, model, generator)
        elif leaf == "bias" and model.init == "torch" and owner in linears:
            bound = 1.0 / math.sqrt(linears[owner].in_features)
            values.uniform_(-bound, bound, generator=generator)
        parameter.copy_(values)
    for module in network.modules():
        if callable(fill := getattr(module, "set_initial_values", None)):  # a module with initial values of its own
            fill()
