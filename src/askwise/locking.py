"""Locks: of objects with a cache that can be copied and pickled, and of files among processes."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from askwise.errors import AskwiseError


class Lock:
    """A mutex for ``with``; a copy or a pickle of it is a new, unlocked one.

    >>> import pickle
    >>> with Lock() as lock:
    ...     with pickle.loads(pickle.dumps(lock)):
    ...         pass
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()

    def __enter__(self) -> Lock:
        self._mutex.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        self._mutex.release()

    def __reduce__(self) -> tuple[Any, ...]:
        return Lock, ()


class LockHeldError(AskwiseError):
    """Another process, or another thread, holds the lock."""


@contextmanager
def file_lock(path: Path, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a file, which is made with its folder; it ends with the process, however that ends.

    Parameters
    ----------
    path
        The file. Who holds its lock may remove it.
    wait
        Whether to wait for another holder; else `LockHeldError` is raised.
    """
    handle = _locked(path, wait)
    try:
        yield
    finally:
        _release(handle)
        os.close(handle)


def _locked(path: Path, wait: bool) -> int:
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        except FileNotFoundError:  # the last holder has removed the folder meanwhile
            continue
        try:
            _acquire(handle, wait)
            if _is_at(path, handle):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # the last holder has removed the file: its lock keeps nobody out


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except OSError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _acquire(handle: int, wait: bool) -> None:
        while True:
            try:
                msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)  # waits for ten seconds
                return
            except OSError:
                if not wait:
                    raise LockHeldError("The lock is held.") from None

    def _release(handle: int) -> None:
        os.lseek(handle, 0, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _acquire(handle: int, wait: bool) -> None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockHeldError("The lock is held.") from None

    def _release(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)
