"""data list, show and fetch, what doctor says of corpora, and the corpus of the wrong kind, in-process."""

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.config.sections import DataConfig
from engine.data.catalogue import KINDS
from engine.data.corpus import CorpusEntry
from engine.data.known import CORPORA
from engine.data.synthetic.phrasebook import corpus as phrasebook
from tests.small_pairs import multi30k, table
from tui_transformer.__main__ import main


@pytest.fixture(scope="module", autouse=True)
def generated_once() -> Iterator[None]:
    """Each corpus is generated once: that is no claim of these tests."""
    kept: dict[tuple[str, str], object] = {}

    def once(load: Callable[..., object]) -> Callable[..., object]:
        def found(entry: CorpusEntry, data: DataConfig, place: Path | None) -> object:
            if place is not None:
                return load(entry, data, place)
            key = (entry.name, data.model_dump_json())
            if key not in kept:
                kept[key] = load(entry, data, place)
            return kept[key]

        return found

    with pytest.MonkeyPatch.context() as patch:
        for kind in KINDS.values():
            for name, load in list(kind.named_loaders.items()):
                patch.setitem(kind.named_loaders, name, once(load))
        yield


@pytest.fixture(autouse=True)
def nothing_is_here(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("TUI_TRANSFORMER_DATA", raising=False)
    monkeypatch.delenv("TUI_TRANSFORMER_MIRROR", raising=False)
    monkeypatch.setattr("engine.data.corpus.user_data_path", lambda name: tmp_path / "user")


def records(capsys) -> list[dict]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def lines(capsys) -> list[str]:
    return capsys.readouterr().out.splitlines()


# list, doctor


def test_texts_and_pairs_are_in_one_list_with_what_kind_they_are(capsys, tmp_path) -> None:
    multi30k(tmp_path)
    assert main(["data", "list", "--data-dir", str(tmp_path)]) == 0
    rows = [" ".join(line.split()) for line in lines(capsys)]
    assert any(row.startswith("playlets text built in") for row in rows)
    assert any(row.startswith(f"multi30k pairs, en → de {tmp_path}/multi30k") for row in rows)
    assert any(row.startswith("tatoeba-en-de pairs, en → de not here") for row in rows)
    assert any(row.startswith("biographies documents built in") for row in rows)
    assert any(row.startswith("cs224n-birthplaces documents not here") for row in rows)
    assert "text.en,text.de" in rows[-1] and "documents.txt" in rows[-1]


def test_the_list_as_json_has_a_record_a_corpus(capsys) -> None:
    assert main(["data", "list", "--json"]) == 0
    found = {record["name"]: record for record in records(capsys)}
    assert found["playlets"]["kind"] == "text" and found["playlets"]["languages"] is None
    assert found["tatoeba-en-de"] | {"description": ""} == {
        "name": "tatoeba-en-de",
        "kind": "pairs",
        "languages": ["en", "de"],
        "licence": "CC BY 2.0 FR",
        "where": "not here",
        "description": "",
    }


def test_generated_pairs_are_built_in(capsys, monkeypatch) -> None:
    made = CorpusEntry("made-up", "pairs", "pairs by a grammar", languages=("en", "de"))
    monkeypatch.setitem(CORPORA, "made-up", made)
    assert main(["data", "list", "--json"]) == 0
    assert next(r for r in records(capsys) if r["name"] == "made-up")["where"] == "built in"
    assert main(["data", "fetch", "made-up"]) == 0
    assert "built in" in capsys.readouterr().err


def test_doctor_names_the_corpora_of_both_kinds_and_how_to_get_them(capsys, tmp_path) -> None:
    multi30k(tmp_path)
    assert main(["doctor", "--data-dir", str(tmp_path), "--json"]) == 0
    corpora = [record for record in records(capsys) if record["what"] == "corpus"]
    assert {record["found"].split()[0]: record["ok"] for record in corpora} == {
        "tiny-shakespeare": False,
        "wikitext-2": False,
        "ptb": False,
        "multi30k": True,
        "tatoeba-en-de": False,
        "iwslt2017-en-de": False,
        "iwslt2017-en-zh": False,
        "ted-talks": False,
        "gigaword": False,
        "cs224n-birthplaces": False,
        **{name: False for name, entry in CORPORA.items() if entry.hub},
        "ag-news": False,
    }
    assert "data fetch tatoeba-en-de" in next(r["advice"] for r in corpora if "tatoeba" in r["found"])
    by_hand = next(r["advice"] for r in corpora if "cs224n" in r["found"])
    assert by_hand.startswith("put wiki.txt, birth_places_train.tsv, ") and by_hand.endswith("cs224n-birthplaces")


# show


def test_a_text_is_shown(capsys, tmp_path) -> None:
    text = tmp_path / "t.txt"
    text.write_text("Und es ward Licht. " * 100)
    assert main(["data", "show", str(text), "--json"]) == 0
    (shown,) = records(capsys)
    assert shown["characters"] == {"train": 1710, "validation": 190} and shown["floor"] is None
    assert shown["kind"] == "text"
    assert main(["data", "show", "playlets"]) == 0
    assert "floor given the whole past 0.357" in capsys.readouterr().out


def test_pairs_are_shown_with_numbers_hashes_and_the_first_ones(capsys, tmp_path) -> None:
    multi30k(tmp_path)
    assert main(["data", "show", "multi30k", "--data-dir", str(tmp_path)]) == 0
    shown = lines(capsys)
    assert shown[0].startswith("multi30k, en → de, ")
    assert "  pairs       train 120, validation 20, test 20" in shown
    assert any("words on average" in line and line.startswith("  sources") for line in shown)
    assert sum("SHA-256" in line for line in shown) == 3
    assert any(line.startswith("  ⚠           validation: only 20 pairs") for line in shown)
    at = shown.index("A brown dog runs over the grass.")
    assert shown[at + 1] == "  Ein brauner Hund läuft über das Gras."
    assert sum(line == "" for line in shown) == 5


def test_pairs_as_json_have_all_of_it(capsys, tmp_path) -> None:
    multi30k(tmp_path)
    assert main(["data", "show", "multi30k#de,en", "--data-dir", str(tmp_path), "--json"]) == 0
    (shown,) = records(capsys)
    assert (shown["kind"], shown["languages"]) == ("pairs", ["de", "en"])
    assert shown["splits"]["train"]["pairs"] == 120
    assert {split: found["share"] for split, found in shown["overlap"].items()} == {"validation": 0.0, "test": 0.0}
    assert len(shown["examples"]) == 5 and shown["examples"][0][1] == "A brown dog runs over the grass."
    assert set(shown["sha256"]) == {"train", "validation", "test"} and len(shown["sha256"]["train"]) == 64
    assert any("only 20 pairs" in line for line in shown["warnings"])


def test_the_phrasebook_is_shown_with_its_own_splits_and_note(capsys, monkeypatch) -> None:
    monkeypatch.setattr(phrasebook, "DEFAULT_SIZE", 2_000)
    assert main(["data", "show", "phrasebook"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("phrasebook@2, en → de, generated") and "unseen_pairs" in shown
    assert "note        " in shown and "memorizes" in shown


def test_documents_are_shown_with_questions_baseline_and_examples(capsys) -> None:
    assert main(["data", "show", "biographies"]) == 0
    shown = lines(capsys)
    assert shown[0] == "biographies@1, generated"
    assert "  documents   train 4,000, validation 500" in shown
    assert any("train 250, validation 250; 500 distinct questions, 24 distinct answers" in line for line in shown)
    assert any(
        "'Arlow' is right for 12.0% of train questions (30 of 250), 12.0% of validation" in line for line in shown
    )
    assert any(line.startswith("  note") and "250 of the 500 people" in line for line in shown)
    assert any(line.startswith("Where was ") and "  →  " in line for line in shown[-4:])
    assert shown[-5] == "" and shown[-10] == ""


def test_labelled_texts_are_shown_with_their_classes_and_a_baseline(capsys) -> None:
    assert main(["data", "show", "bulletins"]) == 0
    shown = lines(capsys)
    assert shown[0] == "bulletins@1, generated" and "  texts       train 18,000, validation 2,000" in shown
    assert any(line.startswith("  classes     weather 3,671, markets 3,556") for line in shown)
    assert any("always answering 'result' is right for 25.8% of the validation texts" in line for line in shown)
    assert any(line.startswith("  note") and "the best possible classifier gets 88.96% right" in line for line in shown)
    assert all("  →  " in line for line in shown[-4:])


def test_documents_as_json_have_all_of_it(capsys) -> None:
    assert main(["data", "show", "biographies-named", "--json"]) == 0
    (shown,) = records(capsys)
    assert (shown["kind"], shown["version"]) == ("documents", "biographies-named@1")
    assert shown["documents"] == {"train": 2400, "validation": 300}
    assert shown["questions"] == {"train": 150, "validation": 150} and shown["different_questions"] == 300
    assert shown["majority"]["answer"] == "Arlow" and shown["majority"]["splits"]["validation"]["of"] == 150
    assert shown["recalls"] == dict.fromkeys(("recall", "recall-reworded", "recall-continued"), 300)
    assert shown["vocabulary"]["words"] > 400
    assert {len(sha256) for sha256 in shown["sha256"].values()} == {64} and len(shown["notes"]) == 2
    question, answer = shown["examples"]["questions"][0]
    assert question.count(". Where was ") == 1 and answer


def test_a_folder_of_documents_is_shown_and_poison_in_it_reaches_no_terminal(capsys, tmp_path) -> None:
    poison = "".join(f"\x1b]0;x\x07P{i}. P{i} \u202ewas born\x9b31m in T{i % 3}.\n" for i in range(40))
    (tmp_path / "documents.txt").write_text(poison, encoding="utf-8")
    assert main(["data", "show", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "  questions   none" in shown and "baseline" not in shown and "train 36, validation 4" in shown
    for name, rows in {"train": range(20), "dev": range(20, 40)}.items():
        table = "".join(f"Where was P{i} \x1b[2Jborn?\tT{i % 3}\x07\n" for i in rows)
        (tmp_path / f"{name}.tsv").write_text(table, encoding="utf-8")
    assert main(["data", "show", str(tmp_path)]) == 0
    shown += capsys.readouterr().out
    assert "always answering 'T0" in shown and not set(shown) & set("\x1b\x07\x9b\u202e")


def test_a_wrong_line_in_a_folder_of_documents_is_one_line(capsys, tmp_path) -> None:
    (tmp_path / "documents.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "train.tsv").write_text("Where?\tHere\nWhere?\n")
    (tmp_path / "validation.tsv").write_text("Where?\tHere\n")
    assert main(["data", "show", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "train.tsv: line 2: one column" in error and error.count("\n") == 1


@pytest.mark.parametrize("form", ["table", "columns", "files", "folder"])
def test_pairs_are_shown_by_any_path_that_a_run_takes(capsys, tmp_path, form: str) -> None:
    table(tmp_path / "own.tsv", 60)
    table(tmp_path / "own.txt", 60)
    for stem in ("text", "train"):
        for language in ("en", "de"):
            (tmp_path / f"{stem}.{language}").write_text("".join(f"{language} {stem} {i}\n" for i in range(60)))
    name = {
        "table": f"{tmp_path}/own.tsv",
        "columns": f"{tmp_path}/own.txt#2,1",
        "files": f"{tmp_path}/text.en,{tmp_path}/text.de",
        "folder": str(tmp_path),
    }[form]
    assert main(["data", "show", name, "--json"]) == 0
    (shown,) = records(capsys)
    assert shown["kind"] == "pairs" and shown["splits"]["train"]["pairs"] == 54


def test_poison_in_pairs_reaches_no_terminal(capsys, tmp_path) -> None:
    poison = "".join(f"\x1b]0;x\x07a {i}\t\u202eb\x9b31m {i}\n" for i in range(40))
    (tmp_path / "po.tsv").write_text(poison, encoding="utf-8")
    assert main(["data", "show", str(tmp_path / "po.tsv")]) == 0
    assert not set(capsys.readouterr().out) & set("\x1b\x07\x9b\u202e")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("multi3k", "did you mean 'multi30k'?"),
        ("playlet", "did you mean 'playlets'?"),
        ("biografies", "did you mean 'biographies'?"),
        ("cs224n-birthplaces", "put wiki.txt, birth_places_train.tsv, birth_dev.tsv, birth_test_inputs.tsv"),
        ("multi30k#fr,en", "has only the directions"),
        ("multi30k", "data fetch multi30k"),
        ("nowhere.tsv", "no such file"),
        ("nowhere.en,nowhere.de", "no such file"),
        ("nowhere.txt", "cannot be read"),
    ],
)
def test_what_cannot_be_shown_is_one_line(capsys, name: str, says: str) -> None:
    assert main(["data", "show", name]) == 2
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1 and "Traceback" not in error


# fetch


def archive(folder: Path) -> str:
    """A mirror with tatoeba's archive; gives back its hash."""
    path = folder / "tatoeba-en-de" / "deu-eng.zip"
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as opened:
        opened.writestr("deu.txt", "".join(f"{i} cats\t{i} Katzen\n" for i in range(2_500)))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_what_nobody_knows_the_hash_of_is_said_to_be_trusted_once_and_checked_after(
    capsys, tmp_path, monkeypatch
) -> None:
    found = archive(tmp_path / "mirror")
    monkeypatch.setenv("TUI_TRANSFORMER_MIRROR", str(tmp_path / "mirror"))
    common = ["data", "fetch", "tatoeba-en-de", "--data-dir", str(tmp_path / "data")]
    assert main(common) == 0
    out, err = capsys.readouterr()
    assert "with no known value to check it against" in out and found[:16] in out and "CC BY 2.0 FR" in err
    assert main(common) == 0
    assert "SHA-256 unchanged since the first download" in capsys.readouterr().out
    assert main([*common, "--json"]) == 0
    (record,) = records(capsys)
    assert record["checked"] == "recorded" and record["sha256"] == found
    assert main(["data", "show", "tatoeba-en-de", "--data-dir", str(tmp_path / "data")]) == 0
    assert "licence     CC BY 2.0 FR" in capsys.readouterr().out


def test_every_file_of_a_corpus_is_fetched_and_held_against_its_hash(capsys, tmp_path, monkeypatch) -> None:
    multi30k(tmp_path / "mirror")
    monkeypatch.setenv("TUI_TRANSFORMER_MIRROR", str(tmp_path / "mirror"))
    assert main(["data", "fetch", "multi30k", "--data-dir", str(tmp_path / "data")]) == 2
    assert "train.en.gz: its SHA-256 is" in capsys.readouterr().err
    assert not list((tmp_path / "data").rglob("*.gz"))


def test_files_that_no_address_has_come_from_a_mirror_or_by_hand(capsys, tmp_path, monkeypatch, real_data) -> None:
    fetch = ["data", "fetch", "cs224n-birthplaces", "--data-dir", str(tmp_path)]
    assert main(fetch) == 2
    error = capsys.readouterr().err
    assert f"put the file at {tmp_path}/cs224n-birthplaces/wiki.txt" in error and error.count("\n") == 1
    if (real_data / "cs224n-birthplaces" / "wiki.txt").is_file():
        monkeypatch.setenv("TUI_TRANSFORMER_MIRROR", str(real_data))
        assert main([*fetch, "--json"]) == 0
        assert [record["checked"] for record in records(capsys)] == ["known"] * 4
        assert main(["data", "show", "cs224n-birthplaces", "--data-dir", str(tmp_path)]) == 0
        assert "always answering 'London' is right in 4.5% of train" in capsys.readouterr().out


def test_fetch_takes_files_from_a_mirror_folder(capsys, tmp_path, monkeypatch, real_data) -> None:
    monkeypatch.setenv("TUI_TRANSFORMER_MIRROR", str(real_data))
    assert main(["data", "fetch", "tiny-shakespeare", "--data-dir", str(tmp_path)]) == 0
    assert (tmp_path / "tiny-shakespeare" / "input.txt").stat().st_size == 1_115_394
    capsys.readouterr()
    if (real_data / "multi30k" / "train.en.gz").is_file():
        assert main(["data", "fetch", "multi30k", "--data-dir", str(tmp_path), "--json"]) == 0
        assert [record["checked"] for record in records(capsys)] == ["known"] * 6
    assert main(["data", "fetch", "playlets"]) == 0


# A corpus of the wrong kind


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--preset", "demo", "--corpus", "multi30k"], "--preset multi30k trains on it"),
        (["--preset", "demo", "--corpus", "tatoeba-en-de"], "--preset tatoeba trains on it"),
        (["--preset", "multi30k", "--corpus", "playlets"], "--preset demo trains on it"),
        (["--preset", "report-translation", "--corpus", "tiny-shakespeare"], "--preset shakespeare-cpu trains on it"),
        (
            ["--preset", "demo", "--corpus", "biographies"],
            "documents with questions, but 'next-token' needs plain text",
        ),
        (["--preset", "multi30k", "--corpus", "biographies"], "translation needs sentence pairs, such as phrasebook"),
        (
            ["--preset", "demo", "--set", "data.tokenizer=words"],
            "playlets works only with character tokens, for which its floor and probes are defined",
        ),
        (["--preset", "multi30k", "--set", "data.tokenizer=words"], "word tokens are for texts and documents"),
    ],
)
@pytest.mark.parametrize("command", ["run", "check"])
def test_a_corpus_of_the_wrong_kind_is_one_line_that_says_what_fits(
    capsys, tmp_path, command: str, arguments: list[str], says: str
) -> None:
    where = ["--runs-dir", str(tmp_path / "runs")] if command == "run" else []
    assert main([command, *arguments, *where]) == 2
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1
    assert not (tmp_path / "runs").exists()


# Costs


def test_presets_show_counts_a_translation_before_its_data_is_here(capsys) -> None:
    assert main(["presets", "show", "multi30k"]) == 0
    assert "at most 7,579,392 parameters with a vocabulary of at most 8,003" in capsys.readouterr().out
    assert main(["presets", "show", "report-translation", "--json"]) == 0
    (shown,) = records(capsys)
    assert shown["parameters"] == 90_248_496 and shown["vocabulary_at_most"] is False
    assert shown["vocabulary"] == shown["source_vocabulary"] == 30_000


def test_a_check_counts_both_vocabularies(capsys, tmp_path, minimal_leak_probe) -> None:
    multi30k(tmp_path)
    changes = ["model.d_model=16", "model.n_heads=2", "model.d_ff=16", "data.shared_vocabulary=false"]
    changes += ["model.n_layers=1"]
    changes += ["model.tie_embeddings=false", "data.bpe_size=300", "train.batch_tokens=512", "train.threads=1"]
    sets = [part for change in changes for part in ("--set", change)]
    common = ["--preset", "multi30k", *sets, "--data-dir", str(tmp_path), "--device", "cpu"]
    assert main(["check", *common, "--json"]) == 0
    cost = records(capsys)[-1]
    assert main(["presets", "show", *common[1:-4], "--json"]) == 0
    (shown,) = records(capsys)
    assert cost["parameters"] == shown["parameters"] and cost["lints"] == []


@pytest.mark.parametrize("corpus", ["own.tsv#2,1", "text.en, text.de", ".#de,en"])
def test_a_run_on_your_own_pairs_finds_them_again_from_elsewhere(
    capsys, tmp_path, monkeypatch, minimal_leak_probe, corpus: str
) -> None:
    table(tmp_path / "own.tsv", 80)
    for stem in ("text", "train"):
        for language in ("en", "de"):
            (tmp_path / f"{stem}.{language}").write_text("".join(f"{language} {stem} {i}\n" for i in range(80)))
    changes = ["model.d_model=16", "model.n_heads=2", "model.d_ff=16", "data.bpe_size=300", "train.steps=2"]
    changes += ["model.n_layers=1"]
    changes += ["train.threads=1", "evaluation.every=2", "optimizer.warmup=1", "train.batch_tokens=256"]
    sets = [part for change in changes for part in ("--set", change)]
    where = ["--runs-dir", str(tmp_path / "runs"), "--device", "cpu", "--json"]
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--preset", "phrasebook", "--corpus", corpus, "--name", "mine", *sets, *where]) == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    capsys.readouterr()
    assert main(["evaluate", "mine", *where]) == 0
    facts = json.loads((tmp_path / "runs" / "mine" / "data.json").read_text())
    if "#" in corpus:
        assert facts["languages"] in (["de", "en"], ["source", "target"])
        assert facts["examples"][0]["source"].startswith(("Ein", "Zwei", "Kinder", "Eine", "de "))


# Held-out data that training has too


def held_out_of_training(folder: Path, kind: str) -> str:
    """A corpus whose validation part is cut from its training part."""
    sentences = [f"This is sentence {i}, the one about {i * i}." for i in range(60)]
    if kind == "text":
        (folder / "twice.txt").write_text("".join(f"{line}\n" for line in sentences) * 2)
        return str(folder / "twice.txt")
    if kind == "pairs":
        for language in ("en", "de"):
            (folder / f"train.{language}").write_text("\n".join(f"{language} {line}" for line in sentences))
            (folder / f"val.{language}").write_text("\n".join(f"{language} {line}" for line in sentences[:20]))
    else:
        (folder / "documents.txt").write_text("\n".join(sentences))
        (folder / "documents-validation.txt").write_text("\n".join(sentences[:20]))
    return str(folder)


OVERLAPPING = {
    "text": "validation text",
    "pairs": "validation pairs (20 of 20)",
    "documents": "validation documents' text",
}
AS_TASK = {
    "text": ("demo", ()),
    "pairs": ("phrasebook", ("data.tokenizer=characters", "model.context_length=64")),
    "documents": ("biographies-pretrain", ("data.tokenizer=characters", "model.context_length=128")),
}


@pytest.mark.parametrize("kind", OVERLAPPING)
def test_data_show_warns_of_held_out_data_that_is_also_in_training(capsys, tmp_path, kind: str) -> None:
    corpus = held_out_of_training(tmp_path, kind)
    assert main(["data", "show", corpus]) == 0
    (line,) = [line for line in lines(capsys) if "OVERLAP" in line]
    assert line.startswith(f"  ⚠ OVERLAP   100.0% of the {OVERLAPPING[kind]}") and "remove duplicates" in line
    assert main(["data", "show", corpus, "--json"]) == 0
    assert records(capsys)[0]["overlap"]["validation"]["share"] == 1.0


@pytest.mark.parametrize("name", ["playlets", "biographies", "phrasebook"])
def test_data_show_says_that_generated_corpora_do_not_overlap(capsys, name: str) -> None:
    assert main(["data", "show", name]) == 0
    shown = [line for line in lines(capsys) if line.startswith("  overlap")]
    assert shown and all(line.startswith(("  overlap     no passage", "  overlap     none of")) for line in shown)


@pytest.mark.parametrize("kind", OVERLAPPING)
def test_check_fails_where_validation_is_contained_in_training(capsys, tmp_path, kind: str) -> None:
    preset, more = AS_TASK[kind]
    small = ("model.n_layers=1", "model.d_model=16", "model.d_ff=32", "model.n_heads=2", "train.threads=1", *more)
    settings = [argument for setting in small for argument in ("--set", setting)]
    corpus = held_out_of_training(tmp_path, kind)
    assert main(["check", "--preset", preset, "--corpus", corpus, *settings, "--device", "cpu"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert f"✗ overlap OVERLAP: 100.0% of the {OVERLAPPING[kind]}" in out and out.count("✗") == 1
