"""The data home: files kept on this machine, downloaded from their public source when they are first needed."""

from __future__ import annotations

import hashlib
import os
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, Generic, TypeVar

from askwise.datasets.tables import table_digest
from askwise.errors import AskwiseError
from askwise.files import write_whole

UCI = "https://archive.ics.uci.edu/"
"""The UCI Machine Learning Repository, which distributes the tables."""

TIMEOUT_SECONDS = 30.0
"""Longest wait for a response of the server."""

SHIPPED = Path(__file__).parent / "shipped"
"""Files that come with the package; its README.md says whose they are."""

_UNREADABLE = (ValueError, OSError, EOFError, zlib.error, zipfile.BadZipFile)


T = TypeVar("T")


def unchanged(content: bytes) -> bytes:
    """The file as it is."""
    return content


def checksum(content: bytes, algorithm: str = "sha256") -> str:
    """Sha256 (or the older md5, where a distributor publishes no other) of a file, in hexadecimal."""
    return hashlib.new(algorithm, content, usedforsecurity=False).hexdigest()


@dataclass(frozen=True)
class DataFile(Generic[T]):
    """One file of the data home, at `path` below it: how to get it, read it, and check that it is the right one.

    `sources` are its addresses, tried in turn: full ones, or those below `UCI`. `pack` makes the bytes that are kept
    from those that a source sends, `read` the content, such as a table, from the kept ones; it raises ValueError where
    that cannot be done. `digest` is `digest_of` the right content.
    """

    path: str
    sources: tuple[str, ...]
    read: Callable[[bytes], T]
    digest: str
    pack: Callable[[bytes], bytes] = unchanged
    digest_of: Callable[[Any], str] = table_digest


def data_home() -> Path:
    """The folder named by the environment variable ASKWISE_DATA, or `askwise` in the user's cache folder."""
    named = os.environ.get("ASKWISE_DATA")
    if named:
        return Path(named).expanduser()
    if os.name == "nt":
        cache = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    else:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "askwise"


def fetch(file: DataFile[T]) -> T:
    """The verified content of a file of the data home or of the package; otherwise it is downloaded first."""
    target = data_home() / file.path
    for place in (target, SHIPPED / file.path):
        if place.exists():
            return _from_home(file, place)
    content, url = _download(file, target)
    try:
        content = file.pack(content)
        read = _verified(file, content)
    except _UNREADABLE as error:
        raise AskwiseError(
            f"datasets: {url} did not send the expected {target.name}: {error}. Nothing was kept. Try again "
            f"later, or save a good copy as {target}."
        ) from error
    _keep(content, target)
    return read


def _from_home(file: DataFile[T], target: Path) -> T:
    try:
        return _verified(file, target.read_bytes())
    except _UNREADABLE as error:
        origin = f", for instance from {_urls(file)[0]}" if file.sources else ""
        raise AskwiseError(
            f"datasets: the file {target} is not the expected one: {error}. Delete it, and the next call downloads it "
            f"again; or replace it by a good copy{origin}."
        ) from error


def _verified(file: DataFile[T], content: bytes) -> T:
    read = file.read(content)
    found = file.digest_of(read)
    if found != file.digest:
        raise ValueError(f"its checksum must be {file.digest} and is {found}")
    return read


def _urls(file: DataFile[Any]) -> list[str]:
    return [source if "://" in source else UCI + source for source in file.sources]


def _download(file: DataFile[Any], target: Path) -> tuple[bytes, str]:
    """What the first source that answers sends, and that source's URL."""
    if not file.sources:
        raise AskwiseError(f"datasets: the file {target} is missing. Put a complete copy of its folder there.")
    failures = []
    for url in _urls(file):
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response:
                return response.read(), url
        except (OSError, HTTPException) as error:
            failures.append(f"{url} ({error})")
    raise AskwiseError(
        f"datasets: {target.name} is not in the data home and could not be downloaded from "
        f"{' or '.join(failures)}. On a machine with a network, download it from there and save it as "
        f"{target.name} in the folder {target.parent}; or let the environment variable ASKWISE_DATA name a "
        f"folder that holds {file.path}."
    )


def _keep(content: bytes, target: Path) -> None:
    """Write a file atomically: readers see either no file or all of it."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, content)
    except OSError as error:
        raise AskwiseError(
            f"datasets: cannot write {target.name} into the folder {target.parent}: {error}. Let the "
            "environment variable ASKWISE_DATA name a folder that can be written."
        ) from error
