"""The last linear layer of a frozen classifier: what it sees, and its weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline

from askwise.errors import InvalidInput
from askwise.networks import Layers
from askwise.predict.wrapped import BlackBox, FrozenModel, is_torch_module
from askwise.rows import EncodedRows

SMALLEST = 1e-12


class FinalLayer:
    """Completed rows -> `features` (n, H), and the layer ``features @ weight + bias`` that gives the logits."""

    weight: np.ndarray  # (H, C)
    bias: np.ndarray  # (C,)

    def __init__(self, model: FrozenModel) -> None:
        self.model = model

    def features(self, completed: EncodedRows) -> np.ndarray:
        raise NotImplementedError


class Output(FinalLayer):
    """Every black box has one: its log probabilities, and the identity."""

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
    """The last `torch.nn.Linear` of a module; its input is read by a hook while the module runs."""

    def __init__(self, model: FrozenModel) -> None:
        super().__init__(model)
        self.linear = linear_layers(unfrozen(model.estimator).function)[-1]
        self.weight = self.linear.weight.detach().double().cpu().numpy().T
        bias = self.linear.bias
        self.bias = np.zeros(self.weight.shape[1]) if bias is None else bias.detach().double().cpu().numpy()

    def features(self, completed: EncodedRows) -> np.ndarray:
        seen: list[Any] = []
        hook = self.linear.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        try:
            self.model(completed)
        finally:
            hook.remove()
        return np.concatenate([part.double().cpu().numpy() for part in seen])


def final_layer(model: FrozenModel, probe: EncodedRows) -> FinalLayer:
    """The last layer of the wrapped model; refused where it has none that gives its answers on `probe` rows."""
    last = split_pipeline(model.estimator)[1]
    found: FinalLayer | None = None
    if isinstance(last, MLPClassifier | LogisticRegression):
        found = FullyConnected(model)
    elif isinstance(last, BlackBox) and is_torch_module(last.function) and linear_layers(last.function):
        found = LastLinear(model)
    if found is not None:
        answers = softmax(found.features(probe) @ found.weight + found.bias, axis=1)
        if answers.shape == (len(probe), len(model.classes)) and np.allclose(answers, model(probe), atol=1e-5):
            return found
    raise InvalidInput(
        f'adaptation="last-layer" needs a torch module, MLPClassifier or LogisticRegression whose last linear layer '
        f'gives its answers; got {type(last).__name__}. Use adaptation="output" or "conditional", which take any model.'
    )


def split_pipeline(estimator: Any) -> tuple[Any, Any]:
    """(the fitted steps before, or None; the classifier) of a model that may be a Pipeline or frozen."""
    before: list[tuple[str, Any]] = []
    estimator = unfrozen(estimator)
    while isinstance(estimator, Pipeline):  # one may end in another
        before += [(f"{len(before) + k}", step) for k, (_, step) in enumerate(estimator.steps[:-1])]
        estimator = unfrozen(estimator.steps[-1][1])
    return (Pipeline(before) if before else None), estimator


def prepared(model: FrozenModel, steps: Any, rows: EncodedRows) -> Any:
    """Encoded rows as the classifier at the end of a Pipeline sees them."""
    table = model.table(rows)
    return table if steps is None else steps.transform(table)


def dense(inputs: Any) -> np.ndarray:
    """Rows of any kind of table, sparse ones included, as an array of floats."""
    return np.array(inputs.toarray() if hasattr(inputs, "toarray") else inputs, dtype=float)


def unfrozen(estimator: Any) -> Any:
    """What a FrozenEstimator holds; anything else as it is."""
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def layers_of(classifier: Any) -> Layers:
    """The arrays of an MLPClassifier or LogisticRegression, with one logit per class (the first 0 for two classes)."""
    if isinstance(classifier, LogisticRegression):
        weights, biases, activation = [classifier.coef_.T], [classifier.intercept_], "identity"
    else:
        weights, biases, activation = list(classifier.coefs_), list(classifier.intercepts_), classifier.activation
    if weights[-1].shape[1] == 1:
        weights[-1] = np.hstack([np.zeros_like(weights[-1]), weights[-1]])
        biases[-1] = np.array([0.0, *biases[-1]])
    return Layers(weights, biases, activation)


def linear_layers(module: Any) -> list[Any]:
    """The `torch.nn.Linear` layers of a module, in order."""
    import torch

    return [part for part in module.modules() if isinstance(part, torch.nn.Linear)]
