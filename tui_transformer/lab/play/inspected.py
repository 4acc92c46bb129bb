"""What the Playground's writers that hold one network share: which attention it has to look at."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.config.schema import RunConfig
    from engine.model.transformer import Network


class Inspected:
    """A network of a run, by its kinds of attention."""

    model: "Network"
    config: "RunConfig"

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of attention."""
        from engine.generation.inspection import places

        return places(self.model)

    def shape(self, which: str) -> tuple[int, int]:
        """Layers and heads of a kind of attention.

        Raises:
            InputError: this network has no such kind.
        """
        from engine.generation.inspection import attentions

        return len(attentions(self.model, which)), self.config.model.n_heads
