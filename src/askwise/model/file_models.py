"""Models of other libraries as functions from rows to probabilities: boosters, and ONNX by onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from askwise.errors import AskwiseError, InvalidInput

NUMBERS: dict[str, Any] = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64}


class OnnxModel:
    """An ONNX classifier, run by onnxruntime: ``askwise.wrap(OnnxModel("model.onnx"), classes=[...])``.

    It has one input, a matrix of numbers, or one input per column of the table, with the column's name. Its
    probabilities are the output of floating-point numbers in two dimensions; the last, if there are several.

    Parameters
    ----------
    model
        Path of the file, or its content.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skl2onnx import to_onnx
    >>> from askwise import wrap
    >>> from askwise.predict import OnnxModel
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> content = to_onnx(model, X[:1], options={"zipmap": False}).SerializeToString()
    >>> wrap(OnnxModel(content), classes=[0, 1, 2]).predict(X[::50]).tolist()
    [0, 1, 2]
    """

    def __init__(self, model: str | Path | bytes) -> None:
        self.content = model if isinstance(model, bytes) else _read(Path(model))
        self._session: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {"content": self.content, "_session": None}

    def __call__(self, X: Any) -> np.ndarray:
        """(n, C) probabilities."""
        session = self._open()
        outputs = [o.name for o in session.get_outputs() if o.type in ("tensor(float)", "tensor(double)")]
        if not outputs:
            raise InvalidInput(
                "The ONNX model has no output of numbers. For one converted by skl2onnx, turn ZipMap off: "
                'to_onnx(model, X, options={"zipmap": False}).'
            )
        return np.asarray(session.run(outputs[-1:], self._inputs(session, X))[0], dtype=float)

    def _inputs(self, session: Any, X: Any) -> dict[str, np.ndarray]:
        inputs = session.get_inputs()
        if len(inputs) == 1 and not (isinstance(X, pd.DataFrame) and list(X.columns) == [inputs[0].name]):
            return {inputs[0].name: np.asarray(X, dtype=NUMBERS.get(inputs[0].type, np.float32))}
        lacking = [one.name for one in inputs if not isinstance(X, pd.DataFrame) or one.name not in X.columns]
        if lacking:
            raise InvalidInput(f"The ONNX model has the input {lacking[0]!r}, and X no column of that name.")
        return {one.name: X[[one.name]].to_numpy(dtype=NUMBERS.get(one.type, object)) for one in inputs}

    def _open(self) -> Any:
        if self._session is None:
            try:
                import onnxruntime
            except ImportError:
                raise AskwiseError('An ONNX model needs onnxruntime: pip install "askwise[onnx]".') from None
            try:
                self._session = onnxruntime.InferenceSession(self.content, providers=["CPUExecutionProvider"])
            except Exception as error:  # onnxruntime has an exception class for each kind of fault
                raise InvalidInput(f"onnxruntime cannot read the model: {error}") from None
        return self._session


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"The ONNX model {path} cannot be read: {error.strerror}.") from None


class BoosterModel:
    """A booster that was trained to classify: ``askwise.wrap(BoosterModel(booster), classes=[...])``.

    Columns are matched by name where the booster knows their names.

    Parameters
    ----------
    booster
        An `xgboost.Booster` with an objective that gives probabilities (binary:logistic, multi:softprob), or a
        `lightgbm.Booster` (binary, multiclass), or a fitted `catboost.CatBoostClassifier` that was read from a file.

    Examples
    --------
    >>> import numpy as np
    >>> import xgboost
    >>> from askwise import wrap
    >>> from askwise.predict import BoosterModel
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 3))
    >>> data = xgboost.DMatrix(X, label=X[:, 0] > 0)
    >>> booster = xgboost.train({"objective": "binary:logistic"}, data, num_boost_round=5)
    >>> model = wrap(BoosterModel(booster), classes=["low", "high"])
    >>> model.predict(X[:3]).tolist(), X[:3, 0].round(1).tolist()
    (['high', 'high', 'high'], [0.1, 0.1, 1.3])
    """

    def __init__(self, booster: Any) -> None:
        self.booster = booster

    @property
    def names(self) -> list[str] | None:
        """The columns that the booster was trained on; None where it does not know them."""
        if self._library == "xgboost":
            return self.booster.feature_names
        names = list(self.booster.feature_name() if self._library == "lightgbm" else self.booster.feature_names_)
        unnamed = (f"Column_{j}" if self._library == "lightgbm" else str(j) for j in range(len(names)))
        return None if names == list(unnamed) else names

    @property
    def _library(self) -> str:
        return type(self.booster).__module__.split(".")[0]

    def __call__(self, X: Any) -> np.ndarray:
        """(n, C) probabilities, or (n,) those of the second of two classes."""
        names = self.names
        if isinstance(X, pd.DataFrame) and names is not None and set(names) == set(map(str, X.columns)):
            X = X.set_axis([str(name) for name in X.columns], axis=1)[names]
        if self._library == "catboost":
            return np.asarray(self.booster.predict_proba(X), dtype=float)
        try:
            cells = np.asarray(X, dtype=float)
        except ValueError as error:
            raise InvalidInput(f"The booster takes numbers only ({error}). Turn text into numbers first.") from None
        if self._library == "lightgbm":
            return np.asarray(self.booster.predict(cells), dtype=float)
        from xgboost import DMatrix

        return np.asarray(self.booster.predict(DMatrix(cells, feature_names=names)), dtype=float)
