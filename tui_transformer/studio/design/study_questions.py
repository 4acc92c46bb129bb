"""What the study builder asks: which presets, which values, whose study, which seeds, what name."""

from collections.abc import Sequence

from textual.suggester import SuggestFromList

from engine.config.keys import all_keys
from engine.errors import InputError
from tui_transformer.lab.design.study_base import NOT_OF_A_STUDY, Overlay
from tui_transformer.lab.design.study_command import as_seeds
from tui_transformer.lab.design.study_draft import StudyDraft
from tui_transformer.lab.studies.study import Study
from tui_transformer.studio.design import own_studies
from tui_transformer.studio.design.ticks import Tick, Ticks
from tui_transformer.studio.shared.dialog import Answer, Ask, AskText


def which_overlays(draft: StudyDraft, offered: Sequence[Overlay]) -> Ticks:
    """Overlays to tick; those that cannot be come last, with the reason."""
    ticks = [Tick(o.variant.name, o.description, draft.has(o.variant), o.why_not) for o in offered]
    return Ticks(f"Which changes to {draft.design.name}?", ticks)


def which_values(draft: StudyDraft) -> AskText:
    """`KEY=VALUE,VALUE`, as text that `draft.with_axes` takes."""

    def wrong(text: str) -> str:
        try:
            draft.with_axes(text)
        except InputError as error:
            return str(error).removeprefix("--vary ").removeprefix("--set ")
        return ""

    return AskText(
        "Values of a setting, a variant each",
        placeholder="model.n_heads=1,2,4,8",
        text="KEY=VALUE,VALUE; several keys, with a space between, make a grid; → completes a key",
        wrong=wrong,
        suggester=SuggestFromList([f"{name}=" for name in all_keys() if name not in NOT_OF_A_STUDY]),
    )


def which_study(draft: StudyDraft) -> Ask[Study]:
    """A study whose variants are taken; they replace those that are there."""
    answers: list[Answer[Study]] = []
    for study, name, where in own_studies.offered():
        if study is None:
            answers.append(Answer(None, name, where))  # type: ignore[arg-type]
            continue
        words = study.description or f"{len(study.variants)} variants of {study.base}"
        answer = f"{name}: {words}" + (f"  ({where})" if where else "")
        answers.append(Answer(study, answer, draft.with_study(study).problem))
    text = f"Its variants take the place of those that are there; {draft.design.name} stays the base."
    return Ask("Take whose variants?", answers, text=text)


def which_seeds(draft: StudyDraft) -> AskText:
    """Seeds, as text that `draft.with_seeds` takes."""

    def wrong(text: str) -> str:
        try:
            draft.with_seeds(text)
        except InputError as error:
            return str(error).removeprefix("--seeds ")
        return ""

    words = "3 is 1, 2 and 3; 1,5,9 are these. With one nothing can be concluded; 3 explore, 5 decide."
    return AskText("Seeds of every variant", as_seeds(draft.seeds), text=words, wrong=wrong)


def which_name(draft: StudyDraft) -> AskText:
    """The study's name."""
    words = "Its runs are called NAME.VARIANT.sSEED."
    return AskText("Name of the study", draft.name, text=words, wrong=own_studies.wrong_name)
