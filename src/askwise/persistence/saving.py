"""Save a fitted selector as a folder of data, and load it."""

from __future__ import annotations

import importlib.metadata
import platform
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import sklearn
from sklearn.utils.validation import check_is_fitted

from askwise import __version__
from askwise.acquirer import FeatureAcquirer
from askwise.errors import AskwiseError, AskwiseWarning, InvalidInput, did_you_mean
from askwise.model.black_box import BlackBox
from askwise.model.parts import split_pipeline
from askwise.model.wrapped import some_complete_row
from askwise.persistence.classes import Allowed, Damaged, name_of
from askwise.persistence.folder import read_folder, write_folder
from askwise.persistence.foreign import is_data
from askwise.persistence.privacy import SyntheticReport, check_arrays, without_training_rows
from askwise.persistence.rebuild import Rebuilder
from askwise.persistence.record import Recorder
from askwise.persistence.skops_file import needed_types, read_models, write_models
from askwise.persistence.strict_json import read_json, write_json
from askwise.table.desk import FILE as DESK
from askwise.table.desk import Desk
from askwise.table.schema import Schema

STATE, ARRAYS, MODELS = "state.json", "arrays.safetensors", "models.skops"
LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "skops", "safetensors", "torch", "xgboost", "lightgbm")
N_ANSWERS = 5
Rows = Literal["training", "synthetic"]
ROWS: tuple[str, ...] = get_args(Rows)
DAMAGED = (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError, OverflowError, ImportError)


def save(
    selector: FeatureAcquirer,
    folder: str | Path,
    rows: Rows = "training",
    key_file: str | Path | None = None,
    desk: Desk | None = None,
    like: Mapping[str, Any] | None = None,
) -> SyntheticReport | None:
    """Write a fitted selector; see `FeatureAcquirer.save`.

    `like` is the manifest of the folder that it was loaded from, if it is saved anew: what that says of its rows holds.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> import tempfile
    >>> from askwise.persistence import load, save
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = save(selector, folder)
    ...     load(folder).features_
    ['x0', 'x1', 'x2', 'x3']
    """
    check_is_fitted(selector, "policy_")
    if rows not in ROWS:
        raise InvalidInput(f"rows must be one of {ROWS}; got {rows!r}.{did_you_mean(rows, ROWS)}")
    Desk.checked(desk)
    safetensors = _import_safetensors()
    given, report = selector, None
    if rows == "synthetic":
        selector, report = without_training_rows(selector)
    recorder = Recorder()
    model = split_pipeline(getattr(selector, "estimator_", None))[1]
    if isinstance(model, BlackBox) and not is_data(model.function):
        recorder.ask_for(model.function, "selector.estimator")
    root = recorder.record(selector, "selector")
    if report is not None:
        real, drawn = (one.predictor_.training_rows_ for one in (given, selector))
        check_arrays(((recorder.paths[name], array) for name, array in recorder.arrays.items()), real, drawn)
        print(report)
    files = {
        STATE: write_json({"root": root, "nodes": recorder.nodes}),
        ARRAYS: safetensors.numpy.save(recorder.arrays),
    }
    if desk is not None:  # completed here, so that ranges are those of the rows that are saved
        files[DESK] = write_json(Desk.of(selector, desk).to_dict(), indent=1)
    if recorder.models:
        files[MODELS] = write_models(recorder.models)
    needed = needed_types(files[MODELS]) if recorder.models else []
    manifest = {
        **_versions(),
        "class": name_of(type(selector)),
        "rows": rows,
        "stop": None if selector.stop_ is None else name_of(type(selector.stop_)),
        "training_rows": 0 if rows == "synthetic" else _n_rows(selector),
        "schema": _described(selector.schema_),
        "classes": [str(label) for label in selector.classes_.tolist()],
        "trusted": sorted({*recorder.own_classes, *needed}),
        "model": recorder.asks_for,
        "answers": None if recorder.asks_for is None else _answers(selector).tolist(),
        "synthetic": None if report is None else report.to_dict(),
    }
    if like is not None:
        manifest |= {name: like[name] for name in ("rows", "training_rows", "synthetic")}
    write_folder(Path(folder), manifest, files, key_file)
    return report


def load(
    folder: str | Path, key_file: str | Path | None = None, trusted: Iterable[str | type] = (), model: Any = None
) -> FeatureAcquirer:
    """Load a selector that `save` has written; nothing in the folder is executed.

    Parameters
    ----------
    folder
        The folder.
    key_file
        File with the secret key that the folder was signed with; a folder that is not signed with it is refused.
    trusted
        Classes, or their full names, that the folder may hold beyond those of askwise and scikit-learn, such as
        ``["my_package.MyPolicy"]``. Name only what you know: their code runs.
    model
        The wrapped model where it is a function or a torch module of your own: the function, or a module of the
        same structure (or a function that makes one), which gets the saved weights.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> import tempfile
    >>> import askwise
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = selector.save(folder)
    ...     again = askwise.load(folder)
    >>> bool((again.predict_proba(X) == selector.predict_proba(X)).all())
    True
    """
    safetensors = _import_safetensors()
    allowed = Allowed(trusted)
    manifest, files = read_folder(Path(folder), key_file)
    if not {STATE, ARRAYS} <= set(files) <= {STATE, ARRAYS, MODELS, DESK}:
        raise InvalidInput(f"{folder} must hold {STATE}, {ARRAYS} and at most {MODELS}, {DESK}; got {sorted(files)}.")
    if manifest.get("model") is not None and model is None:
        raise InvalidInput(
            f"{folder} does not hold the wrapped model, {manifest['model']}: give it with askwise.load(folder, "
            "model=...). For a torch module, give one of the same structure or a function that makes one."
        )
    if MODELS in files:
        _warn_of_another_version(manifest)
    state = read_json(files[STATE], STATE)
    models = read_models(files[MODELS], MODELS, allowed.names) if MODELS in files else []
    try:
        arrays = {name: array.copy() for name, array in safetensors.numpy.load(files[ARRAYS]).items()}
        selector = Rebuilder(state["nodes"], arrays, models, allowed, model).value(state["root"])
    except AskwiseError:
        raise
    except (*DAMAGED, safetensors.SafetensorError) as error:
        raise InvalidInput(
            f"{folder} cannot be loaded: {_reason(error)}. It is damaged or was not written by askwise."
        ) from error
    if not isinstance(selector, FeatureAcquirer):
        raise InvalidInput(f"{folder} holds a {type(selector).__name__}, not a selector.")
    if manifest.get("answers") is not None and not _alike(_answers(selector), manifest["answers"]):
        raise InvalidInput("model is not the one that was saved: it predicts otherwise for the rows in the folder.")
    return selector


def load_desk(folder: str | Path, key_file: str | Path | None = None) -> Desk | None:
    """What a saved folder says about labels, units and the currency; None if nothing. See `Desk.load`."""
    found = read_folder(Path(folder), key_file, only=(DESK,))[1]
    return Desk.from_dict(read_json(found[DESK], DESK)) if DESK in found else None


def _import_safetensors() -> Any:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError:
        raise AskwiseError('Saving and loading need safetensors: pip install "askwise[persistence]".') from None
    return safetensors


def _answers(selector: Any) -> np.ndarray:
    """What the wrapped model predicts for a few completed rows of the folder, to know it again."""
    predictor = selector.predictor_
    rows = predictor.training_rows_
    return np.asarray(predictor.model_(rows.take(slice(N_ANSWERS)).filled(some_complete_row(rows))))


def _alike(found: np.ndarray, expected: Any) -> bool:
    try:
        given = np.asarray(expected, dtype=float)
    except (TypeError, ValueError):
        return False
    return found.shape == given.shape and np.allclose(found, given, atol=1e-5)


def _reason(error: BaseException) -> str:
    text = str(error).strip().rstrip(".")
    return text if isinstance(error, Damaged) else f"{type(error).__name__} ({text[:200]})"


def _n_rows(selector: FeatureAcquirer) -> int:
    """The number of training rows that the folder holds."""
    rows = getattr(selector.predictor_, "training_rows_", None)
    return 0 if rows is None else len(rows)


def _versions() -> dict[str, Any]:
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = importlib.metadata.version("xgboost-cpu" if name == "xgboost" else name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {"askwise": __version__, "python": platform.python_version(), "libraries": found}


def _warn_of_another_version(manifest: dict[str, Any]) -> None:
    """Models of scikit-learn are not made for other versions of it: say so before they answer."""
    libraries = manifest.get("libraries")
    saved = libraries.get("scikit-learn") if isinstance(libraries, dict) else None
    if str(saved).split(".")[:2] != sklearn.__version__.split(".")[:2]:
        warnings.warn(
            f"The folder was saved with scikit-learn {saved}, and this is {sklearn.__version__}: models may answer "
            "differently or fail. Install that version, or fit again.",
            AskwiseWarning,
            stacklevel=3,
        )


def _described(schema: Schema) -> dict[str, Any]:
    """The columns and features for a reader; what is loaded is in the state."""
    if not schema.tabular:
        return {"features": list(schema.features), "columns": []}
    columns = [
        {"name": column.name, "type": str(column.dtype), "categories": [str(value) for value in column.known] or None}
        for column in schema.columns
    ]
    return {"features": list(schema.features), "columns": columns}
