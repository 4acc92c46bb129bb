"""Models without a model: what the Playground asks of one, answered from a text. No torch."""

import math
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from engine.base.errors import InputError
from engine.generation.output import Alternative, AnswerToken, BeamResult, FullAnswer, ScoredText
from tests.waiting import PATIENCE
from tui_transformer.lab.play.prompt import Settings
from tui_transformer.lab.play.written import AttentionView

PLAY = " is barred, and none\nshall pass before the moon hath set.\nANTONIO: Then let us wait, my lord.\n"
WIDE = "门已关上，无人可过。🌙 月亮落下之前\nこんにちは世界 👩‍🚀 é café 한국어 🇩🇪\n"
POISON = "\x1b[2J\x9b31m\u202eevil\x07 [red]not markup[/red]\x00"


def chance(at: int) -> float:
    """A probability that looks like one, the same each time."""
    return 0.5 + 0.5 * math.sin(at * 12.9898) if at % 7 else 0.004


def piece(text: str, at: int) -> AnswerToken:
    p = chance(at)
    others = sorted([(text, p), ("e", 0.31), (" ", 0.12), ("\n", 0.05), ("x", 0.001)], key=lambda one: -one[1])
    return AnswerToken(text, p, min(1.0, p * 1.2), tuple(Alternative(t, q, 0.0 if q < 0.01 else q) for t, q in others))


class FakeWriter:
    """Writer one text, again and again; reads any.

    Args:
        name: of the run.
        step: of the checkpoint.
        text: what it writes.
        kind: "next-token", "masked", "copy", "translation" or "question-answer".
        gate: waits for it before each token but the first `free`.
        prompts: to try; the Playground writes from the first by itself.
    """

    def __init__(
        self,
        name: str = "win16",
        step: int = 2000,
        text: str = PLAY,
        kind: str = "next-token",
        gate: threading.Event | None = None,
        linear: bool = False,
        free: int = 1,
        prompts: tuple[str, ...] = (),
    ) -> None:
        self.name, self.step, self.text, self.kind, self.gate, self.linear = name, step, text, kind, gate, linear
        self.free, self._prompts = free, prompts
        self.defaults: Settings = {"temperature": 0.8, "top_k": 40, "top_p": 1.0, "seed": 1, "length": 90}
        self.asked: list[tuple[str, Settings]] = []
        self.to = ""

    @property
    def continues(self) -> bool:
        return self.kind == "next-token"

    @property
    def ranks_answers(self) -> bool:
        return self.kind == "question-answer"

    @property
    def beam_settings(self) -> Settings:
        return {"beam": 1, "nbest": 1, "alpha": 0.6} if self.kind == "translation" else {}

    def search(
        self, text: str, settings: Settings, between: Callable[[], None] = lambda: None
    ) -> tuple[BeamResult, ...]:
        self._check(text)
        self.asked.append((text, dict(settings)))
        while self.gate is not None and not self.gate.wait(0.01):
            between()
        how = self.beam_settings | settings
        beam, n_best = int(how["beam"]), int(how["nbest"])
        if n_best > beam:
            raise InputError(f"/nbest {n_best}: more than a beam of {beam} can give")
        words = [f"answer {n} of {beam}" for n in range(1, n_best + 1)]
        return tuple(BeamResult(tuple(piece(c, at) for at, c in enumerate(w)), -n / 2) for n, w in enumerate(words, 1))

    @property
    def invitation(self) -> str:
        return {"next-token": "type some text to continue", "masked": "type a text with a _ for each gap"}.get(
            self.kind, "type a source text"
        )

    @property
    def attention_kinds(self) -> tuple[str, ...]:
        return ("self", "cross", "encoder") if self.kind == "copy" else ("self",)

    def prompts(self) -> tuple[str, ...]:
        return self._prompts

    def attention_layer_and_head_counts(self, which: str) -> tuple[int, int]:
        return 2, 4

    def set_target(self, language: str) -> None:
        self.to = language

    def length_warning(self, text: str, settings: Settings) -> str:
        wanted = len(text) + int(settings["length"])
        return f"the model was trained on 128 tokens at a time, but you asked for {wanted}" if wanted > 128 else ""

    def stream(
        self, text: str, settings: Settings, answer_index: int = 0, alternatives: int = 0
    ) -> Iterator[AnswerToken]:
        self._check(text)
        self.asked.append((text, dict(settings)))
        for at in range(int(settings["length"])):
            if self.gate is not None and at >= self.free:
                assert self.gate.wait(PATIENCE), "nobody opened the gate"
            yield piece(self.text[(at + int(settings["seed"]) - 1) % len(self.text)], at)

    def _check(self, text: str) -> None:
        if "Ω" in text:
            raise InputError("this model has never seen '\\u03a9' (U+03A9); it knows 64 characters: abc")

    def answer_and_likeliest_others(self, text: str, written: str, others: int) -> tuple[FullAnswer, ...]:
        return (FullAnswer(written, 0.83), FullAnswer("Arlow", 0.1), FullAnswer("Corvik", 0.02))[: 1 + others]

    def surprise(self, text: str, alternatives: int = 0) -> ScoredText:
        self._check(text)
        if self.kind == "masked":
            raise InputError("surprise: this model fills gaps that it sees from both sides")
        pieces = tuple(AnswerToken(text[0]) if at == 0 else piece(c, at) for at, c in enumerate(text))
        return ScoredText(pieces, tuple(one.nats for one in pieces), "", "each character given those before it")

    def attention(self, text: str, written: str, layer: int, head: int, which: str = "self") -> AttentionView:
        if self.linear:
            raise InputError("attention: linear attention has no weights to show; it sums keys and values")
        if layer > 2 or head > 4:
            raise InputError(f"layer {layer}: this network has layers 1 to 2")
        queries = tuple(written if which == "cross" else text if which == "encoder" else (text + written)[-128:])
        keys = tuple(text) if which == "cross" else queries
        q, k = np.arange(len(queries))[:, None], np.arange(len(keys))[None]
        visible = np.ones((len(queries), len(keys)), bool) if which != "self" else (k <= q) & (q - k < 16)
        raw = np.where(visible, np.exp(-np.abs(q - k - head) / (2.0 * layer)), 0.0)
        bias = np.where(visible, -0.5 * np.abs(q - k), 0.0) if head == 2 else None
        title = f"layer {layer} of 2, head {head} of 4" + (f", {which}" if which != "self" else "")
        rule = "self-attention, window: each query sees the newest 16 keys, its own included"
        return AttentionView(
            queries, keys, raw / raw.sum(1, keepdims=True), visible, bias, title, rule, which == "cross"
        )


class FakeWriters:
    """Hands out fake models by the name of the run; an exception is raised.

    Args:
        known: by name; others write `PLAY`.
        gate: waits for it before a model is there.
    """

    def __init__(self, known: "dict[str, FakeWriter | Exception] | None" = None, gate: threading.Event | None = None):
        self.known, self.gate = known or {}, gate
        self.loads: list[tuple[str, str]] = []

    def get(self, run: Path, which: str) -> FakeWriter:
        self.loads.append((run.name, which))
        if self.gate is not None:
            assert self.gate.wait(PATIENCE), "nobody opened the gate"
        found = self.known.setdefault(run.name, FakeWriter(run.name))
        if isinstance(found, Exception):
            raise found
        return found
