"""The last linear layer of a frozen classifier: its inputs and its weights."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from askwise.errors import InvalidInput
from askwise.model.black_box import BlackBox
from askwise.model.modules import is_torch_module, linear_layers
from askwise.model.parts import asked, dense, split_pipeline, unfrozen
from askwise.model.wrapped import FrozenModel
from askwise.networks import Layers
from askwise.table.rows import EncodedRows
from askwise.uncertainty import SMALLEST


class FinalLayer:
    """Completed rows -> `features` (n, H), and the layer ``features @ weight + bias`` that gives the logits."""

    weight: np.ndarray  # (H, C)
    bias: np.ndarray  # (C,)

    def __init__(self, model: FrozenModel) -> None:
        self.model = model

    def around(self, model: FrozenModel) -> Self:
        """The same layer of another version of the model, such as one under a dropout mask."""
        other = copy.copy(self)
        other.model = model
        return other

    def features(self, completed: EncodedRows) -> np.ndarray:
        raise NotImplementedError


class Output(FinalLayer):
    """A last layer for any black box: its log probabilities, and the identity."""

    def __init__(self, model: FrozenModel) -> None:
        super().__init__(model)
        self.weight = np.eye(len(model.classes))
        self.bias = np.zeros(len(model.classes))

    def features(self, completed: EncodedRows) -> np.ndarray:
        return np.log(np.maximum(self.model(completed), SMALLEST))


class FullyConnected(FinalLayer):
    """The last layer of scikit-learn's MLPClassifier or LogisticRegression, alone or at the end of a Pipeline."""

    def __init__(self, model: FrozenModel) -> None:
        super().__init__(model)
        self.steps, classifier = split_pipeline(model.estimator)
        self.layers = layers_of(classifier)
        self.weight, self.bias = self.layers.weights[-1], self.layers.biases[-1]

    def features(self, completed: EncodedRows) -> np.ndarray:
        return self.layers.hidden(dense(prepared(self.model, self.steps, completed)))


class LastLinear(FinalLayer):
    """The last `torch.nn.Linear` of a module."""

    def __init__(self, model: FrozenModel) -> None:
        super().__init__(model)
        self.name, linear = list(linear_layers(torch_module(model.estimator)).items())[-1]
        weight = linear.weight.detach().double().cpu().numpy().T
        bias = np.zeros(weight.shape[1]) if linear.bias is None else linear.bias.detach().double().cpu().numpy()
        self.weight, self.bias = _one_logit_per_class(weight, bias)

    def features(self, completed: EncodedRows) -> np.ndarray:
        module = unfrozen(self.model.estimator).frozen_module
        return self.model.by_table(completed, lambda table: module.layer_inputs(table, self.name), len(self.weight))


def final_layer(model: FrozenModel, probe: EncodedRows) -> FinalLayer:
    """The last layer of the wrapped model; an error if it has none that reproduces its answers on `probe` rows."""
    last = split_pipeline(model.estimator)[1]
    found: FinalLayer | None = None
    if isinstance(last, MLPClassifier | LogisticRegression):
        found = FullyConnected(model)
    elif (module := torch_module(last)) is not None and linear_layers(module):
        found = LastLinear(model)
    if found is not None:
        answers = softmax(found.features(probe) @ found.weight + found.bias, axis=1)
        if answers.shape == (len(probe), len(model.classes)) and np.allclose(answers, model(probe), atol=1e-5):
            return found
    raise InvalidInput(
        f'adaptation="last-layer" needs a torch module, MLPClassifier or LogisticRegression whose last linear layer '
        f'gives its answers; got {type(last).__name__}. Use adaptation="output" or "conditional", which take any model.'
    )


def any_final_layer(model: FrozenModel, probe: EncodedRows) -> FinalLayer:
    """`final_layer`, or the log probabilities of a model that has none."""
    try:
        return final_layer(model, probe)
    except InvalidInput:
        return Output(model)


def prepared(model: FrozenModel, steps: Any, rows: EncodedRows) -> Any:
    """Encoded rows as inputs of the classifier at the end of a Pipeline."""
    table = model.table(rows)
    return table if steps is None else asked(steps, "transform", table)


def torch_module(estimator: Any) -> Any:
    """The torch module of a wrapped classifier; None if it is not one."""
    box = unfrozen(estimator)
    return box.function if isinstance(box, BlackBox) and is_torch_module(box.function) else None


def layers_of(classifier: Any) -> Layers:
    """The arrays of an MLPClassifier or LogisticRegression, with one logit per class (the first 0 for two classes)."""
    if isinstance(classifier, LogisticRegression):
        weights, biases, activation = [classifier.coef_.T], [classifier.intercept_], "identity"
    else:
        weights, biases, activation = list(classifier.coefs_), list(classifier.intercepts_), classifier.activation
    weights[-1], biases[-1] = _one_logit_per_class(weights[-1], biases[-1])
    return Layers(weights, biases, activation)


def _one_logit_per_class(weight: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A last layer with a single logit (that of the second class), extended by a 0 for the first class."""
    if weight.shape[1] > 1:
        return weight, bias
    return np.hstack([np.zeros_like(weight), weight]), np.array([0.0, *bias])
