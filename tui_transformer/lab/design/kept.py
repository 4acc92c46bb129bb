"""Designs kept from one start to the next: what is kept of a draft, and what of it is still valid later."""

from dataclasses import replace

from engine.config.keys import all_keys
from tui_transformer.lab.design.draft import MOST_RANKS, Draft
from tui_transformer.settings import KeptDraft


def to_kept_draft(draft: Draft) -> KeptDraft:
    return KeptDraft(on=draft.base or "", ranks=draft.ranks, changes=dict(draft.changes))


def restore_draft(start: Draft, was: KeptDraft) -> Draft:
    """An unchanged draft with what was kept; without what is no longer valid."""
    draft = start
    if was.on and draft.preset_base is not None:
        moved = draft.with_base(was.on)
        draft = draft if moved.config is None else moved
    known = {key: value for key, value in was.changes.items() if key in all_keys()}
    whole = replace(draft, changes=known)
    if whole.config is not None:
        draft = whole
    else:
        for key, value in known.items():
            changed = draft.with_change(key, value)
            draft = draft if changed.config is None else changed
    return replace(draft, ranks=was.ranks) if 1 <= was.ranks <= MOST_RANKS else draft
