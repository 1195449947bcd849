"""A task: the rows to learn from, the rows to be judged on, and what each feature costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from askwise.datasets import load, make_switch, names
from askwise.errors import InvalidInput

TEST_SHARE = 0.2
PRICES = ("uniform", "variable", "published")
"""1 each; drawn from the seed, uniform between 1 and 10; those that were published with the table."""

MADE = ("switch",)
SWITCH_ROWS = 1500


@dataclass(frozen=True)
class Limits:
    """Most rows of a table that are used; a random sample of those of larger ones."""

    training: int
    testing: int


@dataclass(frozen=True, eq=False)
class Task:
    """One split of one table under one set of prices; the same for every method."""

    data: str
    prices: str
    seed: int
    X_train: pd.DataFrame
    y_train: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray
    costs: Any
    groups: Mapping[str, Sequence[Any]] | None


def known_data() -> list[str]:
    """Names of the tables that a task can be made of."""
    return sorted([*names(), *MADE])


def make_task(data: str, prices: str, seed: int, limits: Limits) -> Task:
    """80 % of the rows to train, 20 % to test, by class, or by row group where rows belong together."""
    if data not in known_data():
        raise InvalidInput(f"There is no data set {data!r}. The data sets are: {', '.join(known_data())}.")
    dataset = make_switch(SWITCH_ROWS, random_state=seed) if data in MADE else load(data)
    rng = np.random.default_rng(seed)
    train, test = _split(dataset.y, dataset.row_groups, rng)
    train, test = _with_every_class(dataset.y, train, limits.training), test[: limits.testing]
    test = test[np.isin(dataset.y[test], dataset.y[train])]
    return Task(
        data,
        prices,
        seed,
        dataset.X.iloc[train],
        dataset.y[train],
        dataset.X.iloc[test],
        dataset.y[test],
        _costs(dataset, prices, seed),
        dataset.groups,
    )


def _costs(dataset: Any, prices: str, seed: int) -> Any:
    if prices == "uniform":
        return None
    if prices == "published":
        if dataset.prices is None:
            raise InvalidInput(f"{dataset.name} has no published prices; use prices uniform or variable.")
        return dataset.prices
    if prices != "variable":
        raise InvalidInput(f"prices must be one of {PRICES}; got {prices!r}.")
    grouped = {column for members in (dataset.groups or {}).values() for column in members}
    n_features = len(dataset.groups or {}) + sum(column not in grouped for column in dataset.X.columns)
    return np.random.default_rng([seed, n_features]).uniform(1, 10, n_features)


def _split(y: np.ndarray, groups: np.ndarray | None, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers in random order; a class of a single row is trained on."""
    order = rng.permutation(len(y))
    if groups is not None:
        chosen = rng.permutation(np.unique(groups))[: round(TEST_SHARE * len(np.unique(groups)))]
        testing = np.isin(groups, chosen)
    else:
        testing = np.zeros(len(y), dtype=bool)
        for label in np.unique(y):
            rows = order[y[order] == label]
            testing[rows[: round(TEST_SHARE * len(rows))]] = True
    return order[~testing[order]], order[testing[order]]


def _with_every_class(y: np.ndarray, rows: np.ndarray, most: int) -> np.ndarray:
    """The first `most` of `rows`, led by one row of each class."""
    first = np.unique(y[rows], return_index=True)[1]
    return np.concatenate([rows[first], np.delete(rows, first)])[:most]
