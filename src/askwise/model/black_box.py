"""A callable or a torch module as a fitted classifier."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from askwise.errors import InvalidInput
from askwise.model.modules import OUTPUTS, DropoutMasks, FrozenModule, is_torch_module
from askwise.trees.growth import ProbableClassifier


class BlackBox(ProbableClassifier):
    """A callable ``X -> proba``, or a torch module, as a fitted classifier; created by `wrap`."""

    def __init__(self, function: Callable[..., Any], classes: Sequence[Any], outputs: str = "auto") -> None:
        self.function = function
        self.classes = classes
        self.outputs = outputs

    @property
    def classes_(self) -> np.ndarray:
        return np.asarray(self.classes)

    @property
    def frozen_module(self) -> FrozenModule:
        """The wrapped torch module, run on a private copy."""
        frozen: FrozenModule | None = getattr(self, "_frozen_module", None)
        if frozen is None or frozen.module is not self.function:
            frozen = self._frozen_module = FrozenModule(self.function, len(self.classes), self.outputs)
        return frozen

    def with_dropout(self, masks: DropoutMasks) -> BlackBox:
        """The wrapped torch module under fixed dropout masks."""
        other = copy.copy(self)
        other._frozen_module = self.frozen_module.with_dropout(masks)
        return other

    def fit(self, X: Any, y: Any) -> BlackBox:
        raise InvalidInput(
            "A wrapped function or module is used as it is and cannot be fitted; train it before wrapping."
        )

    def predict_proba(self, X: Any) -> np.ndarray:
        if is_torch_module(self.function):
            return self.frozen_module.proba(X)
        proba = np.asarray(self.function(X))
        if len(self.classes) == 2 and proba.shape in ((len(X),), (len(X), 1)):
            second = proba.reshape(-1)
            return np.column_stack([1 - second, second])
        return proba

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> BlackBox:
        return self


def wrap(function: Callable[..., Any], classes: Sequence[Any], outputs: str = "auto") -> BlackBox:
    """Wrap a black box as a classifier.

    Parameters
    ----------
    function
        A callable that takes rows (the kind of table that is given to `fit`) and returns one row of class
        probabilities each, or a `torch.nn.Module`. For two classes both may return one number per row, for the
        second class.
    classes
        The class labels, in the order of the columns that `function` returns.
    outputs
        What a torch module returns: ``"logits"``, ``"probabilities"``, or ``"auto"``: probabilities, with a warning,
        if all outputs for the training rows (or the first rows predicted) are probabilities, otherwise logits.

    Examples
    --------
    >>> black_box = wrap(lambda X: np.tile([0.2, 0.8], (len(X), 1)), classes=["no", "yes"])
    >>> black_box.predict(np.zeros((2, 3))).tolist()
    ['yes', 'yes']
    """
    if not callable(function):
        raise InvalidInput(
            f"wrap takes a callable X -> probabilities or a torch.nn.Module; got {type(function).__name__}."
        )
    labels = np.asarray(classes)
    if labels.ndim != 1 or len(np.unique(labels)) < max(2, len(labels)):
        raise InvalidInput(f"wrap: classes must be two or more different labels; got {classes!r}.")
    if outputs not in OUTPUTS:
        raise InvalidInput(f"wrap: outputs must be one of {OUTPUTS}; got {outputs!r}.")
    if outputs == "logits" and not is_torch_module(function):
        raise InvalidInput('wrap: outputs="logits" is for torch modules; a callable must return probabilities.')
    return BlackBox(function, classes, outputs)


def as_classifier(estimator: Any, classes: np.ndarray) -> Any:
    """A torch module or a callable wrapped, with `classes` in the order of its outputs; anything else as it is."""
    if is_torch_module(estimator) or (callable(estimator) and not hasattr(estimator, "predict")):
        return wrap(estimator, classes.tolist())
    return estimator
