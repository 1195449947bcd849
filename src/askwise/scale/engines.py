"""Where row groups are processed: in this process, in local worker processes, or on a Dask cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from joblib.externals import loky

from askwise.errors import AskwiseError, InvalidInput

ENGINES = ("local", "dask")
SECONDS_TO_CLOSE = 10
MOST_RESTARTS = 3
"""Times that the local workers are started again after one of them was killed."""


def check_engine(engine: Any, address: str | None) -> None:
    """An error for an engine that is not known, or an address that it has no use for."""
    if engine not in ENGINES:
        raise InvalidInput(f"engine must be one of {ENGINES}; got {engine!r}.")
    if address is not None and engine != "dask":
        raise InvalidInput(f'address={address!r} is that of a Dask scheduler; it needs engine="dask".')


def run_tasks(
    task: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], engine: str, workers: int, address: str | None
) -> Iterator[Any]:
    """The results of ``task(*arguments)`` for all arguments, in any order; a killed worker's tasks are run again."""
    if engine == "dask":
        return _on_dask(task, arguments, workers, address)
    return _locally(task, arguments, workers)


def _locally(task: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], workers: int) -> Iterator[Any]:
    if workers == 1:
        yield from (task(*given) for given in arguments)
        return
    open_tasks = dict(enumerate(arguments))
    for attempt in range(MOST_RESTARTS + 1):
        try:
            with loky.ProcessPoolExecutor(max_workers=workers) as pool:
                futures = {pool.submit(task, *given): number for number, given in open_tasks.items()}
                for future in loky.as_completed(futures):
                    result = future.result()
                    del open_tasks[futures[future]]
                    yield result
            return
        except loky.BrokenProcessPool:
            if attempt == MOST_RESTARTS:
                raise AskwiseError(
                    "Worker processes were killed again and again, most likely because memory ran out. Finished parts "
                    "are kept; run the same again with fewer workers or smaller parts."
                ) from None


def _on_dask(
    task: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], workers: int, address: str | None
) -> Iterator[Any]:
    distributed = import_distributed()
    with dask_client(workers, address) as client:
        # pure=False: equal arguments of another run must not give its results.
        tasks = client.map(task, *zip(*arguments, strict=True), pure=False, batch_size=1)
        try:
            for future in distributed.as_completed(tasks):
                yield future.result()
        except distributed.KilledWorker as error:
            raise AskwiseError(
                f"A task killed one Dask worker after another, most likely because memory ran out ({error}). Finished "
                "parts are kept; run the same again with more memory or smaller parts."
            ) from None


@contextlib.contextmanager
def dask_client(workers: int, address: str | None) -> Iterator[Any]:
    """A client of the cluster at `address`; without one, of local worker processes that end with it."""
    distributed = import_distributed()
    if address is not None:
        try:
            client = distributed.Client(address, timeout="20s")
        except OSError as error:
            raise AskwiseError(f"There is no Dask scheduler at {address}: {error}") from None
        with client:
            yield client
        return
    cluster = distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
    try:
        with distributed.Client(cluster) as client:
            yield client
    finally:
        # A worker that was killed may be just starting again, and then does not answer; it ends with this process.
        with contextlib.suppress(TimeoutError):
            cluster.close(timeout=SECONDS_TO_CLOSE)


def import_distributed() -> Any:
    """The package dask.distributed; if it is not installed, an error that names the extra."""
    try:
        import distributed
    except ImportError:
        raise AskwiseError('engine="dask" needs Dask: pip install "askwise[dask]".') from None
    return distributed
