"""A small network that imitates the scores of a policy: its inputs, its targets, and its training, all in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from askwise.networks import CLIP, Layers
from askwise.table.prices import Prices
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema

MOST_CATEGORIES = 24
"""Categories of a column that the network distinguishes, the most frequent ones."""
SHARPNESS = 10.0
"""How strongly the network is drawn to the best feature: one whose score is halfway between the mean and the best has
a weight of exp(-SHARPNESS / 2) times that of the best."""
LEAST_SPREAD = 1e-9
"""Scores that differ by less are ties, in which no feature is preferred; also what takes the place of 0 in ratios."""
BATCH, RATE, DECAY = 256, 2e-3, 1e-4
BETA = (0.9, 0.999)
FEWEST_STEPS = 600
"""Updates of the weights in each round, however few states there are."""


class StateInputs:
    """The inputs of the network: which cells are known, scaled numbers, one-hot categories, and the budget left.

    Parameters
    ----------
    rows, schema
        Training rows.
    prices, reads_budget
        Whether the budget left, as a share of the price of everything, is an input.
    """

    def __init__(self, rows: EncodedRows, schema: Schema, prices: Prices, reads_budget: bool) -> None:
        values = rows.values
        self.numbers, self.categories = np.flatnonzero(~schema.is_category), np.flatnonzero(schema.is_category)
        self.mean = np.nanmean(values[:, self.numbers], axis=0)
        spread = np.nanstd(values[:, self.numbers], axis=0)
        self.scale = np.where(spread > 0, spread, 1.0)
        self.price_of_all = max(float(prices.total()), LEAST_SPREAD) if reads_budget else None
        first = values.shape[1] + len(self.numbers) + reads_budget
        self.position, self.n_inputs = _positions(values[:, self.categories], first)

    def __call__(self, rows: EncodedRows, left: np.ndarray) -> np.ndarray:
        """Encoded rows and (n,) budget left -> (n, P)."""
        n, n_columns = rows.values.shape
        out = np.zeros((n, self.n_inputs + 1))  # the last one is for what has no input
        out[:, :n_columns] = rows.observed
        scaled = np.clip((rows.values[:, self.numbers] - self.mean) / self.scale, -CLIP, CLIP)
        out[:, n_columns : n_columns + len(self.numbers)] = np.nan_to_num(scaled)
        if self.price_of_all is not None:
            out[:, n_columns + len(self.numbers)] = np.minimum(left / self.price_of_all, 1.0)
        if len(self.categories):
            most = self.position.shape[1] - 1
            codes = np.nan_to_num(rows.values[:, self.categories], nan=most)
            codes = np.minimum(codes, most).astype(np.intp)
            out[np.arange(n)[:, None], self.position[np.arange(len(self.categories)), codes]] = 1.0
        return out[:, :-1]


def _positions(codes: np.ndarray, first: int) -> tuple[np.ndarray, int]:
    """(columns, codes + 1) the input of each category, and the number of inputs; rare ones have none: the last."""
    most = int(np.nanmax(codes, initial=-1)) + 1
    position = np.full((codes.shape[1], most + 1), -1)
    for j, column in enumerate(codes.T):
        counts = np.bincount(column[~np.isnan(column)].astype(int))
        frequent = np.argsort(-counts, kind="stable")[:MOST_CATEGORIES]
        frequent = frequent[counts[frequent] > 0]
        position[j, frequent] = first + np.arange(len(frequent))
        first += len(frequent)
    return np.where(position < 0, first, position), first


class Targets(NamedTuple):
    """What the network learns about n states from a policy's scores."""

    share: np.ndarray  # (n, M) weights of the features, the best ones most; they sum to 1
    best: np.ndarray  # (n,) the highest score
    spread: np.ndarray  # (n,) how much higher that is than the mean


def targets_of(scores: np.ndarray) -> Targets:
    """The targets for scores (n, M), -inf for what is known; each row has a finite score."""
    usable = np.isfinite(scores)
    best = np.where(usable, scores, -np.inf).max(axis=1)
    mean = np.where(usable, scores, 0.0).sum(axis=1) / usable.sum(axis=1)
    spread = np.maximum(best - mean, LEAST_SPREAD)
    below = np.where(usable, scores - best[:, None], -np.inf) / spread[:, None]
    share = np.exp(SHARPNESS * below)
    return Targets(share / share.sum(axis=1, keepdims=True), best, spread)


class Imitator:
    """ReLU layers that are trained by Adam in numpy; subclasses say what the outputs mean, and what changes lower the
    loss.

    Training is in single precision, which is faster; answers are in double precision, so that those of a row in a batch
    equal those of the row alone.
    """

    def __init__(self, n_inputs: int, n_outputs: int, hidden: Sequence[int], rng: np.random.Generator) -> None:
        widths = [n_inputs, *hidden, n_outputs]
        self.layers = Layers(
            [rng.normal(size=pair) * np.sqrt(2 / pair[0]) for pair in pairwise(widths)],
            [np.zeros(width) for width in widths[1:]],
            "relu",
        )

    def _change(self, outputs: np.ndarray, targets: Sequence[np.ndarray]) -> np.ndarray:
        """(n, outputs) gradients of the loss of each row by its outputs."""
        raise NotImplementedError

    def _descend(
        self, inputs: np.ndarray, targets: Sequence[np.ndarray], epochs: int, rng: np.random.Generator
    ) -> None:
        """Passes over the rows in batches, with a falling rate."""
        self.layers = _in_precision(self.layers, np.float32)
        optimizer = _Adam([*self.layers.weights, *self.layers.biases])
        n_batches = -(-len(inputs) // BATCH)
        n_steps = max(epochs * n_batches, FEWEST_STEPS)
        for step in range(n_steps):
            if step % n_batches == 0:
                order = rng.permutation(len(inputs))
            at = order[step % n_batches * BATCH :][:BATCH]
            gradients = self._gradients(inputs[at], [target[at] for target in targets])
            optimizer.step(gradients, RATE * (1 + np.cos(np.pi * step / n_steps)) / 2)
        self.layers = _in_precision(self.layers, np.float64)

    def _gradients(self, inputs: np.ndarray, targets: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Gradients of the mean loss by all weights, then by all biases."""
        weights, biases = self.layers.weights, self.layers.biases
        active = [inputs]
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            active.append(np.maximum(active[-1] @ weight + bias, 0.0))
        change = self._change(active[-1] @ weights[-1] + biases[-1], targets) / np.float32(len(inputs))
        of_weights: list[np.ndarray] = []
        of_biases: list[np.ndarray] = []
        for layer in range(len(weights) - 1, -1, -1):
            of_weights.insert(0, active[layer].T @ change + DECAY * weights[layer])
            of_biases.insert(0, change.sum(axis=0))
            if layer:
                change = (change @ weights[layer].T) * (active[layer] > 0)
        return [*of_weights, *of_biases]


class ScoreNetwork(Imitator):
    """Relative scores of the features, and their scale: M + 2 outputs.

    The first M outputs are logits: `SHARPNESS` times how far a score is above another one, in units of the spread.
    The last two are the logarithms of the highest score and of the spread.
    """

    def __init__(self, n_inputs: int, n_features: int, hidden: Sequence[int], rng: np.random.Generator) -> None:
        super().__init__(n_inputs, n_features + 2, hidden, rng)

    def logits(self, inputs: np.ndarray) -> np.ndarray:
        """(n, M) relative scores."""
        return self.layers(inputs)[:, :-2]

    def scores(self, inputs: np.ndarray, usable: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n, M) scores in the policy's unit, and (n,) the margin of the best of the `usable` features, in spreads."""
        found = self.layers(inputs)
        logits = np.where(usable, found[:, :-2], -np.inf)
        best, spread = np.exp(np.clip(found[:, -2:], -30.0, 30.0)).T
        highest = found[:, :-2].max(axis=1, keepdims=True)
        return best[:, None] + spread[:, None] * (found[:, :-2] - highest) / SHARPNESS, margins(logits)

    def train(self, inputs: np.ndarray, scores: np.ndarray, epochs: int, rng: np.random.Generator) -> None:
        """Lower the cross entropy of the shares, and the squared errors of the scale."""
        found, usable = targets_of(scores), np.isfinite(scores)
        scale = np.log(np.maximum(np.column_stack([found.best, found.spread]), LEAST_SPREAD)).astype(np.float32)
        self._descend(inputs, [found.share.astype(np.float32), usable, scale], epochs, rng)

    def _change(self, outputs: np.ndarray, targets: Sequence[np.ndarray]) -> np.ndarray:
        share, usable, scale = targets
        proba = softmax(np.where(usable, outputs[:, :-2], -np.inf))
        return np.column_stack([proba - share, (outputs[:, -2:] - scale) / 10])


def margins(logits: np.ndarray) -> np.ndarray:
    """(n,) how far the best of (n, M) logits, -inf = not usable, is above the second one, in spreads."""
    if logits.shape[1] < 2:
        return np.full(len(logits), np.inf)
    top = np.partition(logits, -2, axis=1)[:, -2:]
    return np.asarray((top[:, 1] - np.where(np.isneginf(top[:, 0]), -np.inf, top[:, 0])) / SHARPNESS)


class BeliefNetwork(Imitator):
    """What is believed of a case: p(y | x_S), and the probability that the full row is decided for each class."""

    def __init__(self, n_inputs: int, n_classes: int, hidden: Sequence[int], rng: np.random.Generator) -> None:
        super().__init__(n_inputs, 2 * n_classes, hidden, rng)

    def __call__(self, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n, C) p(y | x_S), and (n, C) the probabilities of the decision from the full row."""
        return as_belief(self.layers(inputs))

    def train(
        self, inputs: np.ndarray, proba: np.ndarray, final: np.ndarray, epochs: int, rng: np.random.Generator
    ) -> None:
        """Lower the cross entropy of both distributions."""
        self._descend(inputs, [proba.astype(np.float32), final.astype(np.float32)], epochs, rng)

    def _change(self, outputs: np.ndarray, targets: Sequence[np.ndarray]) -> np.ndarray:
        return np.column_stack(as_belief(outputs)) - np.column_stack(targets)


def as_belief(outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The outputs (..., 2 C) of a `BeliefNetwork` as its two distributions."""
    n_classes = outputs.shape[-1] // 2
    return softmax(outputs[..., :n_classes]), softmax(outputs[..., n_classes:])


def softmax(logits: np.ndarray) -> np.ndarray:
    """The distributions of logits (..., C)."""
    proba = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(proba / proba.sum(axis=-1, keepdims=True))


def _in_precision(layers: Layers, kind: Any) -> Layers:
    weights = [weight.astype(kind) for weight in layers.weights]
    return Layers(weights, [bias.astype(kind) for bias in layers.biases], layers.activation)


class _Adam:
    """Adam, in place."""

    def __init__(self, parameters: Sequence[np.ndarray]) -> None:
        self.parameters = parameters
        self.mean = [np.zeros_like(part) for part in parameters]
        self.square = [np.zeros_like(part) for part in parameters]
        self.n_steps = 0

    def step(self, gradients: Sequence[np.ndarray], rate: float) -> None:
        self.n_steps += 1
        first, second = BETA
        corrected = np.float32(rate * np.sqrt(1 - second**self.n_steps) / (1 - first**self.n_steps))
        for part, mean, square, change in zip(self.parameters, self.mean, self.square, gradients, strict=True):
            mean += np.float32(1 - first) * (change - mean)
            square += np.float32(1 - second) * (change * change - square)
            part -= corrected * mean / (np.sqrt(square) + np.float32(1e-8))


class LabeledStates(NamedTuple):
    """States that were visited: the inputs of the networks, and what the exact policy and its belief say of them."""

    inputs: np.ndarray  # (n, P)
    scores: np.ndarray  # (n, M), -inf = not acquirable
    proba: np.ndarray  # (n, C)
    final: np.ndarray  # (n, C)

    @property
    def open(self) -> np.ndarray:
        """(n,) whether something can be acquired."""
        return np.isfinite(self.scores).any(axis=1)

    @classmethod
    def concatenated(cls, parts: Sequence[LabeledStates]) -> LabeledStates:
        """Several blocks as one."""
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
