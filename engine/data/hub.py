"""Texts from the Hugging Face Hub, by name and revision. No torch here.

    hf:owner/name                        its main branch, as it is when it is fetched
    hf:owner/name@1a2b3c:story           a branch, tag or commit, and the field to read
    hf:owner/name/folder@1a2b3c          one folder of several

`data fetch` gets the files with `huggingface_hub` (an extra), which reads HF_ENDPOINT (a mirror) and HF_TOKEN. They
go into hub/OWNER/NAME/COMMIT under a data folder, beside a list of what was fetched; nothing is read without it.
"""

import hashlib
import json
import logging
import os
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar
from urllib.parse import urlsplit

from engine.base.cache_folder import try_write_atomically
from engine.base.clean import clean_line
from engine.base.command_line import command_line
from engine.base.errors import InputError, comma_separated, reason, write_error
from engine.base.language import Message, tr
from engine.base.plain_files import read_regular_file
from engine.base.progress import Progress
from engine.data.download import ENDPOINT_VARIABLE, sha256_of
from engine.data.sources import IN_FOLDERS, INNER, Source, group_by_split, is_text, split_name
from engine.data.text_files import Reading

PREFIX = "hf:"
NAME_PATTERN = re.compile(
    r"hf:(?P<owner>[\w.-]+)/(?P<name>[\w.-]+)(?P<folder>(?:/[\w.-]+)*)(?:@(?P<revision>[\w./-]+))?(?::(?P<field>.+))?"
)
MAIN = "main"
MOST_LISTED = 1 << 24  # bytes of a list of files
TOKEN_VARIABLE = "HF_TOKEN"
PATIENCE = 300.0  # seconds to wait for a list of files, and for each file in addition to its bytes
SLOWEST = 10_000  # bytes a second; the library itself waits for ever for a server that sends a byte now and then
Found = TypeVar("Found")


@dataclass(frozen=True)
class HubCorpus:
    repository: str  # owner/name
    folder: str  # "" for the whole
    revision: str
    field: str | None

    @property
    def uri(self) -> str:
        inner = f"/{self.folder}" if self.folder else ""
        field = f":{self.field}" if self.field else ""
        return f"{PREFIX}{self.repository}{inner}@{self.revision}{field}"


@dataclass(frozen=True)
class FetchedFiles:
    """What was fetched: the files of one commit."""

    folder: Path  # of the commit
    commit: str
    files: tuple[str, ...]


def parse(corpus: str) -> HubCorpus | None:
    """Return what `hf:…` names; None for anything else. Raises InputError: it names nothing."""
    if not corpus.startswith(PREFIX):
        return None
    match = NAME_PATTERN.fullmatch(corpus)
    parts = corpus.removeprefix(PREFIX).split("/")
    if match is None or not {".", ".."}.isdisjoint(parts):
        raise InputError(
            Message(
                "corpus '{corpus}': must be hf:OWNER/NAME, then any of /FOLDER, @REVISION, :FIELD", corpus=corpus[:80]
            )
        )
    repository = f"{match['owner']}/{match['name']}"
    return HubCorpus(repository, match["folder"].strip("/"), match["revision"] or MAIN, match["field"])


def _listing_path(wanted: HubCorpus, folder: Path) -> Path:
    key = hashlib.sha256(f"{wanted.folder}@{wanted.revision}".encode()).hexdigest()[:16]
    return folder / "hub" / wanted.repository / f"{key}.json"


def find_fetched(wanted: HubCorpus, folders: Sequence[Path]) -> FetchedFiles | None:
    """Return the fetched files of a corpus, from the first data folder that has all of them."""
    for folder in folders:
        try:
            kept = json.loads(read_regular_file(_listing_path(wanted, folder), MOST_LISTED))
            commit, files = str(kept["commit"]), tuple(str(file) for file in kept["files"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        place = folder / "hub" / wanted.repository / commit
        if _is_safe_path(commit) and files and all(_is_safe_path(file) and (place / file).is_file() for file in files):
            return FetchedFiles(place, commit, files)
    return None


def make_source(wanted: HubCorpus, fetched: FetchedFiles, reading: Reading, *, by_document: bool = True) -> Source:
    """Return the files of a corpus that was fetched, to be read."""
    files = [fetched.folder / file for file in fetched.files]
    return Source(
        fetched.folder, wanted.field, group_by_split(fetched.folder, files, reading.version), by_document, reading
    )


def pin_commit(corpus: str, folders: Sequence[Path]) -> str:
    """Return a corpus with the commit that was fetched in place of its branch, so that it stays the same."""
    wanted = parse(corpus)
    kept = None if wanted is None else find_fetched(wanted, folders)
    if wanted is None or kept is None:
        return corpus
    return HubCorpus(wanted.repository, wanted.folder, kept.commit, wanted.field).uri


def missing_error(name: str, folders: Sequence[Path], meanwhile: str) -> InputError:
    looked = comma_separated(str(folder)[:120] for folder in folders)
    problem = Message(
        "corpus '{name}' is not on this machine: run `{command_line}` to get it from the Hugging Face Hub (looked "
        "in {looked}); {meanwhile}",
        name=name[:120],
        command_line=command_line("data", "fetch", name),
        looked=looked,
        meanwhile=meanwhile,
    )
    return InputError(problem)


def fetch(wanted: HubCorpus, folder: Path) -> FetchedFiles:
    """Download the texts of a corpus into a data folder, and return them; what is there already is not fetched again.
    Raises InputError: no `huggingface_hub`, no network, no such corpus or revision, nothing to read in it, a damaged
    file.
    """
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.utils.tqdm import disable_progress_bars  # ours is shown
    except ImportError:
        raise InputError(
            Message(
                "{corpus}: fetching it needs huggingface_hub: run pip install 'tui-transformer[hub]'", corpus=wanted.uri
            )
        ) from None
    endpoint = os.environ.get(ENDPOINT_VARIABLE) or None
    if endpoint is not None and not _is_allowed_endpoint(endpoint):
        shown = endpoint.rpartition("@")[2][:80]  # what precedes it may be a password
        raise InputError(
            Message("{variable} = {endpoint}: must be an https address", variable=ENDPOINT_VARIABLE, endpoint=shown)
        )
    disable_progress_bars()
    logging.getLogger("huggingface_hub").setLevel(logging.CRITICAL + 1)  # what goes wrong is said below, in one line
    api = HfApi(endpoint=endpoint, token=os.environ.get(TOKEN_VARIABLE) or None)
    try:
        ask = partial(api.dataset_info, wanted.repository, revision=wanted.revision, files_metadata=True)
        info = _call_within(PATIENCE, ask)
        listing = {one.rfilename: one for one in info.siblings or ()}
        commit, files = str(info.sha), choose_corpus_files(wanted, [name for name in listing if _is_safe_path(name)])
        if not _is_safe_path(commit):
            raise ValueError(commit)
        place = folder / "hub" / wanted.repository / commit
        total, done = sum(listing[file].size or 0 for file in files), 0
        progress = Progress(tr("fetching {corpus}", corpus=wanted.uri), total)
        for file in files:
            path = place / file
            if not _is_as_listed(path, listing[file]):
                progress.update(done)
                path.unlink(missing_ok=True)
                get = partial(api.hf_hub_download, repo_type="dataset", revision=commit, local_dir=place)
                size = listing[file].size or 0
                _call_within(PATIENCE + size / SLOWEST, partial(get, wanted.repository, file))
                if not _is_as_listed(path, listing[file]):
                    path.unlink(missing_ok=True)
                    problem = Message(
                        "{corpus}: {file} was damaged in transit; try again", corpus=wanted.uri, file=file
                    )
                    raise InputError(problem)
            done += listing[file].size or 0
            progress.update(done)
    except InputError:
        raise
    except OSError as error:  # connection errors too
        if error.errno is not None and error.filename is not None:
            raise write_error(tr("{target}: cannot be written", target=folder), error) from None
        raise _fetch_error(wanted, error) from None
    except Exception as error:  # the library's own exceptions, and those of its HTTP client
        raise _fetch_error(wanted, error) from None
    for revision in {wanted.revision, commit}:
        kept = HubCorpus(wanted.repository, wanted.folder, revision, None)
        body = json.dumps({"corpus": kept.uri, "commit": commit, "files": files}, indent=1).encode()
        try_write_atomically(_listing_path(kept, folder), lambda out, body=body: out.write(body))  # type: ignore[misc]
    return FetchedFiles(place, commit, tuple(files))


def _is_allowed_endpoint(address: str) -> bool:
    """Whether an address is https, or of this machine, and has no user name, which could look like another host."""
    try:
        parts = urlsplit(address)
        local = parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")
        return "@" not in parts.netloc and bool(parts.hostname) and (local or parts.scheme == "https")
    except ValueError:
        return False


def _call_within(seconds: float, call: Callable[[], Found]) -> Found:
    """Return what a call returns, or raise TimeoutError and leave it to its thread, which ends with the process."""
    answer: Future[Found] = Future()

    def work() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        return answer.result(seconds)
    except TimeoutError:
        raise TimeoutError(tr("no complete answer after {seconds:,.0f} s", seconds=seconds)) from None


def _is_as_listed(path: Path, listed: Any) -> bool:
    """Return whether a file has the size that the Hub lists, and the SHA-256 or, for a small one, git's SHA-1."""
    if not path.is_file() or listed.size not in (None, size := path.stat().st_size):
        return False
    if listed.lfs is not None:
        return bool(sha256_of(path) == listed.lfs.sha256)
    digest = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as file:
        return listed.blob_id is None or hashlib.file_digest(file, lambda: digest).hexdigest() == listed.blob_id


def _fetch_error(wanted: HubCorpus, error: Exception) -> InputError:
    why = reason(error).partition("\n")[0][:200] or type(error).__name__
    if type(error).__module__ in ("builtins", "json.decoder") and not isinstance(error, OSError | UnicodeEncodeError):
        why = tr("the server does not answer like the Hub")  # the library stumbled over them
    problem = Message(
        "{corpus}: cannot be fetched ({why}); set {endpoint} to use a mirror, and {token} if the corpus is not public",
        corpus=wanted.uri,
        why=why,
        endpoint=ENDPOINT_VARIABLE,
        token=TOKEN_VARIABLE,
    )
    return InputError(problem)


def choose_corpus_files(wanted: HubCorpus, names: Iterable[str]) -> list[str]:
    """Return the texts in a corpus's folder: those directly in it, in data/ or in the folders of splits, or else those
    of the only folder that has any. Raises InputError: none, or several folders.
    """
    texts = sorted(name for name in names if is_text(PurePosixPath(name)))
    prefix = f"{wanted.folder}/" if wanted.folder else ""
    inside = [name for name in texts if name.startswith(prefix)]
    tables = [name for name in inside if PurePosixPath(name).suffix.lower() in IN_FOLDERS]
    inside = tables or inside
    direct = [name for name in inside if _has_only_standard_folders(PurePosixPath(name.removeprefix(prefix)))]
    if direct:
        return direct
    folders = sorted({name.removeprefix(prefix).partition("/")[0] for name in inside})
    if len(folders) == 1:
        return inside
    if not folders:
        problem = Message(
            "{corpus}: no text files found (looked for .txt, {kinds})",
            corpus=wanted.uri,
            kinds=comma_separated(IN_FOLDERS),
        )
        raise InputError(problem)
    problem = Message(
        "{corpus}: several folders contain text ({folders}); name one, as in {first}",
        corpus=wanted.uri,
        folders=comma_separated(folders[:8]),
        first=f"{PREFIX}{wanted.repository}/{prefix}{folders[0]}",
    )
    raise InputError(problem)


def _has_only_standard_folders(path: PurePosixPath) -> bool:
    return all(part == INNER or split_name(Path(part)) for part in path.parts[:-1])


def _is_safe_path(name: str) -> bool:
    """Return whether a path from elsewhere stays in its folder, and can be shown as it is."""
    shown, parts = clean_line(name) == name, name.split("/")
    return shown and "\\" not in name and ":" not in name and not any(part in ("", ".", "..") for part in parts)
