"""Pictures are read back and held against the objects that the model uses."""

import contextlib
import io
import itertools
import json
import math
import os
import pty
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from engine.config.model import ModelConfig
from engine.config.presets import list_presets
from engine.config.schemes import ATTENTIONS, POSITIONS
from engine.config.visibility import Visibility, self_attention
from engine.model.positions import TransformerXL, alibi_slopes
from engine.model.transformer import build_model
from tests.waiting import PATIENCE
from tui_transformer.__main__ import main
from tui_transformer.lab.play.pictures import (
    GREYS,
    SHADES,
    PictureFormat,
    StackPlan,
    bias_picture,
    drawn_positions,
    first_head_bias,
    half_blocks,
    initial_scheme,
    layer_plan,
    mask_and_position_pictures,
    mask_picture,
    position_picture,
    rotation_cosines,
    stack_plans,
)

HALVES = {" ": (0, 0), "▀": (1, 0), "▄": (0, 1), "█": (1, 1)}
BOTH = ["model.architecture=encoder-decoder", "objective.kind=reverse", "model.source_length=12"]
ENCODER = ["model.architecture=encoder", "objective.kind=masked"]
ARCHITECTURES = [[], ENCODER, BOTH]
CAUSAL, WINDOW, SPARSE = Visibility(True), Visibility(True, 5), Visibility(True, 5, 4)
BOTH_SIDES, BAND, LINKS = Visibility(False), Visibility(False, 6), Visibility(False, 6, 7)


def framed(picture: Text) -> list[str]:
    """What stands between the bars."""
    return [line.split("│")[1] for line in picture.plain.splitlines() if line.count("│") == 2]


def read(picture: Text) -> list[list[int]]:
    """The cells of a mask's picture; its last half line, if there is one, must be empty."""
    lines = framed(picture)
    rows = [[HALVES[sign][half] for sign in line] for line in lines for half in (0, 1)]
    n = len(lines[0])
    assert len(rows) == n + n % 2 and not any(itertools.chain(*rows[n:]))
    return rows[:n]


def asked(see: Visibility, n: int) -> list[list[int]]:
    """The same from the predicate on tensors, as attention asks it."""
    at = torch.arange(n)
    return torch.broadcast_to(see(at[:, None], at[None]), (n, n)).int().tolist()


def digits(see: Visibility, n: int) -> list[str]:
    """The same as rows of 0 and 1."""
    return ["".join(map(str, row)) for row in asked(see, n)]


@pytest.mark.parametrize("length", [1, 2, 7, 16, 39, 40, 300])
@pytest.mark.parametrize("see", [CAUSAL, WINDOW, SPARSE, BOTH_SIDES, BAND, LINKS], ids=str)
def test_each_cell_of_the_mask_is_the_predicates(see: Visibility, length: int) -> None:
    cells = read(mask_picture(StackPlan("", "global", see, length), PictureFormat()))
    assert len(cells) == min(length, 40)
    assert cells == asked(see, len(cells))


@given(
    st.builds(Visibility, st.booleans(), st.none() | st.integers(1, 50), st.none() | st.integers(2, 50)),
    st.integers(1, 10**12),
    st.integers(1, 200),
    st.integers(1, 60),
)
def test_masks_fit_the_room_there_is(see: Visibility, length: int, width: int, lines: int) -> None:
    picture = mask_picture(StackPlan("", "global", see, length), PictureFormat(width, lines))
    assert read(picture) == asked(see, drawn_positions(length, PictureFormat(width, lines)))
    assert len(framed(picture)) <= lines
    assert all(len(line) <= max(width, 7) for line in picture.plain.splitlines()[3:])


def test_two_rows_share_a_line() -> None:
    assert half_blocks([[True, False, True, False], [True, True, False, False], [False, True, False, True]]) == [
        "█▄▀ ",
        " ▀ ▀",
    ]


def test_a_term_of_the_content_that_has_no_table_is_said_in_a_line(monkeypatch) -> None:
    model = ModelConfig(position="xl", d_model=8, n_heads=2, context_length=6)
    (stack,) = stack_plans(model)
    assert len(position_picture(model, stack, 1, PictureFormat()).plain.splitlines()) > 6
    monkeypatch.setattr(TransformerXL, "distance_embedding", None)
    said = position_picture(model, stack, 1, PictureFormat()).plain
    assert said == "position xl: its term depends on the query's content"


@pytest.mark.parametrize("attention", ["global", "window", "sparse", "linear"])
@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=["decoder", "encoder", "encoder-decoder"])
def test_what_is_drawn_is_what_the_network_asks(tiny, architecture: list[str], attention: str) -> None:
    config = tiny(*architecture, f"model.attention={attention}", "model.window=4", "model.attention_dropout=0.0")
    network = build_model(config.model, 30, 1)
    parts = network.stacks
    assert [stack.visibility for stack in stack_plans(config.model)] == [
        part.layers[0].attention.visibility for part in parts
    ]


PATTERN = 'model.layers=["window t5", "window", "global", "linear none"]'


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=["decoder", "encoder", "encoder-decoder"])
def test_each_kind_of_layer_is_drawn_as_its_layers_are(tiny, architecture: list[str]) -> None:
    model = tiny(*architecture, PATTERN, "model.position=relative", "model.n_layers=6", "model.window=4").model
    network = build_model(model, 30, 7)
    stacked = list(zip(network.stacks, ("encoder", "decoder") if len(network.stacks) > 1 else ("",), strict=True))
    masks = iter(stack_plans(model))
    for part, name in stacked:
        plans = [next(masks) for _ in range(3)]
        assert [(plan.name, plan.attention, plan.layers_text) for plan in plans] == [
            (name, "window", "layers 1-2, 5-6"),
            (name, "global", "layer 3"),
            (name, "linear", "layer 4"),
        ]
        for plan in plans:
            assert all(part.layers[i].attention.visibility == plan.visibility for i in plan.layer_indices)
        for i, layer in enumerate(part.layers):
            plan = layer_plan(model, i, encoder=name == "encoder")
            assert (
                plan.visibility == layer.attention.visibility
                and i in plan.layer_indices
                and plan.position == model.layer_config(i).position
            )
            table = getattr(layer.attention.scheme, "table", None)
            assert table is None or torch.equal(initial_scheme(model, plan, 7).table.weight, table.weight)
    drawn = [picture.plain for picture in mask_and_position_pictures(model, 7, PictureFormat())]
    owner = "decoder's self-attention" if len(stacked) > 1 else "self-attention"
    assert any(text.startswith(f"{owner} in layers 1-2, 5-6, window: each query sees") for text in drawn)
    assert any(text.startswith("position t5 in layers 1, 5 (learned") for text in drawn)
    assert any(text.startswith("position none in layer 4: adds nothing") for text in drawn)


@pytest.mark.parametrize("init", ["scaled-normal", "normal", "xavier", "torch"])
@pytest.mark.parametrize("position", ["learned", "relative", "t5"])
@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=["decoder", "encoder", "encoder-decoder"])
def test_learned_numbers_are_those_the_network_starts_with(tiny, architecture: list[str], position, init) -> None:
    model = tiny(*architecture, f"model.position={position}", f"model.init={init}").model
    network = build_model(model, 30, 7)
    parts = network.stacks
    for part, stack in zip(parts, stack_plans(model), strict=True):
        scheme = initial_scheme(model, stack, 7)
        assert torch.equal(scheme.table.weight, part.positions.table.weight)
        at = torch.arange(9)[None]
        for mine, theirs in (
            (scheme.bias(at, at), part.positions.bias(at, at)),
            (scheme.embed(at), part.positions.embed(at)),
        ):
            assert (mine is None and theirs is None) or torch.equal(mine, theirs)


def test_the_bias_is_darkest_where_it_is_lowest_and_blank_where_it_is_not_seen(tiny) -> None:
    model = tiny("model.position=alibi", "model.attention=window", "model.window=5").model
    picture = position_picture(model, stack_plans(model)[0], 1, PictureFormat())
    slope = alibi_slopes(2)[0]
    assert picture.plain.startswith(f"position alibi, head 1 of 2: 0 █▓▒░ −{4 * slope:.3g} added to the score")
    lines = framed(picture)
    assert len(lines) == 16
    for q, line in enumerate(lines):
        assert len(line) == 32 and line[::2] == line[1::2]
        for k, sign in enumerate(line[::2]):
            expected = {0: "█", 4: "░"}.get(q - k, sign if 0 < q - k < 4 else " ")
            assert sign == expected and (sign == " ") == (not 0 <= q - k < 5)


@pytest.mark.parametrize("kind", ["relative", "t5"])
def test_extreme_cells_of_a_learned_bias_have_the_extreme_shades(tiny, kind: str) -> None:
    model = tiny(f"model.position={kind}", *ENCODER, "model.attention=sparse", "model.window=4").model
    stack = stack_plans(model)[0]
    values = first_head_bias(initial_scheme(model, stack, 3), stack.visibility, 16)
    known = [v for row in values for v in row if v is not None]
    for colour in (False, True):
        picture = bias_picture(values, full_length=16, title="t", canvas=PictureFormat(colour=colour))
        cells = grey_cells(picture) if colour else [line[::2] for line in framed(picture)]
        low, high = (f"#{grey:02x}{grey:02x}{grey:02x}" for grey in GREYS) if colour else (SHADES[1], SHADES[-1])
        for q, k in itertools.product(range(16), repeat=2):
            value, shown = values[q][k], cells[q][k]
            assert (shown in (" ", None)) == (value is None)
            if value == max(known):
                assert shown == high
            if value == min(known):
                assert shown == low


def grey_cells(picture: Text) -> list[list[str | None]]:
    """The greys of a picture in half blocks, by row and column."""
    console = Console(color_system="truecolor", force_terminal=True, no_color=False)
    rows: list[list[str | None]] = []
    for line in picture.split("\n"):
        if line.plain.count("│") != 2:
            continue
        upper: list[str | None] = []
        lower: list[str | None] = []
        for at in range(line.plain.index("│") + 1, line.plain.rindex("│")):
            style, sign = line.get_style_at_offset(console, at), line.plain[at]
            fore, back = (c and c.name for c in (style.color, style.bgcolor))
            assert sign in " ▀▄"
            upper.append(fore if sign == "▀" else None)
            lower.append(back if sign == "▀" else fore if sign == "▄" else None)
        rows += [upper, lower]
    return rows


def test_a_flat_bias_says_so() -> None:
    picture = bias_picture([[0.0, None], [0.0, 0.0]], full_length=2, title="t", canvas=PictureFormat())
    assert picture.plain.startswith("t: 0 everywhere added to the score") and framed(picture) == ["██  ", "████"]


@pytest.mark.parametrize("pairing", ["half", "adjacent"])
def test_rope_is_drawn_by_the_cosines_it_turns_with(tiny, pairing: str) -> None:
    model = tiny("model.position=rope", f"model.rope_pairing={pairing}", "model.rope_base=100.0").model
    found = rotation_cosines(initial_scheme(model, stack_plans(model)[0], 1), model, 11)
    expected = [[math.cos(t * 100.0 ** (-2 * i / 8)) for i in range(4)] for t in range(11)]
    assert torch.allclose(torch.tensor(found), torch.tensor(expected), atol=1e-6)


WHERE = {
    "nothing": ["adds nothing"],
    "embeddings": ["added to the embeddings"],
    "queries and keys": ["rotates queries and keys", "cosines"],
    "scores": ["added to the score"],
    "content": ["depends on the query's content", "distances q − k"],
}
WORDS = {name: [f"position {name}", *WHERE[position.acts_on]] for name, position in POSITIONS.items()}
WORDS["sinusoidal"].append("−1")
for name, position in POSITIONS.items():
    if position.learned and position.acts_on != "content":
        WORDS[name].append("shown as initialized)" if name == "learned" else "(learned; shown as initialized)")


GRID = [
    (attention, position)
    for attention, position in itertools.product(ATTENTIONS, POSITIONS)
    if ATTENTIONS[attention].has_scores or not POSITIONS[position].adds
]


@pytest.mark.parametrize(("attention", "position"), GRID)
@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=["decoder", "encoder", "encoder-decoder"])
def test_every_network_fits_a_terminal_of_80_by_24(
    tiny, architecture: list[str], position: str, attention: str
) -> None:
    config = tiny(
        *architecture, f"model.position={position}", f"model.attention={attention}", "model.attention_dropout=0.0",
        *("model.d_model=192", "model.context_length=2000", "model.n_heads=4", "model.window=64"),
    )  # fmt: skip
    console = Console(width=80)
    for colour in (False, True):
        found = list(mask_and_position_pictures(config.model, 1, PictureFormat(colour=colour)))
        for picture in found:
            assert len(picture.wrap(console, 80)) <= 24
            assert all(len(line) <= 80 for line in picture.plain.splitlines() if "│" in line)
            assert colour or not picture.spans
        text = "\n".join(picture.plain for picture in found)
        assert "rows: queries, columns: keys; position 0 at the top left" in text
        assert all(word in text for word in WORDS[position])
        assert ("the mask is applied through the sums" in text) == (not ATTENTIONS[attention].has_scores)
        assert ("sees the whole source" in text) == (config.model.architecture == "encoder-decoder")


@pytest.mark.parametrize(
    ("position", "said"),
    [
        (
            "rope",
            "position rope rotates queries and keys\n1 █████ −0.99; ↓ first 16 of 99 positions, → 4 angles (cosines)",
        ),
        ("sinusoidal", "added to the embeddings\n1 █████ −1; ↓ first 16 of 99 positions, → 16 features"),
        ("alibi", "head 1 of 2, added to the score\n0 █████ −0.938; ↓ first 16 of 99 queries, → keys"),
        ("xl", "position xl: sinusoids of the distance\n1 █████ −1; ↓ first 16 of 99 distances q − k, → 16 features"),
    ],
)
def test_few_words_say_what_the_rows_columns_and_shades_are(tiny, position: str, said: str) -> None:
    model = tiny(f"model.position={position}", "model.context_length=99").model
    canvas = PictureFormat(60, 8, colour=True, brief=True)
    assert said in position_picture(model, stack_plans(model)[0], 1, canvas).plain
    assert "before it\n↓ first 16 of 99 queries, → keys\n" in mask_picture(stack_plans(model)[0], canvas).plain


def test_few_words_say_how_many_columns_are_drawn(tiny) -> None:
    model = tiny("model.d_model=192").model
    picture = position_picture(model, stack_plans(model)[0], 1, PictureFormat(width=30, brief=True))
    assert "→ 24 of 192 features" in picture.plain


def test_a_window_wider_than_the_picture_is_said_to_be(tiny) -> None:
    wide, narrow = (
        next(
            mask_and_position_pictures(
                tiny("model.attention=window", f"model.window={w}", "model.context_length=99").model, 1, PictureFormat()
            )
        )
        for w in (40, 39)
    )
    assert "(more than shown here)" in wide.plain and "(more than shown here)" not in narrow.plain


def test_a_table_past_all_memory_is_not_made(tiny) -> None:
    model = tiny("model.position=learned", "model.context_length=1000000000000").model
    assert "too large" in position_picture(model, stack_plans(model)[0], 1, PictureFormat()).plain


@pytest.mark.parametrize("name", [preset.name for preset in list_presets()])
def test_every_preset_can_be_drawn(capsys, name: str) -> None:
    assert main(["presets", "show", name, "--mask"]) == 0
    out = capsys.readouterr().out
    assert "each query sees" in out and "position " in out and "\x1b" not in out
    assert main(["presets", "show", name, "--mask", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    model = ModelConfig.model_validate(record["config"]["model"])
    assert record["mask"] == digits(self_attention(model), min(40, model.context_length))
    assert (record["bias"] is None) == (POSITIONS[model.position].acts_on != "scores")


def shown(capsys, *settings: str) -> dict:
    overrides = [part for setting in settings for part in ("--set", setting)]
    assert main(["presets", "show", "demo", "--mask", "--json", *overrides]) == 0
    return json.loads(capsys.readouterr().out)


def test_json_has_the_mask_and_the_bias_of_the_first_head(capsys) -> None:
    record = shown(capsys, "model.position=alibi", "model.attention=window", "model.window=7")
    cells = asked(Visibility(True, 7), 40)
    assert record["mask"] == digits(Visibility(True, 7), 40) and record["parameters"] > 0
    slope = alibi_slopes(record["config"]["model"]["n_heads"])[0]
    assert record["bias"] == [
        [round(-slope * (q - k), 4) if seen else None for k, seen in enumerate(row)] for q, row in enumerate(cells)
    ]


def test_json_has_an_encoders_mask_apart(capsys) -> None:
    record = shown(capsys, *BOTH, "model.position=t5")
    assert record["encoder_mask"] == ["1" * 12] * 12 and record["mask"][1] == "11" + "0" * 38
    assert None not in record["encoder_bias"][0] and record["bias"][0][1:] == [None] * 39


def test_without_the_option_nothing_is_drawn(capsys) -> None:
    assert main(["presets", "show", "demo"]) == 0
    assert "│" not in capsys.readouterr().out
    assert main(["presets", "show", "demo", "--json"]) == 0
    assert not {"mask", "bias"} & set(json.loads(capsys.readouterr().out))


def test_torch_is_loaded_only_to_draw() -> None:
    code = (
        "import sys; from tui_transformer.__main__ import main; import tui_transformer.lab.play.pictures; "
        "main(['presets', 'show', 'demo']); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, timeout=PATIENCE).returncode == 0


ALIBI = ["presets", "show", "demo", "--mask", "--set", "model.position=alibi"]


@pytest.mark.parametrize(
    ("system", "no_color", "grey"), [("256", False, True), ("256", True, False), ("standard", False, False)]
)
def test_greys_only_where_there_are_some_and_they_are_wanted(monkeypatch, system, no_color: bool, grey: bool) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, color_system=system, no_color=no_color, width=80, height=24)
    monkeypatch.setattr("tui_transformer.cli.show.presets.stdout", lambda: console)
    monkeypatch.setattr("tui_transformer.cli.show.presets.is_terminal", lambda _: True)
    assert main(ALIBI) == 0
    assert ("\x1b[38;5;2" in screen.getvalue()) == grey and ("░░" in screen.getvalue()) != grey


ASKED_FOR = {"TERM": "xterm-256color", "FORCE_COLOR": "1", "COLUMNS": "80", "LINES": "24"}


def environment() -> dict[str, str]:
    """This one, with every sign that colour is wanted."""
    return {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | ASKED_FOR


def test_a_pipe_gets_no_escape_codes(fork_start) -> None:
    command = [sys.executable, "-m", "tui_transformer", *ALIBI]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment())
    assert done.returncode == 0 and "\x1b" not in done.stdout and "░░" in done.stdout


def test_a_terminal_gets_greys_of_as_many_lines_as_it_has(fork_start) -> None:
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "tui_transformer", *ALIBI]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment() | {"LINES": "14"})
    os.close(slave)
    written = b""
    with contextlib.suppress(OSError):  # how Linux says that the other end is closed
        while part := os.read(master, 65536):
            written += part
    os.close(master)
    assert process.wait(timeout=PATIENCE) == 0
    assert b"\x1b[38;5;2" in written and b"first 20 of 256" in written
