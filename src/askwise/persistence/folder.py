"""Folders whose content changes in one step: versions that never change, and a manifest that names one of them.

``folder/manifest.json`` lists the files with sizes and checksums; they are in ``folder/versions/<checksum of the
manifest>/``, with the signature. A new version is written beside the current one, and then the manifest is replaced,
which no reader can see half done. A manifest with a flipped bit names a version that is not there.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import shutil
import stat
import uuid
from collections.abc import Collection, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO

from askwise.errors import InvalidInput
from askwise.locking import file_lock
from askwise.persistence.strict_json import read_json, write_json

MANIFEST, SIGNATURE, VERSIONS, LOCK = "manifest.json", "manifest.sig", "versions", "lock"
LARGEST_MANIFEST = 64_000_000
SHORTEST_KEY = 16
FORMAT = 7
"""Version of the format; raised with every change that older versions of askwise cannot read."""
FLAT_FORMAT = 5
"""The format before versions, with the files beside the manifest; it is still read, as all since are."""
MOST_TRIES = 100
"""How often a reader starts again because a folder was saved meanwhile."""
OWN_NAME = re.compile(r"[0-9a-f]{64}|[0-9a-f]{32}\.part")
"""What is in ``versions`` besides the lock: versions, and what is being written or was left by a killed process."""


def write_folder(
    target: Path, manifest: Mapping[str, Any], files: Mapping[str, bytes], key_file: str | Path | None
) -> None:
    """Write `files` and their manifest as the current version; other versions are removed.

    Earlier versions are not kept, because they may hold training rows that the new one must not hold. Saving to one
    folder from several processes is done in turn; the last one stays.
    """
    key = None if key_file is None else read_key(key_file)
    target.parent.mkdir(parents=True, exist_ok=True)  # first: "new/../file" exists once "new" does
    check_target(target)
    listed = {name: {"size": len(content), "sha256": _digest(content)} for name, content in files.items()}
    described = write_json({"format": "askwise", "format_version": FORMAT, **manifest, "files": listed}, indent=1)
    signature = {} if key is None else {SIGNATURE: _signature(described, key).encode()}
    existed = target.exists()
    try:
        (target / VERSIONS).mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InvalidInput(f"{target} exists and is not a folder; choose another name.") from None
    with file_lock(target / VERSIONS / LOCK):
        try:
            check_target(target)  # again: something may have been put there meanwhile
            _prune(target)
            _put_into_version(target)
            _publish(target, described, {**files, **signature})
        finally:
            _prune(target)
            if not existed and not (target / MANIFEST).exists():
                _remove_empty(target)


def check_target(target: Path) -> None:
    """Refuse to replace anything that is not a folder saved before, or one whose first saving was interrupted."""
    if not os.path.lexists(target):
        return
    if target.is_symlink() or not target.is_dir():
        raise InvalidInput(f"{target} exists and is not a folder; choose another name.")
    names, versions = _names(target), target / VERSIONS
    ours = not versions.is_symlink() and all(map(_is_own, _names(versions)))
    known = {VERSIONS}
    if MANIFEST in names:
        try:
            content = _read_regular(target / MANIFEST, LARGEST_MANIFEST)
            manifest = _manifest(content, target / MANIFEST)
        except InvalidInput:
            ours = False
        else:
            known |= _beside(manifest)
            ours = ours and _names(versions / _digest(content)) <= {SIGNATURE, *manifest["files"]}
    if not ours or not names <= known:
        raise InvalidInput(f"{target} exists and is not a selector saved by askwise; choose another name.")


def read_folder(
    folder: Path, key_file: str | Path | None, only: Collection[str] | None = None
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest and the contents of the files, or of some, all checked; nothing is interpreted before that.

    If the folder is saved again while it is read, it is read again: the result is one version, whole.
    """
    for _ in range(MOST_TRIES):
        if folder.is_symlink() or not folder.is_dir():
            raise InvalidInput(f"{folder} is not a folder. askwise.load takes a folder that selector.save has written.")
        if MANIFEST not in _names(folder):
            raise InvalidInput(f"{folder} holds no {MANIFEST}; it was not written by selector.save, or not completely.")
        saved = _stamp(folder)
        try:
            return _read_version(folder, key_file, only)
        except InvalidInput:
            if _stamp(folder) == saved:
                raise
    raise InvalidInput(f"{folder} is saved again and again while it is read; stop that, and load it then.")


def _read_version(
    folder: Path, key_file: str | Path | None, only: Collection[str] | None
) -> tuple[dict[str, Any], dict[str, bytes]]:
    content = _read_regular(folder / MANIFEST, LARGEST_MANIFEST)
    names, versions = _names(folder), folder / VERSIONS
    if versions.is_symlink():
        raise InvalidInput(f"{versions} is a link, not a folder.")
    version = versions / _digest(content)
    flat = not _is_folder(version)
    place = folder if flat else version
    inside = _names(place)
    _check_signature(folder, place, SIGNATURE in inside, content, key_file)
    manifest = _manifest(content, folder / MANIFEST)
    _check_version(manifest)
    if flat and manifest["format_version"] != FLAT_FORMAT:
        raise InvalidInput(
            f"{folder} does not hold the version that its {MANIFEST} belongs to: the checksum of the manifest differs, "
            "or the folder is incomplete. It is damaged or altered."
        )
    listed = manifest["files"]
    extra = [
        *(names - _beside(manifest)),
        *(set() if flat else inside - {SIGNATURE, *listed}),
        *(f"{VERSIONS}/{name}" for name in _names(versions) if not _is_own(name)),
    ]
    if extra:
        raise InvalidInput(f"{folder} holds {min(extra)!r}, which its manifest does not list; remove it or save again.")
    wanted = {name: entry for name, entry in listed.items() if only is None or name in only}
    with ExitStack() as stack:  # what is open can be read to its end, even if it is removed meanwhile
        opened = {name: stack.enter_context(_open_regular(place / name)) for name in wanted}
        return manifest, {name: _checked(opened[name], place / name, entry) for name, entry in wanted.items()}


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


def _beside(manifest: Mapping[str, Any]) -> set[str]:
    """The names that may be beside the manifest: in the flat format, those of its files.

    They are removed, after they were put into a version, when such a folder is replaced.
    """
    flat = {SIGNATURE, *manifest["files"]} if manifest.get("format_version") == FLAT_FORMAT else set()
    return {MANIFEST, VERSIONS} | flat


def _is_plain_name(name: str) -> bool:
    return name not in ("", ".", "..", MANIFEST, SIGNATURE, VERSIONS) and not set(name) & set("/\\:\0")


def _check_version(manifest: Mapping[str, Any]) -> None:
    version = manifest.get("format_version")
    if type(version) is not int or version < 1:
        raise InvalidInput(f"The manifest has the format version {version!r}, which does not exist.")
    if version > FORMAT:
        raise InvalidInput(
            f"The folder was saved in format {version} by askwise {manifest.get('askwise')}; this askwise reads up to "
            f"{FORMAT}. Update askwise to load it."
        )
    if version < FLAT_FORMAT:
        raise InvalidInput(
            f"The folder was saved in format {version}, and this askwise reads {FLAT_FORMAT} to {FORMAT}. Fit and "
            f"save the selector again with this version (the folder was written by askwise {manifest.get('askwise')})."
        )


def _check_signature(folder: Path, place: Path, signed: bool, content: bytes, key_file: str | Path | None) -> None:
    if key_file is None:
        if signed:
            raise InvalidInput(
                f"{folder} is signed: give the key with askwise.load(folder, key_file=...). To load it without "
                f"checking who made it, delete {place / SIGNATURE}."
            )
        return
    key = read_key(key_file)
    if not signed:
        raise InvalidInput(f"{folder} is not signed, and key_file asks for a signature. It is not loaded.")
    given = _read_regular(place / SIGNATURE, 1000)
    if not hmac.compare_digest(given.strip(), _signature(content, key).encode()):
        raise InvalidInput(f"The signature of {folder} does not match key_file: another key, or an altered manifest.")


def _checked(file: BinaryIO, path: Path, entry: Any) -> bytes:
    if not isinstance(entry, dict) or type(entry.get("size")) is not int:
        raise InvalidInput(f"The manifest does not say the size of {path.name}; it was not written by askwise.")
    content = _content(file, path, entry["size"])
    if len(content) != entry["size"]:
        raise InvalidInput(f"{path} has {len(content)} bytes, and its manifest says {entry['size']}; it is truncated.")
    if _digest(content) != entry.get("sha256"):
        raise InvalidInput(f"{path} is not the file that was saved: its checksum differs. It is damaged or altered.")
    return content


def _read_regular(path: Path, largest: int) -> bytes:
    with _open_regular(path) as file:
        return _content(file, path, largest)


def _open_regular(path: Path) -> BinaryIO:
    """A regular file for reading; links, devices and pipes are refused."""
    try:
        handle = os.open(
            path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        )
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read ({error.strerror}); the folder is incomplete or altered.") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise InvalidInput(f"{path} is not a regular file.")
    return os.fdopen(handle, "rb")


def _content(file: BinaryIO, path: Path, largest: int) -> bytes:
    size = os.fstat(file.fileno()).st_size
    if size > largest:
        raise InvalidInput(f"{path} has {size} bytes, more than the {largest} that are expected.")
    return file.read(size + 1)


def _names(folder: Path) -> set[str]:
    """The names in a folder; none if it is not there (any more)."""
    try:
        return set(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return set()


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _is_own(name: str) -> bool:
    return name == LOCK or OWN_NAME.fullmatch(name) is not None


def _stamp(folder: Path) -> tuple[int, int] | None:
    """Something that differs between any two savings, even of the same content."""
    try:
        status = os.lstat(folder / MANIFEST)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _put_into_version(target: Path) -> None:
    """Put the files of a folder of the flat format into a version, so that it can be read until it is replaced."""
    present = _names(target) - {MANIFEST, VERSIONS}
    if not present:
        return
    manifest = _read_regular(target / MANIFEST, LARGEST_MANIFEST)
    if not _is_folder(target / VERSIONS / _digest(manifest)):  # else that much was done before it was interrupted
        _publish(target, manifest, {name: (target / name).read_bytes() for name in present})
    for name in present:
        (target / name).unlink()


def _publish(target: Path, manifest: bytes, files: Mapping[str, bytes]) -> None:
    """Write a version, then replace the manifest by the one that names it."""
    versions = target / VERSIONS
    version = versions / _digest(manifest)
    staged, pointer = (versions / f"{uuid.uuid4().hex}.part" for _ in range(2))
    staged.mkdir()
    for name, content in files.items():
        _write(staged / name, content)
    _sync(staged)
    _write(pointer, manifest)
    if _is_folder(version):  # saved before with the same content: whatever is damaged in it is put right
        for name in files:
            os.replace(staged / name, version / name)
        if SIGNATURE not in files:
            (version / SIGNATURE).unlink(missing_ok=True)
        _sync(version)
    else:
        staged.rename(version)
    _sync(versions)
    os.replace(pointer, target / MANIFEST)
    _sync(target)


def _prune(target: Path) -> None:
    """Remove everything in ``versions`` but the current one; only for who holds the lock, so that nobody writes it.

    What cannot be removed now, because the system does not remove files that are being read, is left to the next save.
    """
    try:
        current = _digest(_read_regular(target / MANIFEST, LARGEST_MANIFEST))
    except InvalidInput:
        current = ""
    for name in _names(target / VERSIONS) - {LOCK, current}:
        path = target / VERSIONS / name
        if _is_folder(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()


def _remove_empty(target: Path) -> None:
    """Leave nothing of a folder that could not be written."""
    with suppress(OSError):
        (target / VERSIONS / LOCK).unlink()
        (target / VERSIONS).rmdir()
        target.rmdir()


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Names reach the disk before the manifest that relies on them; not every system can be asked for that."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _signature(content: bytes, key: bytes) -> str:
    return hmac.new(key, content, hashlib.sha256).hexdigest()
