"""Shows what a model answers to a few held-out questions, always the same ones."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.config.schema import RunConfig
from engine.data.documents.corpus import Question
from engine.data.tokenizers import Tokenizer
from engine.evaluation.answer_scorer import Answerer
from engine.model.transformer import Network

SHOWN = 5  # questions


class QuestionSampler:
    """Answers the lines of `evaluation.sample_prompt`, or some questions of the validation split.

    Args:
        config: the run's.
        tokenizer: of questions and answers.
        held_out: the validation split.
        most: tokens of an answer, its end included.

    Raises:
        InputError: a prompt with characters or words the model will never know.
    """

    def __init__(self, config: RunConfig, tokenizer: Tokenizer, held_out: Sequence[Question], most: int) -> None:
        self.config, self.tokenizer, self.most = config, tokenizer, most
        prompts = [line for line in config.evaluation.sample_prompt.splitlines() if line.strip()]
        tokenizer.encode_all(prompts)  # refused now, not at step 500
        places = np.linspace(0, len(held_out) - 1, min(SHOWN, len(held_out))).astype(int)
        self._shown = [Question(line, None) for line in prompts] or [held_out[i] for i in places]

    def sample(self, model: Network, step: int, between: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """A record of samples.jsonl: in `translations` each question, what is right, what is answered."""
        answers = Answerer(model, self.tokenizer, self.config, self.most).answers(
            [question.text for question in self._shown], between
        )
        rows = [
            {"source": question.text, "reference": question.answer or "", "text": answer}
            for question, answer in zip(self._shown, answers, strict=True)
        ]
        return {"step": step, "prompt": rows[0]["source"], "text": rows[0]["text"], "translations": rows}
