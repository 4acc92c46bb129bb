"""Position schemes: what tells a Transformer where a token stands.

A scheme gives some of `embed`, `rotate`, `bias` and `content`, all on ABSOLUTE positions, so that cached decoding is
right by construction. Notation: B batch, N ∈ {1, B}, T time, H heads, D model width, Dh head width.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from engine.config.schema import ModelConfig


def angle_dtype(device: torch.device) -> torch.dtype:
    """The dtype of angles: float64, so that far positions keep their precision, but on MPS, which has none."""
    return torch.float32 if device.type == "mps" else torch.float64


class PositionScheme(nn.Module):
    """No positions at all: the scheme `none`, and the base of the others.

    Kazemnejad et al. 2023 show that causal decoders can still tell order from the mask alone.
    """

    scale: float | None = None
    """Factor of the attention score; None means 1 / √Dh."""
    longest: int | None = None
    """Positions that exist, for schemes with a table; None means no limit."""

    def embed(self, pos: Tensor) -> Tensor | None:
        """What is added to the token embeddings before the first layer: (N, T) → (N, T, D)."""
        return None

    def rotate(self, x: Tensor, pos: Tensor) -> Tensor:
        """Queries or keys (B, H, T, Dh) turned by their positions (N, T); keys before they are cached."""
        return x

    def bias(self, q_pos: Tensor, k_pos: Tensor) -> Tensor | None:
        """What is added to the scaled scores: (N, Tq), (N, Tk) → (N, H, Tq, Tk)."""
        return None

    def content(self, q: Tensor, k: Tensor, q_pos: Tensor, k_pos: Tensor) -> Tensor | None:
        """What is added to the scores before scaling, from queries and keys: → (B, H, Tq, Tk)."""
        return None


class Sinusoidal(PositionScheme):
    """Fixed sines and cosines, interleaved (Vaswani et al. 2017, §3.5).

    PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos(pos / 10000^(2i/D)).
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model

    def embed(self, pos: Tensor) -> Tensor:
        """(N, T) → (N, T, D)."""
        dtype = angle_dtype(pos.device)
        even = torch.arange(0, self.d_model, 2, device=pos.device, dtype=dtype)
        angle = pos[..., None].to(dtype) * 10_000.0 ** (-even / self.d_model)  # (N, T, D/2)
        return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)


class Learned(PositionScheme):
    """One learned vector per position (Gehring et al. 2017; GPT). Nothing exists past `longest`."""

    def __init__(self, longest: int, d_model: int) -> None:
        super().__init__()
        self.longest = longest
        self.table = nn.Embedding(longest, d_model)

    def embed(self, pos: Tensor) -> Tensor:
        """(N, T) → (N, T, D); an empty slot (−1) takes row 0, which nobody sees."""
        found: Tensor = self.table(pos.clamp(min=0))
        return found


class Rope(PositionScheme):
    """Rotary embedding: feature pairs of q and k turn by pos · θ_i (Su et al. 2021, RoFormer, eq. 15).

    θ_i = base^(−2i / Dh). The pairing is a convention that weights depend on: `half` pairs feature i with i + Dh/2
    (GPT-NeoX, LLaMA in transformers), `adjacent` pairs 2i with 2i + 1 (the paper).
    """

    def __init__(self, head_width: int, base: float, pairing: str) -> None:
        super().__init__()
        self.head_width, self.base, self.pairing = head_width, base, pairing
        self._turn: tuple[Tensor, torch.dtype, Tensor, Tensor] | None = None

    def rotate(self, x: Tensor, pos: Tensor) -> Tensor:
        """(B, H, T, Dh), (N, T) → (B, H, T, Dh), same dtype."""
        cos, sin = self._cos_sin(pos, torch.promote_types(x.dtype, torch.float32))  # (N, 1, T, Dh/2)
        if self.pairing == "half":
            a, b = x.chunk(2, dim=-1)
            turned = torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)
        else:
            a, b = x[..., 0::2], x[..., 1::2]
            turned = torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2)
        return turned.to(x.dtype)

    def _cos_sin(self, pos: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        # All layers of one forward pass hand in the very same positions: turn the angles once. Not kept from
        # inference mode, whose tensors may not enter a later training step.
        if self._turn is not None and self._turn[0] is pos and self._turn[1] == dtype:
            return self._turn[2], self._turn[3]
        exact = angle_dtype(pos.device)
        even = torch.arange(0, self.head_width, 2, device=pos.device, dtype=exact)
        angle = pos[:, None, :, None].to(exact) * self.base ** (-even / self.head_width)
        cos, sin = angle.cos().to(dtype), angle.sin().to(dtype)
        if not cos.is_inference():
            self._turn = (pos, dtype, cos, sin)
        return cos, sin


def make_schemes(model: ModelConfig, n_layers: int) -> list[PositionScheme]:
    """One scheme a layer; the same object where the paper shares it between layers."""
    builders: dict[str, Callable[[], PositionScheme]] = {
        "none": PositionScheme,
        "sinusoidal": lambda: Sinusoidal(model.d_model),
        "learned": lambda: Learned(model.context_length, model.d_model),
        "rope": lambda: Rope(model.head_width, model.rope_base, model.rope_pairing),
    }
    shared = builders[model.position]()
    return [shared] * n_layers
