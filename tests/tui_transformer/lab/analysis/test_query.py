"""The filter: what each term lets through, and one sentence for each mistake."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.base.errors import InputError
from tests.tui_transformer.lab.analysis.variants import LEAK, entry
from tui_transformer.lab.analysis.entry import RunEntry
from tui_transformer.lab.analysis.query import FilterKeys, parse, parse_number, parse_partial


@pytest.fixture(scope="module")
def entries(tmp_path_factory) -> list[RunEntry]:
    root = tmp_path_factory.mktemp("runs")
    return [
        entry(root, "baseline", tags=("good", "Report"), note="the one to beat"),
        entry(root, "rope-wide", "model.position=rope", "model.n_heads=2", by=0.2, parameters=2_000_000, preset="rope"),
        entry(root, "leaky", "model.causal=false", by=-0.5, verdicts=[LEAK]),
        entry(root, "hot", "optimizer.lr=0.3", state="failed", step=310, reason="the loss is not a number"),
    ]


MATCHES = {
    "": "baseline rope-wide leaky hot",
    "ROPE": "rope-wide",
    "beat": "baseline",
    "-rope": "baseline leaky hot",
    "failed": "hot",
    "-failed -badge:leak": "baseline rope-wide",
    "n_heads=2": "rope-wide",
    "n_heads = 2": "rope-wide",
    "model.n_heads!=2": "baseline leaky hot",
    "n_heads>=4": "baseline leaky hot",
    "position:rop": "rope-wide",
    "position=rop": "",
    "causal=false": "leaky",
    "lr>0.1": "hot",
    "lr=3e-4 -leaky": "baseline rope-wide",
    "loss<0.5": "leaky",
    "last>1": "rope-wide hot",
    "best<=0.91 params<1M": "baseline leaky",
    "params>=1.5M": "rope-wide",
    "tok/s>41k": "baseline rope-wide leaky hot",
    "time<0:30": "hot",
    "time>3min": "baseline rope-wide leaky",
    "state=failed": "hot",
    "state:fin": "baseline rope-wide leaky",
    "badge:DIVERGED": "hot",
    "badge!=LEAK": "baseline rope-wide hot",
    "tag:report": "baseline",
    "tag:#good": "baseline",
    "-tag:good": "rope-wide leaky hot",
    "recall<110>50%": "baseline rope-wide leaky hot",
    '"recall<110">90%': "",
    "bracket>0.9 rope": "rope-wide",
    "warmup=none": "",
    "decay_every=none": "baseline rope-wide leaky hot",
    'notes:"to beat"': "baseline",
    '"one to"': "baseline",
    "Δlast>0.1": "rope-wide",
    "dparams>0": "rope-wide",
    "verdict:seed": "rope-wide",
    "perplexity>1": "baseline rope-wide leaky hot",
    "-": "rope-wide",
}


@pytest.mark.parametrize("text", MATCHES)
def test_a_filter_lets_through_what_it_says(entries, text) -> None:
    baseline = entries[0]
    assert [e.name for e in parse(text, entries)(entries, baseline)] == MATCHES[text].split()


MISTAKES = {
    "n_hed=2": "unknown key 'n_hed'; did you mean 'n_heads'?",
    "kind=adamw": "'kind' could be objective.kind or optimizer.kind: write it in full",
    "loss<": "loss<: needs a value after <",
    "<3": "<: needs a key before it, e.g. loss<1.3",
    "n_heads>two": "model.n_heads>two: > needs a number, e.g. 1.3, 10k or 50%",
    "state<3": "state is text: write state=3, or state:3 to match part of it",
    "badge:LEEK": "no badge named 'LEEK'; did you mean 'LEAK'?",
    "tag>x": "tag>x: write tag:x",
    'notes:"to beat': '"to: missing a closing quotation mark',
    "recall<110": "recall<110 is a probe: compare it with a number, e.g. recall<110>50%",
    "x" * 2000: "a filter can have at most 1,000 characters; this one has 2,000",
}


@pytest.mark.parametrize("text", MISTAKES, ids=lambda text: text[:12])
def test_a_mistake_is_one_sentence_with_what_would_be_right(entries, text) -> None:
    with pytest.raises(InputError) as error:
        parse(text, entries)
    assert str(error.value) == MISTAKES[text]


def test_while_it_is_typed_the_terms_before_a_mistake_hold(entries) -> None:
    query, mistake = parse_partial("rope n_heads>", FilterKeys(entries))
    assert "needs a value" in mistake and [e.name for e in query(entries)] == ["rope-wide"]


def test_a_filter_that_nothing_matches_names_the_term(entries) -> None:
    assert parse("rope badge:INERT", entries).why_no_match(entries) == "no run matches badge:INERT"
    both = parse("rope badge:LEAK", entries).why_no_match(entries)
    assert both == "no run matches all of these at once: rope, badge:LEAK"
    assert parse("rope", entries).why_no_match(entries) == ""


@given(text=st.text(max_size=60) | st.text('-=<>!:"% abn_1e.', max_size=40))
def test_no_text_is_an_exception(text) -> None:
    found = [RunEntry(path=Path("a"), probes={"recall<110": 0.5}, config={"model.n_heads": [1]})]
    query, _ = parse_partial(text, FilterKeys(found))
    query(found, found[0])
    query.why_no_match(found, None)


NUMBERS = {
    "1.3": 1.3,
    "41.2k": 41_200,
    "3e-4": 3e-4,
    "1,000": 1000,
    "50%": 0.5,
    ".5": 0.5,
    "-2": -2,
    "2M": 2e6,
    "2:30": 150,
    "1:00:00": 3600,
    "5min": 300,
    "": None,
    "x": None,
    "1e999": None,
    "nan": None,
}


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_are_read_as_people_write_them(text) -> None:
    value = NUMBERS[text]
    assert parse_number(text) == (pytest.approx(value) if value is not None else None)
