"""Several frozen models as one: their answers side by side, (n, k * C)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from askwise.model.fast.boosting import BoostedTrees, takes_part
from askwise.model.fast.forests import FORESTS, TreeByTree
from askwise.model.final_layer import layers_of
from askwise.model.modules import DropoutMasks
from askwise.model.parts import asked, dense, unfrozen
from askwise.model.wrapped import LARGEST_SINGLE, ROWS_PER_CALL, FrozenModel
from askwise.networks import ACTIVATIONS
from askwise.table.rows import EncodedRows

ROWS_AT_ONCE = 128
LARGEST_LOGIT = 1e300

Answer = Callable[[Any], np.ndarray]
_Table = tuple[FrozenModel, Answer, int]


class StackedModels:
    """Models side by side; rows are decoded once, and prepared once for all that share the steps of a Pipeline.

    Fully connected networks of one shape use one batched product per layer, gradient boosting compares all nodes at
    once, forests go tree by tree on rows that are checked once, and any other classifier uses its `predict_proba`.

    Parameters
    ----------
    models
        `FrozenModel`, `StackedDropout` or `StackedModels`, such as the wrapped model and its members.
    """

    def __init__(self, models: Sequence[Any]) -> None:
        self.models: list[Any] = []
        for model in models:
            self.models += model.models if isinstance(model, StackedModels) else [model]
        ends = np.cumsum([model.n_outputs for model in self.models])
        self.n_outputs = int(ends[-1])
        parts = [_Part(model, end) for model, end in zip(self.models, ends.tolist(), strict=True)]
        self._tables: list[_Table] = []
        self._alike: list[list[Answer]] = []  # for each table and each preparation of it
        order: list[int] = []  # columns in the order of the answers: models evaluated together are adjacent
        for same_table in _grouped(parts, lambda one, other: one.frozen.reads_like(other.frozen)):
            behind: list[tuple[Any, list[Answer]]] = []
            for same_steps in _grouped(same_table, lambda one, other: shares_steps(one.steps, other.steps)):
                alike = _grouped(same_steps, lambda one, other: one.kind is not None and one.kind == other.kind)
                behind.append((same_steps[0].steps, [_answer_of(group) for group in alike]))
                order += [column for group in alike for part in group for column in part.columns]
            n_outputs = sum(part.model.n_outputs for part in same_table)
            self._alike += [answers for _, answers in behind]
            self._tables.append((same_table[0].frozen, partial(_ask, behind), n_outputs))
        self._columns = np.argsort(order)
        self._in_order = order == sorted(order)
        forests = [one.forest for one in self.models if isinstance(one, FrozenModel) and one.takes_cells]
        self._forests = [forest for forest in forests if forest is not None]  # that take the cells as they are

    def __call__(self, rows: EncodedRows) -> np.ndarray:
        """Encoded, completed rows -> (n, n_outputs)."""
        cells = rows.values
        if len(self._forests) == len(self.models) and len(cells) and bool(np.all(np.abs(cells) <= LARGEST_SINGLE)):
            return np.hstack([forest(cells) for forest in self._forests])
        answers = [model.by_table(rows, ask, n_outputs) for model, ask, n_outputs in self._tables]
        return self._ordered(_side_by_side(answers))

    @property
    def take_arrays(self) -> bool:
        """Whether the classifiers answer alike to sparse inputs and to the same numbers as an array."""
        return all(isinstance(answer, BatchedLayers | TreeByTree) for answer in self._of_shared_steps)

    @property
    def layers(self) -> BatchedLayers | None:
        """The networks, if all models that share their steps are networks of one shape, in order."""
        answers = self._of_shared_steps
        return answers[0] if len(answers) == 1 and isinstance(answers[0], BatchedLayers) and self._in_order else None

    def of_inputs(self, inputs: Any) -> np.ndarray:
        """(n, n_outputs) the answers to the outputs of the steps that the models share."""
        return self._ordered(_side_by_side([answer(inputs) for answer in self._of_shared_steps]))

    @property
    def _of_shared_steps(self) -> list[Answer]:
        assert len(self._alike) == 1, "asked for what models share that are not prepared alike"
        return self._alike[0]

    def _ordered(self, found: np.ndarray) -> np.ndarray:
        return found if self._in_order else found[:, self._columns]


class StackedDropout:
    """One torch module under `n_samples` fixed dropout masks, all in one pass."""

    def __init__(self, model: FrozenModel, masks: DropoutMasks) -> None:
        self.model = model
        self.n_samples = masks.n_samples
        self.n_outputs = masks.n_samples * model.n_outputs
        self._box = unfrozen(model.estimator).with_dropout(masks)

    def __call__(self, rows: EncodedRows) -> np.ndarray:
        return self.model.by_table(rows, self.answer, self.n_outputs)

    def answer(self, table: Any) -> np.ndarray:
        """(n, k * C) answers under each of the masks."""
        rows = np.array(table, dtype=float)
        step = max(1, ROWS_PER_CALL // self.n_samples)
        return np.concatenate([self._block(rows[start : start + step]) for start in range(0, len(rows), step)])

    def _block(self, rows: np.ndarray) -> np.ndarray:
        proba = self._box.frozen_module.proba(rows).reshape(self.n_samples, len(rows), -1)
        return np.asarray(proba.transpose(1, 0, 2).reshape(len(rows), -1))


def stack(models: Sequence[Any]) -> Any:
    """Models as one, such as the wrapped model and its members: `StackedModels`, or the model itself if it is alone."""
    return models[0] if len(models) == 1 else StackedModels(models)


class _Part:
    """One of the stacked models: its inputs, its preprocessing steps, and its columns among all answers."""

    def __init__(self, model: Any, end: int) -> None:
        self.model = model
        self.frozen: FrozenModel = model if isinstance(model, FrozenModel) else model.model
        self.columns = range(end - model.n_outputs, end)
        self.steps, self.classifier = self.frozen.parts
        self.kind = _kind(self.classifier)


def _grouped(parts: Sequence[_Part], alike: Callable[[_Part, _Part], bool]) -> list[list[_Part]]:
    groups: list[list[_Part]] = []
    for part in parts:
        group = next((group for group in groups if alike(group[0], part)), None)
        if group is None:
            groups.append([part])
        else:
            group.append(part)
    return groups


def _ask(behind: Sequence[tuple[Any, list[Answer]]], table: Any) -> np.ndarray:
    """All answers on one decoded table, which is transformed once by each preprocessing."""
    found = []
    for steps, answers in behind:
        inputs = table if steps is None else asked(steps, "transform", table)
        found += [answer(inputs) for answer in answers]
    return _side_by_side(found)


def _side_by_side(answers: Sequence[np.ndarray]) -> np.ndarray:
    return answers[0] if len(answers) == 1 else np.hstack(answers)


class BatchedLayers:
    """Fully connected networks of one shape: one batched product per layer."""

    def __init__(self, classifiers: Sequence[Any]) -> None:
        layers = [layers_of(classifier) for classifier in classifiers]
        self.activation = layers[0].activation
        self.biases = [np.stack(parts)[:, None] for parts in zip(*[member.biases for member in layers], strict=True)]
        self.weights = [np.stack(parts) for parts in zip(*[member.weights for member in layers], strict=True)]
        # The first biases are weights of a constant input: added to the product, they would take a third of its time.
        self.weights[0] = np.concatenate([self.weights[0], self.biases[0]], axis=1)

    def __call__(self, inputs: Any) -> np.ndarray:
        """Prepared rows -> (n, k * C)."""
        return self.answers(inputs.shape[0], lambda block: self.first(dense(inputs[block])))

    def first(self, inputs: np.ndarray) -> np.ndarray:
        """(k, n, H) the outputs of the first layer, before its activation."""
        extended = np.ones((len(inputs), inputs.shape[1] + 1))
        extended[:, :-1] = inputs
        return np.asarray(extended @ self.weights[0])

    def answers(self, n: int, first: Callable[[slice], np.ndarray]) -> np.ndarray:
        """(n, k * C), with `first` (k, n, H) asked for in blocks of rows that stay in the processor's cache."""
        n_members, _, n_classes = self.weights[-1].shape
        by_class = np.empty((n_classes, n, n_members))  # reductions over the first axis are fast
        for start in range(0, n, ROWS_AT_ONCE):
            block = slice(start, start + ROWS_AT_ONCE)
            by_class[:, block] = self._logits(first(block)).transpose(2, 1, 0)
        np.clip(by_class, -LARGEST_LOGIT, LARGEST_LOGIT, out=by_class)
        by_class -= by_class.max(axis=0)
        proba = np.exp(by_class, out=by_class)
        proba /= proba.sum(axis=0)
        return proba.transpose(1, 2, 0).reshape(n, -1)

    def _logits(self, outputs: np.ndarray) -> np.ndarray:
        """(k, n, C) from the outputs of the first layer."""
        act = ACTIVATIONS[self.activation]
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            outputs = act(outputs) @ weight
            outputs += bias
        return outputs


def _kind(classifier: Any) -> Any:
    """What classifiers must share to be evaluated together; None if they cannot be, as for subclasses."""
    if type(classifier) is HistGradientBoostingClassifier and takes_part(classifier):
        return (type(classifier), len(classifier.classes_))
    multinomial = type(classifier) is LogisticRegression and classifier.solver != "liblinear"
    if type(classifier) is not MLPClassifier and not multinomial:
        return None
    layers = layers_of(classifier)
    return (type(classifier), layers.activation, *(weight.shape for weight in layers.weights))


def _answer_of(group: Sequence[_Part]) -> Answer:
    model, classifier = group[0].model, group[0].classifier
    if group[0].kind is not None:
        together: Any = BoostedTrees if type(classifier) is HistGradientBoostingClassifier else BatchedLayers
        return together([part.classifier for part in group])
    if isinstance(model, StackedDropout):
        return model.answer
    if type(classifier) in FORESTS:
        assert group[0].frozen.forest is not None
        return group[0].frozen.forest
    return partial(_checked_answer, model, classifier)


def _checked_answer(model: FrozenModel, classifier: Any, inputs: Any) -> np.ndarray:
    n_rows = inputs.shape[0] if hasattr(inputs, "shape") else len(inputs)
    return model.checked(asked(classifier, "predict_proba", inputs), n_rows)


def shares_steps(a: Any, b: Any) -> bool:
    """Whether two models have the same fitted steps before the classifier."""
    if a is None or b is None:
        return a is b
    return len(a.steps) == len(b.steps) and all(x[1] is y[1] for x, y in zip(a.steps, b.steps, strict=True))
