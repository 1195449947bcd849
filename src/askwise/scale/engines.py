"""Where row groups are processed: in this process, in local worker processes, on a Dask cluster, or by Spark."""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from joblib.externals import loky

from askwise.errors import AskwiseError, InvalidInput

if TYPE_CHECKING:
    import pandas as pd

ENGINES = ("local", "dask", "spark")
SECONDS_TO_CLOSE = 10
MOST_RESTARTS = 3
"""Times that the local workers are started again after one of them was killed."""


def check_engine(engine: Any, address: str | None) -> None:
    """An error for an engine that is not known, or an address that it has no use for."""
    if engine not in ENGINES:
        raise InvalidInput(f"engine must be one of {ENGINES}; got {engine!r}.")
    if address is not None and engine == "local":
        raise InvalidInput(
            f'address={address!r} is that of a Dask scheduler or a Spark master; it needs engine="dask" or '
            'engine="spark".'
        )


def run_tasks(
    task: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], engine: str, workers: int, address: str | None
) -> Iterator[Any]:
    """The results of ``task(*arguments)`` for all arguments, in any order; a killed worker's tasks are run again."""
    if engine == "dask":
        return _on_dask(task, arguments, workers, address)
    if engine == "spark":
        return _on_spark(task, arguments, workers, address)
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


def _on_spark(
    task: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], workers: int, address: str | None
) -> Iterator[Any]:
    """Each task is a partition with one row, its number; `mapInPandas` carries it out in a Python worker."""

    def carried_out(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            yield batch.assign(result=[pickle.dumps(_result(task, arguments[k])) for k in batch["number"]])

    with spark_session(workers, address) as session:
        numbers = session.range(0, len(arguments), 1, len(arguments)).withColumnRenamed("id", "number")
        try:
            rows = numbers.mapInPandas(carried_out, "number long, result binary").collect()
        except _spark_errors() as error:
            raise AskwiseError(
                f"Spark gave up a task ({_reason(error)}). If memory ran out, use fewer workers or smaller parts. "
                "Finished parts are kept; run the same again."
            ) from error
    for row in rows:
        result = pickle.loads(row["result"])
        if isinstance(result, AskwiseError):
            raise result
        yield result


def _result(task: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    """What a task returns, or the error that says what is wrong: trying again, as Spark does, would not help."""
    try:
        return task(*given)
    except AskwiseError as error:
        return error


@contextlib.contextmanager
def spark_session(workers: int, address: str | None) -> Iterator[Any]:
    """The Spark session of this process, or a new one on the master at `address`; without one, of local workers."""
    sql = import_pyspark().sql
    active = sql.SparkSession.getActiveSession()
    if active is not None and address is None:
        yield active
        return
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = address or f"local[{workers}, {MOST_RESTARTS + 1}]"  # a task is tried as often as there are restarts
    builder = sql.SparkSession.builder.master(master).appName("askwise").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def import_pyspark() -> Any:
    """The package pyspark with a Java to run it; if one is not installed, an error that says which."""
    try:
        import pyspark.errors
        import pyspark.sql
    except ImportError:
        raise AskwiseError('engine="spark" needs PySpark: pip install "askwise[spark]".') from None
    java = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (java and os.path.exists(os.path.join(java, "bin", "java"))):
        raise AskwiseError('engine="spark" needs Java 17 or later: install it, and set JAVA_HOME.')
    return pyspark


def _spark_errors() -> tuple[type[Exception], ...]:
    """What a failed task is raised as: an error of Python code, or of the Java side."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JJavaError


def _reason(error: Any) -> str:
    """What went wrong, in a line: the end of a Python traceback, or the beginning of Java's message."""
    java = getattr(error, "java_exception", None)
    said = [line for line in str(error if java is None else java.getMessage()).splitlines() if line.strip()]
    return said[-1 if java is None else 0]
