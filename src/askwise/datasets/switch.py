"""Data where the order of acquisition matters: a feature, useless alone, tells which others are relevant."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import entr, expit
from scipy.stats import norm

from askwise.datasets.synthetic import SyntheticDataset
from askwise.errors import InvalidInput
from askwise.parameters import POSITIVE, Flag, Limits, Whole, check_values
from askwise.table.prices import AFFORDABLE_WITHIN, check_budget

SWITCH = "switch"
LIMITS: Limits = {
    "n_samples": Whole(1),
    "n_settings": Whole(2, most=len(string.ascii_lowercase)),
    "block_size": Whole(1),
    "n_noise": Whole(0),
    "noise": POSITIVE,
    "categorical_switch": Flag(),
}

_DESCRIPTION = """Two equally likely classes and {n_settings} blocks of {block_size} features. Each block votes for a
class, and each of its features reads that vote with Gaussian noise of standard deviation {noise:g}; the
feature `switch` names the block whose vote is the label, and is independent of the label and of all other
features. {n_noise} `noise` features look like the others and are irrelevant. The best policy acquires the
switch, and then features of the block that it names."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SwitchDataset(SyntheticDataset):
    """Blocks of features and a switch that says which block matters, as given to `make_switch`."""

    n_settings: int
    block_size: int
    n_noise: int
    noise: float
    categorical_switch: bool

    def best_accuracy(self, budget: float | None = None, switch_known: bool = False) -> float:
        r"""Accuracy of the best policy that buys at most `budget` features, in closed form.

        With :math:`\sigma` for the noise, :math:`m` features of the block that the switch names give
        :math:`\Phi(\sqrt m / \sigma)`. If the switch is known, all the budget goes there. If not, a budget of
        2 or more buys the switch first: no policy does better, because what it could have bought instead
        belongs to the right block only once in `n_settings` times. A budget of 1 buys any one feature of a
        block.

        Parameters
        ----------
        budget
            Number of features that can be bought, each at price 1; None is unlimited.
        switch_known
            Whether the switch is known from the start and not paid for.
        """
        affordable = np.floor(check_budget(budget, 1)[0] + AFFORDABLE_WITHIN)
        if not switch_known and affordable == 1:
            return 0.5 + (self._block_accuracy(1) - 0.5) / self.n_settings
        return self._block_accuracy(affordable if switch_known else max(affordable - 1, 0))

    def _block_accuracy(self, n_bought: float) -> float:
        return float(norm.cdf(np.sqrt(min(n_bought, self.block_size)) / self.noise))

    def _draw(self, n_samples: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
        letters = string.ascii_lowercase[: self.n_settings]
        votes = rng.choice([-1.0, 1.0], size=(n_samples, self.n_settings))
        setting = rng.integers(self.n_settings, size=n_samples)
        meaningless = rng.choice([-1.0, 1.0], size=(n_samples, self.n_noise))
        centers = np.hstack([np.repeat(votes, self.block_size, axis=1), meaningless])
        names = [f"{letter}_{i}" for letter in letters for i in range(self.block_size)]
        names += [f"noise_{i}" for i in range(self.n_noise)]
        X = pd.DataFrame(centers + self.noise * rng.standard_normal(centers.shape), columns=names)
        X[SWITCH] = [letters[code] for code in setting] if self.categorical_switch else setting.astype(float)
        return X, (votes[np.arange(n_samples), setting] > 0).astype(int)

    def _numbers(self, X: pd.DataFrame) -> np.ndarray:
        codes = _switch_codes(X[SWITCH], self.n_settings)
        return X.assign(**{SWITCH: codes}).to_numpy(dtype=float, na_value=np.nan)

    def _exact_proba(self, values: np.ndarray, observed: np.ndarray) -> np.ndarray:
        votes = self._votes(values, observed)
        setting = np.where(observed[:, -1], values[:, -1], 0).astype(int)
        named = votes[np.arange(len(values)), setting]
        positive = np.where(observed[:, -1], named, votes.mean(axis=1))
        return np.column_stack([1 - positive, positive])

    def _exact_gain(self, values: np.ndarray, observed: np.ndarray) -> np.ndarray:
        """How far the entropy of the label falls on average.

        A feature of a block is a mixture of two Gaussians around that block's vote, integrated by Gauss-Hermite
        quadrature; the switch is uniform.
        """
        votes = self._votes(values, observed)
        nodes, weights = np.polynomial.hermite.hermgauss(20)
        readings = np.concatenate([side + np.sqrt(2) * self.noise * nodes for side in (-1.0, 1.0)])
        before = self._entropy(values)
        gain = np.zeros(values.shape)
        for i in range(self.n_settings * self.block_size):
            vote = votes[:, [i // self.block_size]]
            chance = np.hstack([(1 - vote) * weights, vote * weights]) / np.sqrt(np.pi)
            gain[:, i] = before - self._expected_entropy(values, i, readings, chance)
        uniform = np.full((len(values), self.n_settings), 1 / self.n_settings)
        gain[:, -1] = before - self._expected_entropy(values, -1, np.arange(self.n_settings), uniform)
        return np.maximum(gain, 0.0)

    def _votes(self, values: np.ndarray, observed: np.ndarray) -> np.ndarray:
        """p(the vote of block k is for class 1 | x_S), (n, n_settings)."""
        readings = np.where(observed, values, 0.0)[:, : self.n_settings * self.block_size]
        evidence = readings.reshape(len(values), self.n_settings, self.block_size).sum(axis=2)
        return np.asarray(expit(2 * evidence / self.noise**2))

    def _expected_entropy(self, values: np.ndarray, i: int, outcomes: np.ndarray, chance: np.ndarray) -> np.ndarray:
        """(n,) mean entropy of the label once cell `i` is one of `outcomes` (B,), by their `chance` (n, B)."""
        tried = np.repeat(values[:, None], len(outcomes), axis=1)  # (n, B, D)
        tried[:, :, i] = outcomes
        after = self._entropy(tried.reshape(-1, values.shape[1])).reshape(chance.shape)
        return np.asarray((chance * after).sum(axis=1))

    def _entropy(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(entr(self._exact_proba(values, ~np.isnan(values))).sum(axis=1))


def make_switch(
    n_samples: int = 2000,
    n_settings: int = 3,
    block_size: int = 3,
    n_noise: int = 2,
    noise: float = 1.0,
    *,
    categorical_switch: bool = False,
    random_state: Any = None,
) -> SwitchDataset:
    """A switch that is useless alone and tells which block of features decides the label.

    Every block has a vote, -1 or 1, drawn independently and evenly. Feature ``a_0`` of block ``a`` is that
    block's vote plus Gaussian noise, and so are ``a_1``, ``a_2`` with noise of their own. The label is 1 if
    the block that `switch` names votes 1. So the features are independent of the switch, and the switch
    of the label, and each further feature of the right block makes the label more certain. The switch is the last
    column, so that breaking ties by the first column does not favor a policy.

    Parameters
    ----------
    n_samples
        Number of rows.
    n_settings
        Number of blocks, and of values of the switch, from 2 to 26.
    block_size
        Features per block.
    n_noise
        Number of irrelevant features.
    noise
        Standard deviation of a feature around its block's vote.
    categorical_switch
        Whether the switch holds the letters of the blocks, as strings, and not the numbers 0, 1, 2...
    random_state
        Seed of the rows.

    Returns
    -------
    SwitchDataset
        With `exact_proba`, `exact_gain`, `sample` and `best_accuracy`.

    Examples
    --------
    >>> data = make_switch(random_state=0)
    >>> data
    SwitchDataset('switch': 2,000 rows, 12 features, 2 classes, no missing cells)
    >>> round(data.best_accuracy(3, switch_known=True), 3), round(data.best_accuracy(3), 3)
    (0.958, 0.921)
    """
    check_values("make_switch", locals(), LIMITS)
    shape: dict[str, Any] = {"n_settings": n_settings, "block_size": block_size, "n_noise": n_noise, "noise": noise}
    facts: dict[str, Any] = {"classes": np.arange(2), "categorical_switch": categorical_switch, **shape}
    distribution = SwitchDataset(
        "switch", pd.DataFrame(), np.empty(0), None, None, _DESCRIPTION.format(**shape), **facts
    )
    return distribution.drawn(n_samples, random_state)


def _switch_codes(column: pd.Series, n_settings: int) -> np.ndarray:
    """Number of the setting, NaN where missing; numbers and letters are accepted."""
    code_of: dict[Any, float] = {letter: float(i) for i, letter in enumerate(string.ascii_lowercase[:n_settings])}
    code_of.update({float(i): float(i) for i in range(n_settings)})
    codes = column.map(code_of).astype(float)
    unknown = column[codes.isna() & column.notna()]
    if len(unknown):
        raise InvalidInput(
            f"The switch must be a whole number from 0 to {n_settings - 1}, or a letter 'a' to "
            f"{string.ascii_lowercase[n_settings - 1]!r}; got {unknown.tolist()[0]!r}."
        )
    return codes.to_numpy()
