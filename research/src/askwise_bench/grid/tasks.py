"""A task: the rows to train on, the rows to test on, and what each feature costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from askwise.datasets import Dataset, load, make_switch, names
from askwise.datasets.dataset import split_rows
from askwise.errors import InvalidInput
from askwise_bench.grid.images import IMAGES, draw_images

TEST_SHARE = 0.2
PRICES = ("uniform", "variable", "published")
"""1 each; drawn with the seed, uniform between 1 and 10; those that were published with the table."""

MADE = ("switch",)
SWITCH_ROWS = 1500


@dataclass(frozen=True)
class Limits:
    """The most rows of a table that are used; of a larger one, a random sample; None = all rows."""

    training: int | None
    testing: int | None


@dataclass(frozen=True)
class Settings:
    """Where the paper's own settings replace ours.

    `schedule` is the preset of the Q-networks, `subsets_per_size` the number of random subsets in the studies of the
    risk gap (None = their own), `images` the stages of training on images (see `askwise.vision.method`);
    `authors_training`: GDFS and DIME with the batches and the patience of their authors' scripts.
    """

    schedule: str = "batched"
    subsets_per_size: int | None = None
    images: str = "quick"
    authors_training: bool = False


OURS = Settings()
PAPERS = Settings("paper", subsets_per_size=100, images="paper", authors_training=True)


@dataclass(frozen=True, eq=False)
class Task:
    """One split of one table or set of images under one set of prices; the same for every method."""

    data: str
    prices: str
    seed: int
    X_train: Any
    y_train: np.ndarray
    X_test: Any
    y_test: np.ndarray
    costs: Any
    groups: Any
    settings: Settings = OURS


def known_data() -> list[str]:
    """Names of the data sets that a task can use."""
    return sorted([*names(), *MADE, *IMAGES])


def check_data(name: str) -> None:
    """Refuse an unknown name."""
    if name not in known_data():
        raise InvalidInput(f"There is no data set {name!r}. The data sets are: {', '.join(known_data())}.")


def whole_table(data: str, seed: int) -> Dataset:
    """A table by name; a synthetic one is drawn with the seed."""
    return make_switch(SWITCH_ROWS, random_state=seed) if data in MADE else load(data)


def make_task(data: str, prices: str, seed: int, limits: Limits, settings: Settings = OURS) -> Task:
    """80 % of the rows to train, 20 % to test, by class, or by row group where rows belong together."""
    check_data(data)
    if data in IMAGES:
        return Task(data, prices, seed, costs=None, **draw_images(data, prices, seed, limits, settings))
    dataset = whole_table(data, seed)
    most = {"most_training": limits.training, "most_test": limits.testing}
    train, test = split_rows(dataset, seed, test_share=TEST_SHARE, **most)
    parts = dataset.X.iloc[train], dataset.y[train], dataset.X.iloc[test], dataset.y[test]
    return Task(data, prices, seed, *parts, prices_of(dataset, prices, seed), dataset.groups, settings)


def prices_of(dataset: Dataset, prices: str, seed: int) -> Any:
    if prices == "uniform":
        return None
    if prices == "published":
        if dataset.prices is None:
            raise InvalidInput(f"{dataset.name} has no published prices; use prices uniform or variable.")
        return dataset.prices
    if prices != "variable":
        raise InvalidInput(f"prices must be one of {PRICES}; got {prices!r}.")
    return np.random.default_rng([seed, dataset.n_features]).uniform(1, 10, dataset.n_features)
