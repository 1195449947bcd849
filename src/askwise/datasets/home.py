"""The data home: files kept on this machine, fetched from their public source when they are first needed."""

from __future__ import annotations

import os
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

import pandas as pd

from askwise.datasets.tables import table_digest
from askwise.errors import AskwiseError
from askwise.files import write_whole

UCI = "https://archive.ics.uci.edu/"
"""The UCI Machine Learning Repository, which distributes all the files below."""

TIMEOUT_SECONDS = 30.0
"""How long the server may stay silent."""

_UNREADABLE = (ValueError, OSError, EOFError, zlib.error, zipfile.BadZipFile)


def _unchanged(content: bytes) -> bytes:
    return content


@dataclass(frozen=True)
class DataFile:
    """One file of the data home, and how to get it, read it and know that it is the right one.

    Attributes
    ----------
    path
        Its place below the data home.
    sources
        Its addresses below `UCI`, tried in turn.
    read
        From the file's bytes to its table; raises ValueError where that cannot be done.
    digest
        `table_digest` of the right table.
    pack
        From the bytes that the source sends to the bytes that are kept.
    """

    path: str
    sources: tuple[str, ...]
    read: Callable[[bytes], pd.DataFrame]
    digest: str
    pack: Callable[[bytes], bytes] = _unchanged


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


def fetch(file: DataFile) -> pd.DataFrame:
    """The table of a file: verified, from the data home, or downloaded into it where it is not there yet."""
    target = data_home() / file.path
    if target.exists():
        return _from_home(file, target)
    content, url = _download(file, target)
    try:
        content = file.pack(content)
        table = _verified(file, content)
    except _UNREADABLE as error:
        raise AskwiseError(
            f"datasets: {url} did not send the expected {target.name}: {error}. Nothing was kept. Try again "
            f"later, or save a good copy as {target}."
        ) from error
    _keep(content, target)
    return table


def _from_home(file: DataFile, target: Path) -> pd.DataFrame:
    try:
        return _verified(file, target.read_bytes())
    except _UNREADABLE as error:
        raise AskwiseError(
            f"datasets: the file {target} is not the expected table: {error}. Delete it, and the next call "
            f"downloads it again; or replace it by a good copy, for instance from {_urls(file)[0]}."
        ) from error


def _verified(file: DataFile, content: bytes) -> pd.DataFrame:
    table = file.read(content)
    found = table_digest(table)
    if found != file.digest:
        raise ValueError(f"its digest must be {file.digest[:12]}..., and is {found[:12]}...")
    return table


def _urls(file: DataFile) -> list[str]:
    return [UCI + source for source in file.sources]


def _download(file: DataFile, target: Path) -> tuple[bytes, str]:
    """What the first source that answers sends, and that source's URL."""
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
    """Write a file at once or not at all: readers see either no file or the whole of it."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, content)
    except OSError as error:
        raise AskwiseError(
            f"datasets: cannot write {target.name} into the folder {target.parent}: {error}. Let the "
            "environment variable ASKWISE_DATA name a folder that can be written."
        ) from error
