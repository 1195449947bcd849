"""A lock for objects with a cache that can be copied and pickled."""

from __future__ import annotations

import threading
from typing import Any


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
