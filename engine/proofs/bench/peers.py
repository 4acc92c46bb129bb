"""The same network from other libraries, trained by the same loop, for comparison.

Each is imported on demand; all get fused AdamW and the same clipping, batches and precision.
"""

import importlib.util
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.base.errors import InputError, join_or
from engine.base.language import Message
from engine.config.schema import RunConfig
from engine.data.loader import BatchStream
from engine.model.numerics import autocast


class TorchDecoder(nn.Module):
    def __init__(self, config: RunConfig, vocab_size: int) -> None:
        super().__init__()
        model, d, p = config.model, config.model.d_model, config.model.dropout
        self.embedding = nn.Embedding(vocab_size, d)
        self.positions = nn.Embedding(model.context_length, d)
        self.dropout = nn.Dropout(p)
        layer = nn.TransformerEncoderLayer(d, model.n_heads, model.d_ff, p, "gelu", batch_first=True, norm_first=True)
        self.stack = nn.TransformerEncoder(layer, model.n_layers, nn.LayerNorm(d), enable_nested_tensor=False)
        self.head = nn.Linear(d, vocab_size, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:  # (B, T) → (B, T, V)
        length = tokens.shape[1]
        x = self.dropout(self.embedding(tokens) + self.positions.weight[:length])
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=tokens.device)
        logits: Tensor = self.head(self.stack(x, mask=mask, is_causal=True))
        return logits


def gpt2(config: RunConfig, vocab_size: int) -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    model, p = config.model, config.model.dropout
    made = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=vocab_size,
            n_positions=model.context_length,
            n_embd=model.d_model,
            n_layer=model.n_layers,
            n_head=model.n_heads,
            n_inner=model.d_ff,
            resid_pdrop=p,
            embd_pdrop=p,
            attn_pdrop=p,
            bos_token_id=None,
            eos_token_id=None,
            pad_token_id=None,
        )
    )
    made.config.use_cache = False
    made.set_attn_implementation("sdpa")
    return made


class _Logits(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, tokens: Tensor) -> Tensor:  # (B, T) → (B, T, V)
        logits: Tensor = self.inner(tokens).logits
        return logits


def _x_transformers(config: RunConfig, vocab_size: int) -> nn.Module:
    from x_transformers import Decoder, TransformerWrapper

    model = config.model
    layers = Decoder(
        dim=model.d_model,
        depth=model.n_layers,
        heads=model.n_heads,
        attn_dim_head=model.head_width,
        attn_dropout=model.dropout,
        ff_dropout=model.dropout,
        ff_mult=model.d_ff // model.d_model,
        attn_flash=True,
    )
    made: nn.Module = TransformerWrapper(
        num_tokens=vocab_size, max_seq_len=model.context_length, emb_dropout=model.dropout, attn_layers=layers
    )
    return made


# Writes (B, 1) tokens after (B, 1), T times: sampled as ours are, unless greedy.
Writes = Callable[[Tensor, int], None]


def _transformers_writer(config: RunConfig, vocab_size: int, device: torch.device) -> Writes:
    model, how = gpt2(config, vocab_size).to(device).eval(), config.generation

    def write(tokens: Tensor, length: int) -> None:
        past = None
        for _ in range(length):
            out = model(tokens, past_key_values=past, use_cache=True)
            past = out.past_key_values
            likeliest = out.logits[:, -1].topk(how.top_k)
            drawn = torch.multinomial((likeliest.values / how.temperature).softmax(-1), 1)
            tokens = likeliest.indices.gather(1, drawn)

    return write


def _x_transformers_writer(config: RunConfig, vocab_size: int, device: torch.device) -> Writes:
    from x_transformers import AutoregressiveWrapper

    model, how = AutoregressiveWrapper(_x_transformers(config, vocab_size)).to(device).eval(), config.generation

    def write(tokens: Tensor, length: int) -> None:
        model.generate(tokens, length, temperature=how.temperature, filter_kwargs={"k": how.top_k}, cache_kv=True)

    return write


WRITERS: dict[str, Callable[[RunConfig, int, torch.device], Writes]] = {
    "transformers": _transformers_writer,
    "x-transformers": _x_transformers_writer,
}

PEERS: dict[str, tuple[str, Callable[[RunConfig, int], nn.Module]]] = {
    "transformers": ("transformers", lambda config, vocab_size: _Logits(gpt2(config, vocab_size))),
    "x-transformers": ("x_transformers", _x_transformers),
    "torch": ("torch", TorchDecoder),
}


def require_peer(name: str) -> None:
    if name not in PEERS:
        text = Message("--{option} '{name}': must be {known}", option="against", name=name[:40], known=join_or(PEERS))
        raise InputError(text)
    if importlib.util.find_spec(PEERS[name][0]) is None:
        raise InputError(Message("--against {name}: not installed; pip install 'tui-transformer[bench]'", name=name))


def installed_peers() -> tuple[str, ...]:
    return tuple(name for name, (module, _) in PEERS.items() if importlib.util.find_spec(module) is not None)


def peer(name: str, config: RunConfig, vocab_size: int, device: torch.device) -> nn.Module:
    _, build = PEERS[name]
    return build(config, vocab_size).to(device).train()


def bare_training_step(
    model: nn.Module, config: RunConfig, batches: BatchStream, precision: str, device: torch.device
) -> Callable[[], int]:
    """Return a bare loop's step over any network: forward, backward, clip, update; it returns its tokens."""
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, fused=True)
    done = 0

    def step() -> int:
        nonlocal done
        done += 1
        batch = batches.batch(done, 0)
        optimizer.zero_grad(set_to_none=True)
        with autocast(precision, device):
            logits = model(*batch.inputs).float()
        loss = F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten())
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(parameters, config.train.clip)
        optimizer.step()
        return batch.n_targets

    return step
