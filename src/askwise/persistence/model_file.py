"""A user's own model from a file, by its ending: .skops, .ubj, .json, .txt, .cbm, .onnx or .pt2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from askwise.errors import AskwiseError, InvalidInput
from askwise.model.black_box import wrap
from askwise.model.file_models import BoosterModel, OnnxModel
from askwise.model.modules import SUMS_TO_ONE_WITHIN
from askwise.persistence.foreign import read_booster
from askwise.persistence.skops_file import read_models

PROBE, N_PROBES = 3.0, 200
"""Spread and number of the made-up rows that tell logits from probabilities."""


def read_model(path: Path, labels: np.ndarray, classes: Sequence[str] | None, trusted: Sequence[str] = ()) -> Any:
    """The fitted classifier in a file.

    Parameters
    ----------
    labels
        (n,) labels of the training rows, which say of what type the classes are.
    classes
        The classes in the order of the model's outputs; needed by models that do not know them, unless they are
        0, 1, 2, ...
    trusted
        Types in a .skops file beyond those of scikit-learn that may be loaded.
    """
    content = _content(path)
    if path.suffix == ".skops":
        return read_models(content, str(path), trusted, several=False)[0]
    if path.suffix == ".cbm":
        booster = read_booster("catboost", content, str(path))
        return wrap(BoosterModel(booster), booster.classes_.tolist())
    in_order = _classes(path, labels, classes)
    if path.suffix in (".ubj", ".json"):
        return wrap(BoosterModel(read_booster("xgboost", content, str(path))), in_order)
    if path.suffix == ".txt":
        return wrap(BoosterModel(read_booster("lightgbm", content, str(path))), in_order)
    return wrap(OnnxModel(content) if path.suffix == ".onnx" else read_program(path), in_order)


def read_program(path: Path) -> Callable[[Any], np.ndarray]:
    """A torch program that ``torch.export.save`` has written, as a function from rows to probabilities.

    A folder does not hold it: torch does not promise to load such files safely, so the user names the file each time.
    """
    try:
        import torch
    except ImportError:
        raise AskwiseError('A .pt2 file needs torch: pip install "askwise[torch]".') from None
    try:
        module = torch.export.load(path).module()
    except Exception as error:  # whatever torch raises on a file that is no program
        raise InvalidInput(f"{path} cannot be read by torch.export.load ({error}).") from None

    def outputs(cells: Any) -> Any:
        with torch.no_grad():
            return module(torch.as_tensor(cells)).double().reshape(len(cells), -1)

    @cache
    def gives_logits(n_columns: int) -> bool:
        """Judged by made-up rows, so that the answer about a row does not depend on the others."""
        found = outputs(PROBE * np.random.default_rng(0).normal(size=(N_PROBES, n_columns)).astype(np.float32))
        sums = found.sum(dim=1) if found.shape[1] > 1 else torch.ones(len(found), dtype=found.dtype)
        within = float(found.min()) >= 0 and float(found.max()) <= 1 + SUMS_TO_ONE_WITHIN
        return not (within and bool(((sums - 1).abs() < SUMS_TO_ONE_WITHIN).all()))

    def probabilities(X: Any) -> np.ndarray:
        cells = np.asarray(X, dtype=np.float32)
        found = outputs(cells)
        if gives_logits(cells.shape[1]):
            found = torch.softmax(found, dim=1) if found.shape[1] > 1 else torch.sigmoid(found)
        return np.asarray(found)

    return probabilities


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"The model {path} cannot be read: {error.strerror}.") from None


def _classes(path: Path, labels: np.ndarray, classes: Sequence[str] | None) -> list[Any]:
    """The classes in the order of the outputs, in the type of the labels."""
    distinct = np.unique(labels)
    if classes is None:
        if labels.dtype.kind in "iuf" and np.array_equal(distinct, np.arange(len(distinct))):
            return distinct.tolist()
        raise InvalidInput(
            f"{path.name} does not say which class each output is: name the classes in the order of its outputs, such "
            f"as --classes {','.join(map(str, distinct.tolist()))}."
        )
    spelled = {str(label): label for label in distinct.tolist()}
    unknown = [name for name in spelled if name not in classes]
    if unknown:
        raise InvalidInput(f"--classes leaves out {unknown[0]!r}, which is in the table; got {','.join(classes)}.")
    if labels.dtype.kind in "iuf":
        try:
            return [spelled.get(name, type(distinct.tolist()[0])(name)) for name in classes]
        except ValueError:
            raise InvalidInput(f"--classes must be numbers like the target; got {','.join(classes)}.") from None
    return list(classes)
