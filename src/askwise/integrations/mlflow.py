"""Selectors in MLflow: logged and registered as folders without pickle, and run wherever MLflow runs a model.

What is logged has two flavours: ``askwise``, read back by `load_model` as the selector that it was, and MLflow's
``python_function``, whose `predict` takes incomplete rows. Model servers and Spark use the second.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from askwise import __version__
from askwise.acquirer import FeatureAcquirer
from askwise.errors import AskwiseError, InvalidInput, did_you_mean
from askwise.model.parts import split_pipeline
from askwise.persistence import load, save
from askwise.persistence.folder import read_folder
from askwise.persistence.saving import Rows
from askwise.scale.parts import ends_of
from askwise.stopping.calibrated_stop import GUARANTEE_VOID
from askwise.table.columns import Column, plain
from askwise.table.desk import Desk

FLAVOR = "askwise"
FOLDER = "selector"
METHODS = ("predict_proba", "predict", "suggest", "acquire")
ALWAYS_NEEDED = ("numpy", "pandas", "scikit-learn")


class IncompleteRows:
    """What MLflow runs: a selector that is asked by one method, `predict`, with parameters.

    Parameters
    ----------
    selector
        A fitted selector of tables.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.integrations.mlflow import IncompleteRows
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> selector = DynamicFeatureSelector(GaussianNB().fit(X, y), epistemic=None, random_state=0).fit(X, y)
    >>> model = IncompleteRows(selector)
    >>> model.predict(X[["petal width (cm)"]].head(2), {"method": "predict"}).tolist()
    [0, 0]
    """

    def __init__(self, selector: FeatureAcquirer) -> None:
        self.selector = selector

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Any:
        """What the selector says of rows in which what is not known is NaN or null, or a column that is not there.

        Parameters
        ----------
        model_input
            A DataFrame with some of the columns of fit, by their names (those of an array are x0, x1, ...).
        params
            `method` is ``"predict_proba"`` (the default; a column for each class), ``"predict"``, ``"suggest"`` (the
            name of the feature to acquire next, ``""`` = none) or ``"acquire"`` (the rows hold the values that can be
            had: what would be bought, at what price, and what is decided then). `budget` is what may be spent on a
            row (by default that of the selector). With `stop="calibrated"`, `acquire` stops by the rule of the
            selector.
        """
        given = {"method": "predict_proba", "budget": None, "stop": None, **(params or {})}
        method, budget, stop = (given[name] for name in ("method", "budget", "stop"))
        if method not in METHODS:
            raise InvalidInput(
                f"params: method must be one of {METHODS}; got {method!r}.{did_you_mean(method, METHODS)}"
            )
        rows, selector = self._rows(model_input), self.selector
        if method == "predict_proba":
            return pd.DataFrame(selector.predict_proba(rows), columns=_class_names(selector))
        if method == "predict":
            return selector.predict(rows)
        if method == "suggest":
            names = np.array([*selector.features_, ""], dtype=object)  # the last one is for -1
            return names[selector.suggest(rows, budget=budget)]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", GUARANTEE_VOID)  # the table says it of each case
            run = selector.acquire(rows, budget=budget, stop=stop)
        return ends_of(run, np.arange(len(rows)), "prediction").drop(columns="case")

    def _rows(self, given: Any) -> Any:
        """The rows with all columns of fit, in their order."""
        schema = self.selector.schema_
        names, labels = zip(*((column.name, column.label) for column in schema.columns), strict=True)
        frame = given if isinstance(given, pd.DataFrame) else pd.DataFrame(given)
        named = frame.rename(columns=dict(zip(labels, names, strict=True)))
        if not set(names) & set(named.columns):
            raise InvalidInput(
                f"model_input has none of the columns of fit: {', '.join(names)}. Its columns are: "
                f"{', '.join(map(str, frame.columns)) or 'none'}. Where nothing is known, send one of them as null."
            )
        rows = named.reindex(columns=list(names)).set_axis(list(labels), axis=1)
        return rows if schema.framed else rows.to_numpy(dtype=float)


def save_model(
    selector: FeatureAcquirer,
    path: str | Path,
    *,
    rows: Rows = "training",
    desk: Desk | None = None,
    signature: Any = None,
    input_example: Any = None,
    pip_requirements: Sequence[str] | None = None,
    extra_pip_requirements: Sequence[str] | None = None,
    mlflow_model: Any = None,
    **options: Any,
) -> None:
    """Write a fitted selector as an MLflow model.

    Parameters
    ----------
    selector
        A fitted selector of tables.
    path
        A folder that does not exist yet.
    rows, desk
        As in `selector.save`: with ``rows="synthetic"`` the model holds no training row.
    signature, input_example
        By default made from the columns of fit, none of which is required, and from the ends of their ranges.
    pip_requirements, extra_pip_requirements
        By default askwise and the versions in use of what is around it; the second adds to them, such as the package
        of a model that yours is built on.
    mlflow_model
        The `mlflow.models.Model` to write into; MLflow gives it.
    options
        Of `mlflow.pyfunc.save_model`, such as `metadata`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> import tempfile
    >>> from askwise.integrations.mlflow import load_model, save_model
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> selector = DynamicFeatureSelector(GaussianNB().fit(X, y), epistemic=None, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(selector, f"{folder}/model")
    ...     load_model(f"{folder}/model").features_ == selector.features_
    True
    """
    mlflow = import_mlflow()
    model = mlflow.models.Model() if mlflow_model is None else mlflow_model
    model.add_flavor(FLAVOR, data=f"data/{FOLDER}", askwise_version=__version__)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / FOLDER
        described = _written(selector, folder, rows, desk, signature, input_example, pip_requirements)
        mlflow.pyfunc.save_model(
            str(path),
            loader_module=__name__,
            data_path=str(folder),
            mlflow_model=model,
            extra_pip_requirements=extra_pip_requirements,
            **described,
            **options,
        )


def log_model(selector: FeatureAcquirer, name: str = FOLDER, **options: Any) -> Any:
    """Log a fitted selector as a model of the active run, and register it if `registered_model_name` is given.

    Parameters
    ----------
    selector
        A fitted selector of tables.
    name
        The name of the model in the run.
    options
        Those of `save_model`, and of `mlflow.models.Model.log`, such as `registered_model_name`.

    Returns
    -------
    info
        MLflow's `ModelInfo`, whose `model_uri` loads it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> import mlflow, tempfile
    >>> from askwise.integrations.mlflow import log_model
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> selector = DynamicFeatureSelector(GaussianNB().fit(X, y), epistemic=None, random_state=0).fit(X, y)
    >>> before = mlflow.get_tracking_uri()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    ...     iris = mlflow.create_experiment("iris", artifact_location=f"file://{folder}/artifacts")
    ...     with mlflow.start_run(experiment_id=iris):
    ...         info = log_model(selector)
    ...     model = mlflow.pyfunc.load_model(info.model_uri)
    ...     print(model.predict(X.iloc[:1, :2], params={"method": "suggest", "budget": 1}))
    ['petal width (cm)']
    >>> mlflow.set_tracking_uri(before)
    """
    from askwise.integrations import mlflow as flavor

    return import_mlflow().models.Model.log(artifact_path=None, name=name, flavor=flavor, selector=selector, **options)


def load_model(model_uri: str, trusted: Sequence[str | type] = ()) -> FeatureAcquirer:
    """The selector that `log_model` or `save_model` has written.

    Parameters
    ----------
    model_uri
        Where it is: ``"models:/heart/3"``, ``"runs:/<run>/selector"``, or a folder.
    trusted
        As in `askwise.load`.

    Examples
    --------
    See `save_model`:

    >>> from askwise.integrations.mlflow import load_model
    >>> load_model.__annotations__["model_uri"]
    'str'
    """
    mlflow = import_mlflow()
    path = mlflow.artifacts.download_artifacts(artifact_uri=str(model_uri))
    flavors = mlflow.models.Model.load(path).flavors
    if FLAVOR not in flavors:
        raise InvalidInput(f"{model_uri} was not logged by askwise; its flavors are: {', '.join(flavors)}.")
    return load(Path(path) / flavors[FLAVOR]["data"], trusted=trusted)


def _load_pyfunc(path: str) -> IncompleteRows:
    """What MLflow calls to load a model, on a server or in a worker of Spark."""
    return IncompleteRows(load(path))


def import_mlflow() -> Any:
    """The package mlflow; if it is not installed, an error that names the extra."""
    try:
        import mlflow
        import mlflow.pyfunc
    except ImportError:
        raise AskwiseError('MLflow is needed: pip install "askwise[mlflow]".') from None
    return mlflow


def _written(
    selector: FeatureAcquirer,
    folder: Path,
    rows: Rows,
    desk: Desk | None,
    signature: Any,
    input_example: Any,
    pip_requirements: Sequence[str] | None,
) -> dict[str, Any]:
    """Write the folder of a selector, and describe it as MLflow wants it described."""
    if not getattr(getattr(selector, "schema_", None), "tabular", True):
        raise InvalidInput("MLflow runs selectors of tables; this one is of images. Keep its folder as an artifact.")
    save(selector, folder, rows=rows, desk=desk)
    try:
        load(folder)
    except InvalidInput as error:
        raise InvalidInput(
            f"MLflow must be able to load the selector without being told anything: {error} Keep its folder as an "
            "artifact instead, and load it with askwise.load."
        ) from None
    manifest = read_folder(folder, None, only=())[0]
    return {
        "signature": _signature(selector) if signature is None else signature,
        "input_example": _example(selector) if input_example is None else input_example,
        "pip_requirements": _requirements(selector, manifest) if pip_requirements is None else list(pip_requirements),
    }


def _signature(selector: FeatureAcquirer) -> Any:
    """No column is required: a row without it is one of which it is not known."""
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema

    inputs: list[Any] = [ColSpec(_kind(column), column.name, required=False) for column in selector.schema_.columns]
    outputs: list[Any] = [ColSpec("double", name) for name in _class_names(selector)]
    params = [
        ParamSpec("method", "string", METHODS[0]),
        ParamSpec("budget", "double", None),
        ParamSpec("stop", "string", None),
    ]
    return ModelSignature(Schema(inputs), Schema(outputs), ParamSchema(params))


def _kind(column: Column) -> Any:
    """MLflow's type of a column. Booleans are of any type, because MLflow has none that can be missing."""
    from mlflow.types import schema

    if not column.is_category:
        return "double"
    of_any_type: Any = schema.AnyType
    return "string" if all(isinstance(value, str) for value in column.known) else of_any_type()


def _example(selector: FeatureAcquirer) -> pd.DataFrame:
    """A row of which every other column is known: the low end of its range, or its first category."""
    desk = Desk.of(selector, None)
    cells = {}
    for j, column in enumerate(selector.schema_.columns):
        value = plain(column.known[0]) if column.is_category else desk.shown(column.name).low
        missing = None if column.is_category else np.nan
        cells[column.name] = [missing if j % 2 or value is None else value]
    return pd.DataFrame(cells)


def _requirements(selector: FeatureAcquirer, manifest: Mapping[str, Any]) -> list[str]:
    model = split_pipeline(getattr(selector, "estimator_", None))[1]
    needed = {*ALWAYS_NEEDED, type(model).__module__.partition(".")[0]}
    pinned = [f"{name}=={version}" for name, version in manifest["libraries"].items() if name in needed]
    return [f"askwise[persistence]=={__version__}", *pinned]


def _class_names(selector: FeatureAcquirer) -> list[str]:
    return [str(label) for label in selector.classes_]
