"""Several frozen models asked at once: their answers side by side, (n, k * C), as if they were one model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from askwise.networks import ACTIVATIONS
from askwise.predict.final_layer import dense, layers_of, prepared, split_pipeline, unfrozen
from askwise.predict.wrapped import ROWS_PER_CALL, FrozenModel, as_tensor, evaluating
from askwise.rows import EncodedRows

ROWS_AT_ONCE = 128
LARGEST_LOGIT = 1e30


class StackedModels:
    """Members asked one after the other; any kind of classifier."""

    def __init__(self, models: Sequence[Any]) -> None:
        self.models = models
        self.n_outputs = sum(model.n_outputs for model in models)

    def __call__(self, rows: EncodedRows) -> np.ndarray:
        return np.hstack([model(rows) for model in self.models])


class StackedLayers:
    """Members that are fully connected networks of one shape behind one preparation: one batched product a layer."""

    def __init__(self, models: Sequence[FrozenModel]) -> None:
        layers = [layers_of(split_pipeline(model.estimator)[1]) for model in models]
        self.model = models[0]
        self.steps = split_pipeline(models[0].estimator)[0]
        self.activation = layers[0].activation
        self.weights = [np.stack(parts) for parts in zip(*[member.weights for member in layers], strict=True)]
        self.biases = [np.stack(parts)[:, None] for parts in zip(*[member.biases for member in layers], strict=True)]
        self.n_outputs = sum(model.n_outputs for model in models)

    def __call__(self, rows: EncodedRows) -> np.ndarray:
        """Encoded rows -> (n, k * C), in blocks of rows that stay in the processor's cache."""
        inputs = prepared(self.model, self.steps, rows)
        blocks = [
            self._block(dense(inputs[start : start + ROWS_AT_ONCE])) for start in range(0, len(rows), ROWS_AT_ONCE)
        ]
        return np.concatenate(blocks) if blocks else np.empty((0, self.n_outputs))

    def _block(self, inputs: np.ndarray) -> np.ndarray:
        act, n = ACTIVATIONS[self.activation], len(inputs)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            inputs = inputs @ weight  # (k, n, H)
            inputs += bias
            inputs = act(inputs)
        logits = inputs @ self.weights[-1] + self.biases[-1]  # (k, n, C)
        np.clip(logits, -LARGEST_LOGIT, LARGEST_LOGIT, out=logits)
        by_class = np.ascontiguousarray(logits.transpose(2, 1, 0))  # (C, n, k): reductions over the first axis are fast
        by_class -= by_class.max(axis=0)
        proba = np.exp(by_class, out=by_class)
        proba /= proba.sum(axis=0)
        return proba.transpose(1, 2, 0).reshape(n, -1)


class StackedClassifiers:
    """Members of any kind behind the same preparation, which is done once."""

    def __init__(self, models: Sequence[FrozenModel]) -> None:
        self.model = models[0]
        self.steps = split_pipeline(models[0].estimator)[0]
        self.classifiers = [split_pipeline(model.estimator)[1] for model in models]
        self.n_outputs = sum(model.n_outputs for model in models)

    def __call__(self, rows: EncodedRows) -> np.ndarray:
        inputs = prepared(self.model, self.steps, rows)
        return np.hstack([classifier.predict_proba(inputs) for classifier in self.classifiers])


class StackedDropout:
    """One torch module under k fixed dropout masks, all in one pass.

    A mask belongs to a member, not to a row or a call: a row's answer does not depend on the batch, and a member is
    the same thinned network at every step of an acquisition.
    """

    def __init__(self, model: FrozenModel, n_samples: int, seed: int) -> None:
        self.model = model
        self.n_samples = n_samples
        self.seed = seed
        self.n_outputs = n_samples * model.n_outputs

    def __call__(self, rows: EncodedRows) -> np.ndarray:
        step = max(1, ROWS_PER_CALL // self.n_samples)
        blocks = [self._block(rows.take(slice(start, start + step))) for start in range(0, len(rows), step)]
        return np.concatenate(blocks) if blocks else np.empty((0, self.n_outputs))

    def _block(self, rows: EncodedRows) -> np.ndarray:
        import torch

        module, k, n = unfrozen(self.model.estimator).function, self.n_samples, len(rows)
        cells = as_tensor(self.model.table(rows), module)
        generator = torch.Generator().manual_seed(self.seed)
        hooks = [part.register_forward_hook(_fixed_mask(k, generator)) for part in dropout_layers(module)]
        try:
            with evaluating(module), torch.no_grad():
                logits = module(cells.repeat(k, *[1] * (cells.ndim - 1)))
        finally:
            for hook in hooks:
                hook.remove()
        proba = torch.softmax(logits.double(), dim=1).cpu().numpy().reshape(k, n, -1)
        return np.asarray(proba.transpose(1, 0, 2).reshape(n, -1))


def stack(models: Sequence[FrozenModel]) -> StackedModels | StackedLayers | StackedClassifiers:
    """Members as one model, in batched products and behind one preparation where they allow it."""
    parts = [split_pipeline(model.estimator) for model in models]
    steps, first = parts[0]
    if not all(_same_steps(other, steps) for other, _ in parts):
        return StackedModels(models)
    # A subclass may answer as it likes, so the types are compared exactly.
    kinds = {type(last) for _, last in parts}
    if kinds == {MLPClassifier} or (kinds == {LogisticRegression} and first.solver != "liblinear"):
        layers = [layers_of(last) for _, last in parts]
        if len({(one.activation, *(weight.shape for weight in one.weights)) for one in layers}) == 1:
            return StackedLayers(models)
    return StackedModels(models) if steps is None else StackedClassifiers(models)


def dropout_layers(module: Any) -> list[Any]:
    """The dropout layers of a torch module that do drop something."""
    from torch.nn.modules.dropout import _DropoutNd

    return [part for part in module.modules() if isinstance(part, _DropoutNd) and part.p > 0]


def _fixed_mask(k: int, generator: Any) -> Any:
    import torch

    def hook(part: Any, _: Any, output: Any) -> Any:
        per_channel = type(part).__name__ in ("Dropout1d", "Dropout2d", "Dropout3d") and output.ndim > 2
        shape = output.shape[1:2] + (1,) * (output.ndim - 2) if per_channel else output.shape[1:]
        kept = torch.rand((k, 1, *shape), generator=generator) >= part.p
        by_member = output.reshape(k, -1, *output.shape[1:])
        return (by_member * kept.to(output.dtype) / max(1 - part.p, 1e-9)).reshape(output.shape)

    return hook


def _same_steps(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    return len(a.steps) == len(b.steps) and all(x[1] is y[1] for x, y in zip(a.steps, b.steps, strict=True))
