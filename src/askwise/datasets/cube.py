"""The cube: each class shows in three features of its own, and in CUBE-NM a group of columns says in which block."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax
from scipy.stats import norm

from askwise.datasets.synthetic import SyntheticDataset
from askwise.parameters import POSITIVE, Limits, Whole, check_values
from askwise.table.prices import AFFORDABLE_WITHIN, check_budget

CONTEXT = "context"
N_CLASSES, BLOCK_SIZE, N_BITS = 8, 10, 3
MIDDLE, SPREAD = 0.5, 0.3
"""Mean and standard deviation of a feature that says nothing."""
CORNERS = (np.arange(N_CLASSES)[:, None] >> np.arange(N_BITS)) & 1
"""(8, 3) the bits of each class, the lowest first: a corner of the cube."""
KINDS = np.full((N_CLASSES, BLOCK_SIZE), 2)
"""(8, 10) what a feature of the right block is around in each class: 0, 1, or, as number 2, the middle."""
for _bit in range(N_BITS):
    KINDS[np.arange(N_CLASSES), np.arange(N_CLASSES) + _bit] = CORNERS[:, _bit]
N_NODES = 12
DRAWS_FOR_ACCURACY = 4000
LIMITS: Limits = {"n_samples": Whole(1), "n_noise": Whole(0), "noise": POSITIVE}
LIMITS_NM: Limits = {
    "n_samples": Whole(1),
    "n_contexts": Whole(2, most=len(string.ascii_lowercase)),
    "noise": POSITIVE,
    "context_noise": POSITIVE,
}

_BLOCK = """Eight equally likely classes, the corners of a cube. Class k shows in features k, k + 1 and k + 2 of ten:
these are around the coordinates of its corner, with standard deviation {noise:g}; the other features are around
0.5 (0.3) whatever the class. """
_CUBE = _BLOCK + "{n_noise} `noise` features look like these. Recipe of Shim et al. (2018), widths of AFABench."
_CUBE_NM = (
    _BLOCK
    + """There are {n_contexts} such blocks, and only one of them has to do with the class: a group of {n_contexts}
columns, `context`, is near 1 in the column of this block and near 0 in the others (standard deviation
{context_noise:g}), and tells nothing of the class. The best policy known acquires the context first.
Recipe of AFABench, CUBE-NM, but with the context as the last feature instead of the first."""
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CubeDataset(SyntheticDataset):
    """One block of a cube and noise, or several blocks and their context; see `make_cube` and `make_cube_nm`.

    With `n_contexts` 1 there is no context. The columns are the blocks, `n_noise` of noise, and the context.
    """

    n_contexts: int
    n_noise: int
    noise: float
    context_noise: float

    def best_accuracy(self, budget: float | None = None) -> float:
        """Accuracy of the best policy known, from 4,000 draws of a fixed seed (standard error .008).

        It knows the distribution. It acquires the context first, if there is one and the budget is 2 or more, and then
        whatever exactly reduces the entropy of the class most. There may be a better one, but with the whole
        block and its context it is the Bayes rule.

        Parameters
        ----------
        budget
            Number of features that can be bought, each at price 1, the context as a whole; None is unlimited.
        """
        left = int(min(np.floor(check_budget(budget, 1)[0] + AFFORDABLE_WITHIN), 1 + BLOCK_SIZE))
        X, y = self.sample(DRAWS_FOR_ACCURACY, random_state=0)
        truth, observed = self._numbers(X), np.zeros(X.shape, dtype=bool)
        if self.n_contexts > 1 and left > 1:
            observed[:, -self.n_contexts :] = True
            left -= 1
        rows, block = np.arange(len(X)), np.arange(BLOCK_SIZE)
        for _ in range(min(left, BLOCK_SIZE)):
            joint = self._joint(truth, observed)
            columns = BLOCK_SIZE * joint.sum(axis=2).argmax(axis=1)[:, None] + block
            gain = np.stack([self._gain(joint, columns[:, j]) for j in block], axis=1)
            gain[np.take_along_axis(observed, columns, axis=1)] = -np.inf
            observed[rows, columns[rows, gain.argmax(axis=1)]] = True
        decided = self.classes[self._exact_proba(truth, observed).argmax(axis=1)]
        return float((decided == y).mean())

    @property
    def _widths(self) -> np.ndarray:
        return np.array([self.noise, self.noise, SPREAD])

    def _draw(self, n_samples: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
        y, rows = rng.integers(N_CLASSES, size=n_samples), np.arange(n_samples)
        context = rng.integers(self.n_contexts, size=n_samples)
        blocks = rng.normal(MIDDLE, SPREAD, size=(n_samples, self.n_contexts, BLOCK_SIZE))
        for bit in range(N_BITS):
            blocks[rows, context, y + bit] = CORNERS[y, bit] + self.noise * rng.standard_normal(n_samples)
        parts = [blocks.reshape(n_samples, -1), rng.normal(MIDDLE, SPREAD, size=(n_samples, self.n_noise))]
        if self.n_contexts > 1:
            named = np.eye(self.n_contexts)[context]
            parts.append(named + self.context_noise * rng.standard_normal(named.shape))
        return pd.DataFrame(np.hstack(parts), columns=self.X.columns), self.classes[y]

    def _exact_proba(self, values: np.ndarray, observed: np.ndarray) -> np.ndarray:
        return np.asarray(self._joint(values, observed).sum(axis=1))

    def _exact_gain(self, values: np.ndarray, observed: np.ndarray) -> np.ndarray:
        """Of each column; those of the context are acquired together, and tell more together than one by one."""
        joint = self._joint(values, observed)
        columns = range(values.shape[1])
        return np.stack([self._gain(joint, np.full(len(values), j)) for j in columns], axis=1)

    def _joint(self, values: np.ndarray, observed: np.ndarray) -> np.ndarray:
        """p(the block with this number is the right one, y | x_S), (n, n_contexts, 8)."""
        n, n_cells = len(values), self.n_contexts * BLOCK_SIZE
        cells = np.where(observed, values, 0.0)[:, :n_cells].reshape(n, self.n_contexts, BLOCK_SIZE)
        seen = observed[:, :n_cells].reshape(cells.shape)
        logs = norm.logpdf(cells[..., None], np.array([0, 1, MIDDLE]), self._widths)  # (n, K, 10, 3)
        logs = np.where(seen[..., None], logs - logs[..., [2]], 0.0)
        joint = logs[:, :, np.arange(BLOCK_SIZE), KINDS].sum(axis=3)  # (n, K, 8)
        if self.n_contexts > 1:
            named = np.where(observed, values, 0.0)[:, None, -self.n_contexts :]
            likely = norm.logpdf(named, np.eye(self.n_contexts), self.context_noise)
            joint = joint + np.where(observed[:, None, -self.n_contexts :], likely, 0.0).sum(axis=2)[..., None]
        return np.asarray(softmax(joint.reshape(n, -1), axis=1).reshape(joint.shape))

    def _gain(self, joint: np.ndarray, column: np.ndarray) -> np.ndarray:
        """(n,) exact gain of a `column` (n,) of each row, by Gauss-Hermite quadrature."""
        n_cells, n_columns = self.n_contexts * BLOCK_SIZE, self.X.shape[1]
        gain = np.zeros(len(joint))
        for j in np.unique(column):
            rows = column == j
            if j < n_cells:
                gain[rows] = self._gain_of(joint[rows], j // BLOCK_SIZE, KINDS[:, j % BLOCK_SIZE])
            elif j >= n_cells + self.n_noise:
                gain[rows] = self._gain_of(joint[rows], j - (n_columns - self.n_contexts), None)
        return gain

    def _gain_of(self, joint: np.ndarray, block: int, kinds: np.ndarray | None) -> np.ndarray:
        """(n,) gain of a feature of a block that is of some `kinds` (8,); None: of the context's column for it."""
        if kinds is None:
            centers, widths = np.array([1.0, 0.0]), np.full(2, self.context_noise)
            kinds, otherwise = np.zeros(N_CLASSES, dtype=int), 1
        else:
            centers, widths, otherwise = np.array([0, 1, MIDDLE]), self._widths, 2
        nodes, weights = np.polynomial.hermite.hermgauss(N_NODES)
        reading = (centers[:, None] + np.sqrt(2) * widths[:, None] * nodes).reshape(-1)  # (B,)
        likely = norm.pdf(reading[:, None], centers, widths)  # (B, kinds)
        inside, before = joint[:, block], joint.sum(axis=1)
        outside = before - inside
        after = inside[:, None] * likely[:, kinds] + outside[:, None] * likely[:, [otherwise]]  # (n, B, 8)
        total = after.sum(axis=2)
        of_kind = np.stack([inside[:, kinds == k].sum(axis=1) for k in range(len(centers))], axis=1)
        of_kind[:, otherwise] += outside.sum(axis=1)
        chance = np.repeat(of_kind, N_NODES, axis=1) * np.tile(weights, len(centers)) / np.sqrt(np.pi)
        with np.errstate(divide="ignore", invalid="ignore"):
            told = np.where(after > 0, after * np.log(after / total[..., None] / before[:, None]), 0.0).sum(axis=2)
            found = np.where(chance > 0, chance * told / total, 0.0).sum(axis=1)
        return np.maximum(found, 0.0)


def make_cube(
    n_samples: int = 1000, n_noise: int = 10, noise: float = SPREAD, *, random_state: Any = None
) -> CubeDataset:
    """Eight classes that each show in three of ten features, and features that tell nothing.

    Class k is a corner of a cube, (0, 0, 0) to (1, 1, 1) with the lowest bit first, and features ``a_k`` to
    ``a_{k + 2}`` are its coordinates plus Gaussian noise. The other features of the ten, and ``noise_0`` on, are around
    0.5 with standard deviation 0.3 and tell nothing else. So no feature tells much of all classes, and what to ask
    next depends on the answers. With noise 0.3, as in AFABench, a class is hard to tell; Shim et al. (2018) have less.

    Parameters
    ----------
    n_samples
        Number of rows.
    n_noise
        Number of features that have nothing to do with the class.
    noise
        Standard deviation of a feature around a coordinate.
    random_state
        Seed of the rows.

    Returns
    -------
    CubeDataset
        With `exact_proba`, `exact_gain`, `sample` and `best_accuracy`.

    Examples
    --------
    >>> data = make_cube(random_state=0)
    >>> data
    CubeDataset('cube': 1,000 rows, 20 features, 8 classes, no missing cells)
    >>> round(data.best_accuracy(3), 1)
    0.6
    """
    check_values("make_cube", locals(), LIMITS)
    names = [f"a_{i}" for i in range(BLOCK_SIZE)] + [f"noise_{i}" for i in range(n_noise)]
    facts = {"n_contexts": 1, "n_noise": n_noise, "noise": noise, "context_noise": 1.0}
    return _described("cube", names, None, _CUBE, facts).drawn(n_samples, random_state)


def make_cube_nm(
    n_samples: int = 1000,
    n_contexts: int = 5,
    noise: float = SPREAD,
    context_noise: float = 0.1,
    *,
    random_state: Any = None,
) -> CubeDataset:
    """Blocks of a cube of which one holds the class, and a group of columns that tells which.

    Blocks ``a``, ``b``... have ten features each, like those of `make_cube`. The class shows in one of them only. The
    group `context` has a column for each block, near 1 for the right one; it costs as much as one feature and tells
    nothing of the class, so that a policy that looks one step ahead does not acquire it.

    Parameters
    ----------
    n_samples
        Number of rows.
    n_contexts
        Number of blocks, from 2 to 26.
    noise
        Standard deviation of a feature of the right block around a coordinate.
    context_noise
        Standard deviation of the columns of the context around 0 and 1.
    random_state
        Seed of the rows.

    Returns
    -------
    CubeDataset
        With `groups` for a selector, `exact_proba`, `exact_gain` (of single columns), `sample` and `best_accuracy`.

    Examples
    --------
    >>> data = make_cube_nm(random_state=0)
    >>> data
    CubeDataset('cube_nm': 1,000 rows, 51 features (55 columns), 8 classes, no missing cells)
    >>> list(data.groups)
    ['context']
    >>> round(data.best_accuracy(3), 1)
    0.5
    """
    check_values("make_cube_nm", locals(), LIMITS_NM)
    letters = string.ascii_lowercase[:n_contexts]
    context = [f"{CONTEXT}_{letter}" for letter in letters]
    names = [f"{letter}_{i}" for letter in letters for i in range(BLOCK_SIZE)] + context
    facts = {"n_contexts": n_contexts, "n_noise": 0, "noise": noise, "context_noise": context_noise}
    return _described("cube_nm", names, {CONTEXT: context}, _CUBE_NM, facts).drawn(n_samples, random_state)


def _described(
    name: str, columns: list[str], groups: dict[str, list[str]] | None, words: str, facts: dict[str, Any]
) -> CubeDataset:
    X, classes = pd.DataFrame(columns=columns), np.arange(N_CLASSES)
    return CubeDataset(name, X, np.empty(0), None, groups, words.format(**facts), classes=classes, **facts)
