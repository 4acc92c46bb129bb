"""Every key of the studio in one table: it makes the bindings, the footer and the help. Keys can be changed by id."""

from dataclasses import dataclass

from textual.binding import Binding, BindingType


@dataclass(frozen=True)
class Key:
    """One binding.

    Args:
        id: for `keys` in the settings.
        keys: comma-separated.
        action: what it does, of the app or of the pane it stands with.
        label: one or two words, for the footer.
        what: one sentence, for the help.
        footer: shown at the bottom.
        first: heard before whatever has the focus, so that what is typed right after it goes where it leads.
    """

    id: str
    keys: str
    action: str
    label: str
    what: str
    footer: bool = True
    first: bool = False


EVERYWHERE = (
    Key("design", "1,alt+1", "show_pane('design')", "design", "choose a model; see what it costs and does", False),
    Key("train", "2,alt+2", "show_pane('train')", "train", "runs, their curves, pause and resume", False),
    Key("compare", "3,alt+3", "show_pane('compare')", "compare", "runs side by side", False),
    Key("playground", "4,alt+4", "show_pane('playground')", "playground", "write with a trained model", False),
    Key("next-pane", "ctrl+pagedown", "turn_pane(1)", "next", "the next pane", False, first=True),
    Key("pane-before", "ctrl+pageup", "turn_pane(-1)", "previous", "the previous pane", False, first=True),
    Key("help", "question_mark", "help", "help", "these keys"),
    Key("picture", "f12", "picture", "picture", "save the screen as an SVG picture", False),
    Key(
        *("quit", "ctrl+q", "leave", "quit", "leave; a run that trains here is handed over or stopped, as you say"),
        first=True,
    ),
    Key("ask-to-quit", "q", "ask_to_leave", "quit", "ask, then quit", False),
)

DESIGN = (
    Key("launch", "f5", "launch('usual')", "launch", "train this design, here in the app"),
    Key("launch-detached", "shift+f5,f6", "launch('process')", "detached", "train it in a process of its own", False),
    Key("queue", "a", "launch('queue')", "queue", "train it when the device is free", False),
    Key("search", "slash", "search", "search", "find a preset", False),
    Key("base", "o", "base", "base", "put the preset's change on another base (--on)", False),
    Key("any-setting", "e", "any_setting", "edit", "set any key of the config, as --set does"),
    Key("save-preset", "s", "save_preset", "save", "save as a preset file of your own"),
    Key("toml", "t", "toml", "TOML", "the complete config, to read and copy"),
    Key("copy-command", "c", "copy_command", "copy", "the same run on a command line, into the clipboard", False),
    Key("study", "v", "study", "study", "make a study of this design: variants of it, each with several seeds"),
    Key("fit", "m", "measure", "measure", "train a few steps to measure time and memory; again stops it"),
    Key("undo", "u", "undo", "undo", "take back all changes to the preset", False),
    Key("to-presets", "escape", "to_presets", "back", "the keys go to the presets: digits are panes again", False),
)

STUDY = (
    Key("study-launch", "f5", "launch", "launch", "run the study in a process of its own; it outlives the studio"),
    Key("study-presets", "p", "presets", "presets", "tick presets that change one thing each"),
    Key("study-values", "v", "values", "values", "values of a setting: model.n_heads=1,2,4,8; of several: a grid"),
    Key("study-take", "l", "take", "studies", "take the variants of a study that comes with this, or of your own"),
    Key("study-seeds", "n", "seeds", "seeds", "how many seeds, or which"),
    Key("study-more-seeds", "plus", "more_seeds(1)", "more", "one seed more", False),
    Key("study-fewer-seeds", "minus", "more_seeds(-1)", "fewer", "one seed less", False),
    Key("study-baseline", "b", "baseline", "baseline", "hold the others against the variant at hand"),
    Key("study-remove", "delete,backspace,x", "remove", "remove", "leave out the variant at hand", False),
    Key("study-measure", "m", "measure", "time", "time a step of every variant; again stops it"),
    Key("study-rename", "r", "rename", "rename", "give the study another name", False),
    Key("study-save", "s", "save", "save", "save as a TOML file of your own", False),
    Key("study-toml", "t", "toml", "TOML", "the whole study as TOML, and its command line", False),
    Key("study-copy", "c", "copy", "copy", "the command line that runs it, into the clipboard", False),
    Key("study-help", "question_mark", "help", "keys", "these keys", False),
    Key("study-back", "escape", "back", "back", "to the design; the study is kept as long as the studio is open"),
)

TRAIN = (
    Key("pause", "space", "pause", "pause", "pause or continue the run; its process stays"),
    Key("stop", "s", "stop", "stop", "stop with a checkpoint; resume continues from there"),
    Key("resume", "r", "resume('usual')", "resume", "go on with a run that stopped, failed, or was lost"),
    Key("resume-detached", "R", "resume('process')", "resume detached", "the same in a process of its own", False),
    Key("detach", "d", "detach", "detach", "hand the run that trains here over to a process of its own"),
    Key("checkpoint", "k", "checkpoint", "checkpoint", "save a checkpoint now", False),
    Key("zoom", "z", "zoom", "zoom", "one chart on the whole screen; once more for all"),
    Key("x-axis", "x", "x_axis", "x axis", "steps, tokens or seconds", False),
    Key("log-y", "y", "log_y", "log y", "a logarithmic y axis", False),
    Key("smooth", "m", "smooth", "smooth", "smooth the training loss: off, a little, a lot", False),
    Key("next-chart", "c", "next_chart", "chart", "the next chart, where there is room for one", False),
    Key("back", "escape", "back", "back", "all charts again; the keys go to the list", False),
    Key("log", "l", "tab('log')", "log", "the run's log", False),
    Key("samples", "t", "tab('samples')", "samples", "what it wrote", False),
    Key("checks", "v", "tab('checks')", "checks", "what the checks found, and why", False),
    Key("play", "w", "play", "write", "write with what it learned, in the Playground", False),
    Key("rename", "n", "rename", "rename", "give the run another name", False),
    Key("delete", "delete,backspace", "delete", "delete", "delete the run with its checkpoints (asks)", False),
)

COMPARE = (
    Key(
        *("filter", "slash", "filter", "filter"),
        "only runs that match: rope  n_heads>=2  loss<1.3  badge:LEAK  -tag:old",
    ),
    Key("select", "space", "select", "select", "draw the run's curves, or no longer; eight at most"),
    Key("pin", "p", "pin", "pin", "make the run the baseline that differences are to", False),
    Key("detail", "enter", "detail", "detail", "all about the run, or the variant: badges, verdicts, settings, probes"),
    Key(
        "by-variant",
        "v",
        "by_variant",
        "variants",
        "variants over their seeds with what can be concluded, or every run",
    ),
    Key("sort", "o", "sort", "sort", "sort by the next column; a click on a title sorts by it", False),
    Key("sort-back", "O", "reverse", "reverse", "the other way round", False),
    Key("only-selected", "i", "only", "only", "only the selected runs, or all", False),
    Key("all-settings", "a", "all_settings", "settings", "every setting, or only those that differ", False),
    Key("x-axis", "x", "x_axis", "x axis", "steps, tokens or seconds", False),
    Key("other-chart", "c", "other_chart", "chart", "the next chart: curves, differences, recall by distance", False),
    Key(
        "over-seeds",
        "m",
        "over_seeds",
        "mean",
        "means over the seeds of a variant with their interval, or every run",
        False,
    ),
    Key(
        "probe",
        "d",
        "probe",
        "distance",
        "a probe by distance; once more for the next; ┊ how far a model can look",
        False,
    ),
    Key("log-y", "y", "log_y", "log y", "a logarithmic y axis", False),
    Key("train-curves", "t", "train_curves", "train curves", "the training losses as well", False),
    Key("note", "n", "note", "note", "write a note about the run", False),
    Key("tags", "g", "tags", "tags", "tag the run", False),
    Key("play", "w", "play", "write", "write with this run, or with two that are selected, in the Playground", False),
    Key("export", "e", "export", "export", "these runs as CSV, Markdown, LaTeX or JSON"),
    Key("report", "R", "report", "report", "a report to hand in: of the study, or of the selected runs", False),
    Key("unselect", "u", "unselect", "unselect", "select none", False),
    Key("back", "escape", "back", "back", "no filter; the keys go to the table", False),
)

PLAYGROUND = (
    Key("prompt", "i", "prompt", "prompt", "type a prompt, or a /command"),
    Key("command", "slash", "command", "command", "type a /command", False),
    Key("choose-run", "r", "choose_run", "run", "choose the run that writes"),
    Key("choose-vs", "v", "choose_vs", "vs", "choose a second run beside it; the same prompt, the same seed"),
    Key("which-checkpoint", "b", "turn_checkpoint", "best/last", "the best checkpoint or the newest", False),
    Key("write", "w", "mode('write')", "write", "what was written, coloured by probability", False),
    Key(
        "surprise", "s", "mode('surprise')", "surprise", "how surprised the model is by each character of a text", False
    ),
    Key("attention", "a", "mode('attention')", "attention", "where a head of a layer looks", False),
    Key("head", "h", "turn_head(1)", "head", "attention: the next head", False),
    Key("head-before", "H", "turn_head(-1)", "head", "attention: the head before", False),
    Key("layer", "l", "turn_layer(1)", "layer", "attention: the next layer", False),
    Key("layer-before", "L", "turn_layer(-1)", "layer", "attention: the layer before", False),
    Key(
        "attention-kind",
        "k",
        "turn_kind",
        "kind",
        "attention: of the target, across to the source, of the source",
        False,
    ),
    Key("surprising", "u", "surprising", "surprising", "to the next most surprising token"),
    Key("again", "n", "again", "again", "the same prompt with the next seed"),
    Key("copy-answer", "c", "copy_answer", "copy", "the text into the clipboard"),
    Key("stop-writing", "escape", "stop_writing", "stop", "stop writing", False),
)

PANES: dict[str, tuple[Key, ...]] = {
    "everywhere": EVERYWHERE,
    "design": DESIGN,
    "study": STUDY,
    "train": TRAIN,
    "compare": COMPARE,
    "playground": PLAYGROUND,
}


def bindings(keys: tuple[Key, ...]) -> list[BindingType]:
    """As Textual takes them."""
    return [Binding(k.keys, k.action, k.label, show=k.footer, tooltip=k.what, id=k.id, priority=k.first) for k in keys]
