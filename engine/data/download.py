"""Fetch a corpus: https only, size-capped, hash-checked, resumable; or copy it from a mirror folder.

A download gets its own name only once its SHA-256 matches; until then it is a `.part` file. A file whose hash is not
known in advance is trusted on first use: its hash is stored beside it and must match from then on. `huggingface_hub`
would not be shorter and does less: it caps no size and follows redirects to plain http.
"""

import contextlib
import hashlib
import http.client
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.base.command_line import command_line
from engine.base.errors import InputError, write_error
from engine.base.language import Message, tr
from engine.data.corpus import Remote

BLOCK = 1 << 16
TIMEOUT = 30.0  # seconds without data
MIRROR_VARIABLE = "TUI_TRANSFORMER_MIRROR"
ENDPOINT_VARIABLE = "HF_ENDPOINT"


OpenUrl = Callable[[str, int], http.client.HTTPResponse]
ProgressCallback = Callable[[int, int], None]


class _HttpsOnly(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if not newurl.startswith("https://"):
            raise urllib.error.URLError(tr("redirected to {newurl}, which is not https", newurl=newurl[:80]))
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def open_url(url: str, start: int) -> http.client.HTTPResponse:
    if not url.startswith("https://"):
        raise urllib.error.URLError(tr("only https URLs are fetched"))
    request = urllib.request.Request(url, headers={"User-Agent": "tui-transformer"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    response: http.client.HTTPResponse = urllib.request.build_opener(_HttpsOnly).open(request, timeout=TIMEOUT)
    return response


def apply_endpoint(url: str) -> str:
    """Return the URL with Hugging Face's host replaced by HF_ENDPOINT, if set."""
    endpoint = os.environ.get(ENDPOINT_VARIABLE, "").rstrip("/")
    host = "https://huggingface.co/"
    return f"{endpoint}/{url[len(host) :]}" if endpoint and url.startswith(host) else url


def fetch(
    remote: Remote, folder: Path, *, progress: ProgressCallback = lambda done, size: None, opener: OpenUrl = open_url
) -> Path:
    """Put a remote file in its place under a data folder, unless it is there and intact. It is copied from the folder
    TUI_TRANSFORMER_MIRROR, which has the same layout, if that is set; `progress` is called with bytes so far and the
    cap. Raises InputError: no network, a wrong hash, too large, or a folder that cannot be written.
    """
    target, url = folder / remote.file, apply_endpoint(remote.url)
    expected = remote.sha256 or recorded_sha256(target)
    if target.is_file():
        there = sha256_of(target)
        if there == (expected or there):
            _record_sha256(remote, target, there)
            return target
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if expected is None:  # nothing would detect that the file changed after its first part was fetched
            part.unlink(missing_ok=True)
        named = os.environ.get(MIRROR_VARIABLE)
        source = Path(named) / remote.file if named else None
        if source is not None:
            if not source.is_file():
                lacks = tr("the mirror folder {named} has no {file}", named=named, file=remote.file)
                problem = Message(
                    "{lacks}; unset {mirror_variable} to download it instead",
                    lacks=lacks,
                    mirror_variable=MIRROR_VARIABLE,
                )
                raise InputError(problem)
            if source.stat().st_size > remote.max_bytes:
                problem = Message(
                    "{source}: larger than the limit of {max_bytes:,} bytes", source=source, max_bytes=remote.max_bytes
                )
                raise InputError(problem)
            shutil.copyfile(source, part)
        elif not remote.url:
            problem = Message(
                "{file}: this file has no fixed download address; {by_hand}",
                file=remote.file,
                by_hand=_manual_hint(remote, target),
            )
            raise InputError(problem)
        else:
            _download(url, part, remote.max_bytes, progress, opener)
        found = sha256_of(part)
        if found != (expected or found):
            part.unlink(missing_ok=True)
            where = source or url
            advice = tr("Try again, or get the file from somewhere else")
            if remote.sha256 is None:
                advice = tr(
                    "If the file was changed on purpose, delete {record_of} to accept the new version",
                    record_of=sha256_path(target),
                )
            problem = Message(
                "{where}: its SHA-256 is {found}… but should be {expected}…; nothing was kept. {advice}",
                where=where,
                found=found[:12],
                expected=str(expected)[:12],
                advice=advice,
            )
            raise InputError(problem)
        part.replace(target)
        _record_sha256(remote, target, found)
    except urllib.error.HTTPError as error:
        problem = Message(
            "{url}: the server answered {code}; {by_hand}",
            url=url,
            code=error.code,
            by_hand=_manual_hint(remote, target),
        )
        raise InputError(problem) from None
    except (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error) or type(error).__name__
        problem = Message(
            "{url}: cannot be downloaded ({reason}); {by_hand}",
            url=url,
            reason=reason,
            by_hand=_manual_hint(remote, target),
        )
        raise InputError(problem) from None
    except OSError as error:
        raise write_error(tr("{target}: cannot be written", target=target), error) from None
    return target


def _manual_hint(remote: Remote, target: Path) -> str:
    how = (
        tr(
            "if you are offline, put the file at {target}, or set {mirror_variable} to a folder that has "
            "{file}; built-in corpora (see `{command_line}`) need no download"
        )
        if remote.url
        else tr(
            "put the file at {target}, or set {mirror_variable} to a folder that has {file}; built-in "
            "corpora (see `{command_line}`) need no download"
        )
    )
    return how.format(
        target=target, file=remote.file, mirror_variable=MIRROR_VARIABLE, command_line=command_line("data", "list")
    )


def _download(url: str, part: Path, most: int, progress: ProgressCallback, opener: OpenUrl) -> None:
    done = part.stat().st_size if part.is_file() else 0
    if done >= most:  # left by something else; not the start of this file
        part.unlink()
        done = 0
    if not url.startswith("https://"):  # before any request, whichever opener is used
        problem = Message(
            "{url}: only https URLs are fetched; set {endpoint_variable} to an https address, or "
            "{mirror_variable} to a local folder",
            url=url,
            endpoint_variable=ENDPOINT_VARIABLE,
            mirror_variable=MIRROR_VARIABLE,
        )
        raise InputError(problem)
    try:
        response = opener(url, done)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not done:  # the server has no more than we have
            raise
        part.unlink()
        done, response = 0, opener(url, 0)
    try:
        if done and response.status != 206:  # the server starts over
            done = 0
        with part.open("ab" if done else "wb") as file:
            while block := response.read(BLOCK):
                done += len(block)
                if done > most:
                    file.close()
                    part.unlink(missing_ok=True)
                    raise InputError(Message("{url}: larger than the limit of {most:,} bytes", url=url, most=most))
                file.write(block)
                progress(done, most)
        if getattr(response, "length", None):  # announced bytes that never came
            raise ConnectionError(tr("the connection closed before the file was complete"))
    finally:
        response.close()


def sha256_path(target: Path) -> Path:
    """Return the path of the stored hash of a file trusted on first use, in `sha256sum`'s format."""
    return target.with_name(target.name + ".sha256")


def recorded_sha256(target: Path) -> str | None:
    """Return the hash from this file's first fetch; None if there was none, or the record is damaged."""
    try:
        words = sha256_path(target).read_text(encoding="ascii")[:200].split()
    except (OSError, ValueError):
        return None
    return words[0] if words and len(words[0]) == 64 and set(words[0]) <= set("0123456789abcdef") else None


def _record_sha256(remote: Remote, target: Path, found: str) -> None:
    if remote.sha256 is not None or recorded_sha256(target) == found:
        return
    with contextlib.suppress(OSError):  # a read-only folder; the file itself is enough
        sha256_path(target).write_text(f"{found}  {target.name}\n", encoding="ascii")


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
