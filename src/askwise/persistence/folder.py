"""A folder that is complete or absent: files with a manifest of their sizes and checksums, and a signature."""

from __future__ import annotations

import hashlib
import hmac
import os
import shutil
import stat
import uuid
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from askwise.errors import InvalidInput
from askwise.persistence.strict_json import read_json, write_json

MANIFEST, SIGNATURE = "manifest.json", "manifest.sig"
LARGEST_MANIFEST = 64_000_000
SHORTEST_KEY = 16
FORMAT = 5
"""Version of the format; raised with every change that older versions of askwise cannot read."""


def write_folder(
    target: Path, manifest: Mapping[str, Any], files: Mapping[str, bytes], key_file: str | Path | None
) -> None:
    """Write `files` and their manifest under another name, then rename; a folder saved before is replaced."""
    key = None if key_file is None else read_key(key_file)
    target.parent.mkdir(parents=True, exist_ok=True)  # first: "new/../file" exists once "new" does
    check_target(target)
    listed = {name: {"size": len(content), "sha256": _digest(content)} for name, content in files.items()}
    described = write_json({"format": "askwise", "format_version": FORMAT, **manifest, "files": listed}, indent=1)
    everything = {**files, MANIFEST: described}
    if key is not None:
        everything[SIGNATURE] = _signature(described, key).encode()
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        part.mkdir()
        for name, content in everything.items():
            with (part / name).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        _put_in_place(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def check_target(target: Path) -> None:
    """Refuse to replace anything that is not a folder saved before."""
    if not os.path.lexists(target):
        return
    if target.is_symlink() or not target.is_dir():
        raise InvalidInput(f"{target} exists and is not a folder; choose another name.")
    names = {path.name for path in target.iterdir()}
    if not names:
        return
    known = {MANIFEST, SIGNATURE}
    if MANIFEST in names:
        try:
            path = target / MANIFEST
            known |= set(_manifest(_read_regular(path, LARGEST_MANIFEST), path)["files"])
        except InvalidInput:
            names.add("?")
    if not names <= known or MANIFEST not in names:
        raise InvalidInput(f"{target} exists and is not a selector saved by askwise; choose another name.")


def read_folder(
    folder: Path, key_file: str | Path | None, only: Collection[str] | None = None
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest and the contents of the files, or of some, all checked; nothing is interpreted before that."""
    if folder.is_symlink() or not folder.is_dir():
        raise InvalidInput(f"{folder} is not a folder. askwise.load takes a folder that selector.save has written.")
    names = {path.name for path in folder.iterdir()}
    if MANIFEST not in names:
        raise InvalidInput(f"{folder} holds no {MANIFEST}; it was not written by selector.save, or not completely.")
    content = _read_regular(folder / MANIFEST, LARGEST_MANIFEST)
    _check_signature(folder, SIGNATURE in names, content, key_file)
    manifest = _manifest(content, folder / MANIFEST)
    _check_version(manifest)
    listed = manifest["files"]
    extra = sorted(names - set(listed) - {MANIFEST, SIGNATURE})
    if extra:
        raise InvalidInput(f"{folder} holds {extra[0]!r}, which its manifest does not list; remove it or save again.")
    wanted = {name: entry for name, entry in listed.items() if only is None or name in only}
    return manifest, {name: _checked(folder / name, entry) for name, entry in wanted.items()}


def read_key(key_file: str | Path) -> bytes:
    """The secret key in a file."""
    try:
        key = Path(key_file).read_bytes().strip()
    except OSError as error:
        raise InvalidInput(f"key_file {str(key_file)!r} cannot be read: {error.strerror}.") from None
    if len(key) < SHORTEST_KEY:
        raise InvalidInput(f"key_file {str(key_file)!r} must hold at least {SHORTEST_KEY} bytes; got {len(key)}.")
    return key


def _manifest(content: bytes, path: Path) -> dict[str, Any]:
    manifest = read_json(content, MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("format") != "askwise":
        raise InvalidInput(f"{path} is not a manifest of askwise.")
    files = manifest.get("files")
    if not isinstance(files, dict) or not all(map(_is_plain_name, files)):
        raise InvalidInput(f"{path} must list files of its own folder by name; it was not written by askwise.")
    return manifest


def _is_plain_name(name: str) -> bool:
    return name not in ("", ".", "..", MANIFEST, SIGNATURE) and not set(name) & set("/\\:\0")


def _check_version(manifest: Mapping[str, Any]) -> None:
    version = manifest.get("format_version")
    if type(version) is not int or version < 1:
        raise InvalidInput(f"The manifest has the format version {version!r}, which does not exist.")
    if version > FORMAT:
        raise InvalidInput(
            f"The folder was saved in format {version} by askwise {manifest.get('askwise')}; this askwise reads up to "
            f"{FORMAT}. Update askwise to load it."
        )
    if version < FORMAT:
        raise InvalidInput(
            f"The folder was saved in format {version}, and this askwise reads {FORMAT}. Fit and save the "
            f"selector again with this version (the folder was written by askwise {manifest.get('askwise')})."
        )


def _check_signature(folder: Path, signed: bool, content: bytes, key_file: str | Path | None) -> None:
    if key_file is None:
        if signed:
            raise InvalidInput(
                f"{folder} is signed: give the key with askwise.load(folder, key_file=...). To load it without "
                f"checking who made it, delete {SIGNATURE}."
            )
        return
    key = read_key(key_file)
    if not signed:
        raise InvalidInput(f"{folder} is not signed, and key_file asks for a signature. It is not loaded.")
    given = _read_regular(folder / SIGNATURE, 1000)
    if not hmac.compare_digest(given.strip(), _signature(content, key).encode()):
        raise InvalidInput(f"The signature of {folder} does not match key_file: another key, or an altered manifest.")


def _checked(path: Path, entry: Any) -> bytes:
    if not isinstance(entry, dict) or type(entry.get("size")) is not int:
        raise InvalidInput(f"The manifest does not say the size of {path.name}; it was not written by askwise.")
    content = _read_regular(path, entry["size"])
    if len(content) != entry["size"]:
        raise InvalidInput(f"{path} has {len(content)} bytes, and its manifest says {entry['size']}; it is truncated.")
    if _digest(content) != entry.get("sha256"):
        raise InvalidInput(f"{path} is not the file that was saved: its checksum differs. It is damaged or altered.")
    return content


def _read_regular(path: Path, largest: int) -> bytes:
    """The content of a regular file that is not too large; links, devices and pipes are refused."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read ({error.strerror}); the folder is incomplete or altered.") from None
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise InvalidInput(f"{path} is not a regular file.")
    with os.fdopen(handle, "rb") as file:
        if status.st_size > largest:
            raise InvalidInput(f"{path} has {status.st_size} bytes, more than the {largest} that are expected.")
        return file.read(status.st_size + 1)


def _put_in_place(part: Path, target: Path) -> None:
    """Rename `part` to `target`; what stood there is removed afterwards, and put back if the renaming fails."""
    check_target(target)  # again: something may have been put there meanwhile
    if not os.path.lexists(target):
        part.rename(target)
        return
    old = target.with_name(f".{target.name}.{uuid.uuid4().hex}.old")
    target.rename(old)
    try:
        part.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _signature(content: bytes, key: bytes) -> str:
    return hmac.new(key, content, hashlib.sha256).hexdigest()
