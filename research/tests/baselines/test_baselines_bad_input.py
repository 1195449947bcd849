"""What a baseline must refuse in words, and what must not break it."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression

from askwise.datasets import make_gaussian
from askwise.errors import InvalidInput
from askwise.parameters import Choice, Flag, Number, Several, Whole, limits_of
from askwise_bench import baselines
from askwise_bench.baselines import (
    AACO,
    CWCF,
    DIME,
    GDFS,
    VIP,
    ExactOracle,
    FullInformation,
    Opportunistic,
    RandomOrder,
    StaticBest,
    StaticCMI,
)

EVERY: list[Any] = [getattr(baselines, name) for name in baselines.__all__ if name not in ("Baseline", "ExactOracle")]
BROKEN: list[Any] = [-1, "abc", float("nan"), (0,), [-2.5], {}]


REFUSED: list[tuple[Any, dict[str, list[Any]]]] = [
    (DIME, {"exploration": [1.5], "exploration_decay": [-0.1], "patience": [-1]}),
    (GDFS, {"holdout": [0.0, 0.9], "dropout": [1.0], "max_features": [0], "batch_size": [0], "epochs": [-1]}),
    (CWCF, {"cost_weight": [-1.0], "memory": [10], "hidden": [0], "n_episodes": [0], "updates_per_round": [-1]}),
    (Opportunistic, {"dropout": [1.0], "n_samples": [0], "memory": [10], "updates_per_step": [-1]}),
    (VIP, {"temperature": [(1.0, 0.0)], "dropout": [1.0], "hidden": [0], "batch_size": [0], "random_epochs": [-1]}),
]
"""Values just outside of the limits."""


def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.normal(50, 10, 60), "city": rng.choice(["Ghent", "Lille"], 60), "same": 7})
    return X, np.where(X["age"] > 50, "ill", "well")


def test_every_number_among_the_parameters_is_checked_before_training():
    for kind in EVERY:
        X, y = table()
        free = {"costs", "groups", "constraints", "random_state", "progress", "estimator", "classifier"}
        defaults = kind().get_params(deep=False)
        assert set(defaults) - free == set(limits_of(kind))
        for name, limit in limits_of(kind).items():
            assert limit.allows(defaults[name])
            for value in BROKEN:
                with pytest.raises(InvalidInput, match=rf"{kind.__name__}: {name} must be .*; got"):
                    kind(**{name: value}).fit(X, y)


def test_values_just_outside_the_limits_are_refused_by_name():
    X, y = table()
    for kind, parameters in REFUSED:
        for name, values in parameters.items():
            for value in values:
                with pytest.raises(InvalidInput, match=f"{kind.__name__}: {name}"):
                    kind(**{name: value}).fit(X, y)


def test_limits():
    cases: list[Any] = [
        (Whole(1), "a whole number of at least 1", [1, np.int64(5)], [0, 1.0, True, None, "1"]),
        (Whole(2, optional=True), "a whole number of at least 2 or None", [2, None], [1]),
        (Number(0), "a number >= 0", [0, 0.5, np.float32(3)], [-0.1, np.inf, np.nan, True, None, "1"]),
        (Number(0, above=True), "a number > 0", [1e-9], [0]),
        (Number(0, 1, below=True), "a number in [0, 1)", [0, 0.99], [1, 1.5]),
        (Number(0, 0.5, above=True), "a number in (0, 0.5]", [0.5], [0, 0.6]),
        (Several(Whole(1)), "a list or tuple of at least 0 entries, each a whole", [(), [3, 4]], [3, (0,), "ab", None]),
        (Choice(("a", "b")), "one of ('a', 'b')", ["a"], ["c", None, ["a"]]),
        (Several(Whole(1), fewest=1), "of at least 1 entries", [(3,)], [()]),
        (Several(Number(0), count=2), "of 2 entries, each a number >= 0", [(0.1, 1)], [(0.1,), (0.1, 1, 1), 0.1]),
        (Flag(), "True or False", [True, np.False_], [1, "yes", None]),
    ]
    for limit, words, allowed, refused in cases:
        assert words in str(limit)
        assert all(limit.allows(value) for value in allowed)
        assert not any(limit.allows(value) for value in refused)


def test_a_fitted_baseline_can_be_pickled():
    for baseline in [
        StaticCMI(random_state=0),
        StaticBest(classifier=LogisticRegression(), n_folds=2, n_candidates=2, max_features=2, random_state=0),
        FullInformation(LogisticRegression(), random_state=0),
        AACO(epochs=2, width=4, n_subsets=5, random_state=0),
        AACO(LogisticRegression(), n_subsets=5, random_state=0),
        RandomOrder(epochs=2, width=4, n_subsets=5, random_state=0),
    ]:
        X, y = table()
        X = X[["age", "same"]]
        baseline.fit(X, y)
        again = pickle.loads(pickle.dumps(baseline))
        run, other = baseline.acquire(X, budget=1), again.acquire(X, budget=1)
        assert_array_equal(other.order, run.order)
        assert_array_equal(other.proba, run.proba)


def test_the_exact_oracle_refuses_columns_in_another_order():
    """Its gains stand in the order of the data set, and would be read as those of other columns."""
    data = make_gaussian(60, 3, random_state=0)
    with pytest.raises(InvalidInput, match="columns in the order of the data set"):
        ExactOracle(data).fit(data.X[data.X.columns[::-1]], data.y)
