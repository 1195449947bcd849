"""What every baseline promises. Small data and little training: the promises do not need more."""

import functools
import importlib
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from tests.made import correlated_numbers, patients

from askwise import Prices
from askwise.errors import InvalidInput
from askwise.table.prices import AFFORDABLE_WITHIN

# Name -> module, and parameters that make it quick.
BASELINES: dict[str, tuple[str, dict[str, Any]]] = {
    "StaticCMI": ("static", {}),
    "StaticBest": (
        "best_subset",
        {"classifier": LogisticRegression(), "n_folds": 2, "n_candidates": 2, "max_features": 3},
    ),
    "AACO": ("aaco", {"epochs": 5, "width": 8, "n_neighbors": 5, "n_subsets": 10}),
    "RandomOrder": ("reference", {"epochs": 5, "width": 8}),
    "FullInformation": ("reference", {"classifier": LogisticRegression()}),
    "GDFS": ("gdfs", {"hidden": (8,), "pretrain_epochs": 2, "epochs": 1}),
    "DIME": ("dime", {"hidden": (8,), "pretrain_epochs": 2, "epochs": 1}),
    "VIP": ("vip", {"hidden": 8, "random_epochs": 2, "biased_epochs": 1}),
    "CWCF": ("cwcf", {"hidden": 8, "pretrain_updates": 5, "n_episodes": 64, "batch_size": 32, "memory": 200}),
    "Opportunistic": ("opportunistic", {"hidden": (8, 8), "n_samples": 3, "n_episodes": 64, "batch_size": 32}),
    "EDDI": ("eddi", {"encoder": (8,), "decoder": (8,), "latent": 3, "code": 4, "samples": 5, "steps": 10}),
    "INVASE": ("invase", {"selector": (8,), "predictor": (8,), "steps": 5}),
    "TabNet": ("tabnet", {"epochs": 2}),
}
SEE_EVERYTHING = {"FullInformation", "INVASE", "TabNet"}
# Those whose own tests do not compare a trained one with chance on rows never seen: what each needs to learn.
ENOUGH: dict[str, dict[str, Any]] = {
    "StaticCMI": {},
    "StaticBest": {},
    "RandomOrder": {"epochs": 60, "width": 32},
    "FullInformation": {},
    "INVASE": {"predictor": (32,), "steps": 300},
}


def make(name: str, **given: Any) -> Any:
    """The baseline with quick parameters."""
    module, quick = BASELINES[name]
    kind = getattr(importlib.import_module(f"askwise_bench.baselines.{module}"), name)
    return kind(**{"random_state": 0, **quick, **given})


def numeric_data(seed=0):
    return correlated_numbers(80, 5, [-0.6, 0.6], seed)


def mixed_data(seed=1):
    return patients(80, seed, pulse=True)


def rows_of(X: Any, rows: Any) -> Any:
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


def hidden_but(X: Any, mask: np.ndarray) -> Any:
    """The cells of `mask` (n, D), everything else missing."""
    if not isinstance(X, pd.DataFrame):
        return np.where(mask, X, np.nan)
    out = X.astype({name: "float" for name in X if pd.api.types.is_integer_dtype(X[name].dtype)})
    out = out.astype({name: "object" for name in X if X[name].dtype == bool})
    return out.where(mask)


class Case:
    """One baseline fitted on one table."""

    def __init__(self, name: str, data: str) -> None:
        self.name, self.data = name, data
        self.X, self.y = numeric_data() if data == "numbers" else mixed_data()
        self.given: dict[str, Any] = {}
        if data == "groups":
            self.given = {
                "groups": {"history": ["age", "smoker"]},
                "costs": Prices({"history": 3.0, "visits": 0.0, "pulse": 2.5}, shared=[(["history", "pulse"], 1.5)]),
            }
        self.baseline = make(name, **self.given).fit(self.X, self.y)
        rng = np.random.default_rng(3)
        d = self.X.shape[1]
        subsets = np.vstack([np.zeros(d, bool), np.ones(d, bool), rng.random((3, d)) < 0.5])
        features = self.baseline.schema_.any_column(subsets)
        self.mask = self.baseline.schema_.expand(features)[np.arange(len(self.y)) % len(subsets)]
        self.partly = hidden_but(self.X, self.mask)


@functools.cache
def all_cases():
    return [Case(name, data) for name in BASELINES for data in ("numbers", "groups")]


def of_every_case(check):
    """One test for a promise; a failure says which baseline broke it, and on which table."""

    def test():
        for case in all_cases():
            try:
                check(case)
            except Exception as error:
                error.add_note(f"{case.name} on {case.data}")
                raise

    test.__doc__ = check.__doc__
    return test


@of_every_case
def test_sees_everything_is_declared(case):
    assert case.baseline.sees_everything is (case.name in SEE_EVERYTHING)


@of_every_case
def test_rows_are_distributions_on_every_subset(case):
    proba = case.baseline.predict_proba(case.partly)
    assert proba.shape == (len(case.y), len(case.baseline.classes_))
    assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
    assert (proba >= 0).all()
    assert set(case.baseline.predict(case.partly)) <= set(case.y)


@of_every_case
def test_the_empty_and_the_full_subset_are_answered(case):
    nothing = case.baseline.predict_proba(hidden_but(case.X, np.zeros(case.X.shape, bool)))
    assert_allclose(nothing, np.tile(nothing[0], (len(nothing), 1)), rtol=0, atol=1e-9)
    assert len(np.unique(case.baseline.predict_proba(case.X).round(9), axis=0)) > 3


@of_every_case
def test_scores_are_numbers_and_known_features_are_not_for_sale(case):
    scores = case.baseline.ranking(case.partly)
    known = case.baseline.schema_.any_column(case.mask & ~pd.DataFrame(case.X).isna().to_numpy())
    assert scores.shape == known.shape
    assert np.isneginf(scores[known]).all()
    assert not np.isnan(scores).any()
    assert np.isfinite(scores[~known]).all()


@of_every_case
def test_hidden_cells_do_not_matter(case):
    """Purchases and predictions are the same whatever stands in the cells that are not bought in the end."""
    budget = 2.0
    run = case.baseline.acquire(case.X, budget=budget)
    if case.baseline.sees_everything:
        return  # reads the full row, and says so
    bought = case.baseline.schema_.expand(run.mask_after(-1))
    shifted = rows_of(case.X, (np.arange(len(case.y)) + 7) % len(case.y))
    if isinstance(case.X, pd.DataFrame):
        there = shifted.reset_index(drop=True)
        other = case.X.where(bought | case.X.isna().to_numpy() | there.isna().to_numpy(), there)
        other = other.astype(case.X.dtypes)
    else:
        other = np.where(bought, case.X, shifted)
    again = case.baseline.acquire(other, budget=budget)
    assert_array_equal(again.order, run.order)
    assert_allclose(again.proba, run.proba, rtol=0, atol=1e-9)


@of_every_case
def test_a_row_has_its_own_answer_whoever_stands_beside_it(case):
    together, scores = case.baseline.predict_proba(case.partly), case.baseline.ranking(case.partly)
    for r in range(0, 10, 2):
        row = rows_of(case.partly, [r])
        assert_allclose(case.baseline.predict_proba(row)[0], together[r], rtol=0, atol=1e-5)
        if case.name != "RandomOrder":  # drawn by the row's place in the batch
            assert_allclose(case.baseline.ranking(row)[0], scores[r], rtol=1e-4, atol=1e-5)


@of_every_case
def test_a_clone_fitted_again_gives_the_same_numbers_and_leaves_the_input_alone(case):
    if case.data == "numbers":
        return  # the mixed table asks more of it
    X, y = case.X.copy(), case.y.copy()
    before: Any = np.random.get_state(legacy=False)  # noqa: NPY002
    again = clone(case.baseline).fit(X, y)
    assert_array_equal(again.predict_proba(case.partly), case.baseline.predict_proba(case.partly))
    assert_array_equal(again.ranking(case.partly), case.baseline.ranking(case.partly))
    after: Any = np.random.get_state(legacy=False)  # noqa: NPY002
    assert_array_equal(after["state"]["key"], before["state"]["key"])
    again.acquire(X, budget=2)
    again.evaluate(X, y, budgets=[1.0])
    assert_array_equal(y, case.y)
    assert_frame_equal(pd.DataFrame(X), pd.DataFrame(case.X))


@of_every_case
def test_budgets_are_kept_and_what_is_missing_is_not_bought(case):
    run = case.baseline.acquire(case.X, budget=3.0)
    assert (run.spent_after(-1) <= 3.0 + AFFORDABLE_WITHIN).all()
    there = case.baseline.schema_.any_column(~pd.DataFrame(case.X).isna().to_numpy())
    assert not (run.mask_after(-1) & ~there).any()
    nothing = case.baseline.acquire(case.X, budget=0.0)
    free = np.asarray(case.baseline.costs_) == 0
    assert not nothing.mask_after(-1)[:, ~free].any()
    assert_array_equal(nothing.mask_after(-1)[:, free], there[:, free])
    everything = case.baseline.acquire(case.X)
    assert_array_equal(everything.mask_after(-1), there)


@of_every_case
def test_suggestions_are_what_acquire_buys_first(case):
    nothing = hidden_but(case.X, np.zeros(case.X.shape, bool))
    available = case.baseline.schema_.any_column(~pd.DataFrame(case.X).isna().to_numpy())
    if case.baseline.sees_everything:
        return  # suggests by what it is shown
    first = case.baseline.acquire(case.X, budget=4.0).order[:, 0]
    assert_array_equal(case.baseline.suggest(nothing, budget=4.0, available=available), first)
    assert (case.baseline.suggest(case.X) == -1)[available.all(axis=1)].all()


@of_every_case
def test_evaluate_has_a_row_per_budget(case):
    found = case.baseline.evaluate(case.X, case.y, budgets=[0.0, 2.0, 5.0])
    assert found["budget"].tolist() == [0.0, 2.0, 5.0]
    assert found["accuracy"].between(0, 1).all()
    assert (found["spent"] <= found["budget"] + 1e-6).all()
    assert np.isfinite(found.drop(columns="worst_class").to_numpy(dtype=float)).all()


@of_every_case
def test_a_stop_can_be_calibrated_and_says_what_it_saves(case):
    X, y = numeric_data(2) if case.data == "numbers" else mixed_data(2)
    stop = case.baseline.calibrate_stop(X, y, agreement=0.8, confidence=0.8)
    run = case.baseline.acquire(X, stop="calibrated")
    assert run.spent_after(-1).mean() == pytest.approx(stop.price)
    assert stop.n_losses <= 16  # of 80
    assert case.baseline.calibrate_stop(X, y, accuracy_gap=0.2, conditional=True).n_rows == 64  # no cross-fitting
    with pytest.raises(InvalidInput, match="80 of 80 rows were given to fit"):
        case.baseline.calibrate_stop(case.X, agreement=0.8)
    with pytest.raises(InvalidInput, match="needs X_cal"):
        case.baseline.calibrate_stop(agreement=0.8)
    if case.baseline.sees_everything:
        with pytest.raises(InvalidInput, match="reads the full row"):
            case.baseline.start(stop="calibrated")
    else:
        assert case.baseline.start(stop="calibrated").report()["guarantee"].startswith("Guaranteed")
    table = case.baseline.savings(X, levels=[0.9])
    ways = ["stop per case", "fixed budget", "static order", "stop per case, each class"]
    assert table["way"].tolist() == ways
    assert (table["share"] <= 1 + 1e-9).all()


@of_every_case
def test_a_session_walks_one_case(case):
    session = case.baseline.start(budget=4.0)
    framed = isinstance(case.X, pd.DataFrame)
    row: Any = case.X.iloc[0] if framed else dict(zip(case.baseline.features_, case.X[0], strict=True))
    suggestion = session.suggest()
    while suggestion is not None:
        names = {"history": ["age", "smoker"]}.get(suggestion.feature, [suggestion.feature])
        cells = {name: row[name] for name in names if pd.notna(row[name])}
        if not cells:
            session.unavailable(suggestion.feature)
        elif len(names) == 1:
            session.answer(suggestion.feature, cells[suggestion.feature])
        else:
            session.answer(suggestion.feature, cells)
        suggestion = session.suggest()
    report = session.report()
    assert 0 < report["spent"] <= 4.0
    assert abs(sum(report["probabilities"].values()) - 1) < 1e-6


def test_learns_something():
    """One column tells the class: with everything known, better than guessing on rows never seen."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(180, 3))
    y = (X[:, 1] > 0).astype(int)
    for name, enough in ENOUGH.items():
        accuracy = make(name, **enough).fit(X[:100], y[:100]).score(X[100:], y[100:])
        assert accuracy > 0.75, name


def test_prices_are_kept_in_any_spelling():
    """One spelling for each baseline; the three are read by one function."""
    X, y = numeric_data()
    spellings = cycle([{"x1": 4.0}, np.array([1.0, 4.0, 1.0, 1.0, 1.0]), Prices([1.0, 4.0, 1.0, 1.0, 1.0])])
    for name, costs in zip(BASELINES, spellings, strict=False):
        baseline = make(name, costs=costs).fit(X, y)
        assert_array_equal(baseline.costs_, [1, 4, 1, 1, 1], err_msg=name)
        run = baseline.acquire(X, budget=3.0)
        assert not run.mask_after(-1)[:, 1].any(), name
        assert_allclose(run.spent_after(-1), 3.0, err_msg=name)


def test_bad_input_is_refused():
    X, y = numeric_data()
    for name in BASELINES:
        for change, words in (
            ({"costs": {"nobody": 1.0}}, "no feature 'nobody'"),
            ({"costs": [1.0, 2.0]}, "one price for each"),
            ({"groups": {"pair": [0, 99]}}, "99"),
        ):
            with pytest.raises(InvalidInput, match=words):
                make(name, **change).fit(X, y)
        with pytest.raises(ValueError, match="one class"):
            make(name).fit(X, np.zeros(len(X)))
        with pytest.raises(InvalidInput, match="NaN"):
            make(name).fit(X, np.where(np.arange(len(X)) == 3, np.nan, 1.0))
        with pytest.raises(NotFittedError):
            make(name).predict_proba(X)


@of_every_case
def test_bad_rows_are_refused_later_too(case):
    fewer = case.X.drop(columns="age") if isinstance(case.X, pd.DataFrame) else case.X[:, 1:]
    for ask in (case.baseline.predict_proba, case.baseline.suggest, case.baseline.acquire):
        with pytest.raises(ValueError, match=r"features|feature names|columns"):
            ask(fewer)
    with pytest.raises(InvalidInput, match="budget must be"):
        case.baseline.suggest(case.X, budget=-1)
    with pytest.raises(InvalidInput, match="does not know"):
        case.baseline.evaluate(case.X, np.array(["never"] * len(case.y)))
