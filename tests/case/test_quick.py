"""Whole cases by the networks of a distilled policy, and by the selector where these are unsure."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from tests.made import patients

import askwise
from askwise import DynamicFeatureSelector, InvalidInput, Prices
from askwise.case.quick import QuickStop
from askwise.constraints import first
from askwise.datasets import make_gaussian
from askwise.epistemic import BeliefModel
from askwise.policy import Distilled, Greedy

N = 6


@pytest.fixture(scope="module")
def data():
    made = make_gaussian(1500, N, random_state=0)
    return pd.DataFrame(np.asarray(made.X), columns=[f"x{j}" for j in range(N)]), np.asarray(made.y)


@pytest.fixture(scope="module")
def selector(data):
    X, y = data
    prices = Prices([1.0, 2.0, 0.5, 3.0, 2.0, 2.0], shared=[([3, 4], 1.5)])
    options: dict[str, Any] = {"epistemic": None, "random_state": 0, "progress": False, "costs": prices}
    policy = Distilled(Greedy(), n_states=1500, hidden=(32,), exact_share=0.05)
    model = LogisticRegression().fit(X[:600], y[:600])
    return DynamicFeatureSelector(model, policy=policy, **options).fit(X[:600], y[:600])


@pytest.fixture(scope="module")
def stopping(selector, data):
    """The selector with a stop for quick cases."""
    selector.calibrate_stop(data[0][600:1000], agreement=0.9, per_class=False, quick=True)
    return selector


@pytest.fixture
def asked(monkeypatch):
    """How many rows the wrapped model was asked about."""
    rows: list[int] = []
    believe = BeliefModel.believe

    def counting(self, given, **options):
        rows.append(len(given))
        return believe(self, given, **options)

    monkeypatch.setattr(BeliefModel, "believe", counting)
    return rows


def followed(quick, row, **options):
    """A case answered from a row, and what was bought."""
    case, bought = quick.start(**options), []
    while (feature := case.suggest()) is not None:
        bought.append(feature)
        case.answer(feature, row[feature])
    return case, bought


def test_a_case_equals_its_row_in_a_batch(stopping, data):
    """Choices, prices with set-ups, probabilities, and what was left to the selector; with and without the stop."""
    quick, X = stopping.quick(), data[0][1000:1100].reset_index(drop=True)
    hidden = X.mask(np.random.default_rng(0).random(X.shape) < 0.2)
    for budget in (None, 4.0):
        table = quick.acquire(hidden, budget)
        for r, row in hidden.iterrows():
            case = quick.start(budget=budget)
            for name in row.index[row.isna()]:
                case.unavailable(name)
            bought = []
            while (feature := case.suggest()) is not None:
                bought.append(feature)
                case.answer(feature, row[feature])
            found = table.loc[r]
            assert " > ".join(bought) == found["bought"]
            assert case.spent == pytest.approx(found["spent"])
            assert case.predict() == found["prediction"]
            np.testing.assert_allclose(case.predict_proba(), found.filter(like="proba_").astype(float), atol=1e-9)
            assert case.decision_is_final == pytest.approx(found["decision_is_final"], abs=1e-9)
            assert case.asked == [found["asked_policy"], found["asked_belief"]]
    assert table["spent"].max() <= 4.0
    assert table["asked_policy"].sum() > 0


def test_it_decides_as_the_selector_does_and_says_how_far_apart_they_are(selector, data):
    X = data[0][1000:]
    exact, quick = selector.acquire(X, budget=4), selector.quick().acquire(X, budget=4)
    assert (quick["prediction"].to_numpy() == exact.predict()).mean() > 0.9
    report = selector.choices_["policy"]["distilled"]["belief"]
    assert report["same_decision"] > 0.95
    assert report["regret"] < 0.01
    assert 0 < report["exact_share"] <= 0.06
    said = np.abs(quick["proba_1"] - selector.predict_proba(_bought(X, quick))[:, 1])
    assert said.mean() < 3 * report["apart"] + 0.01


def _bought(X, table):
    """The rows with what was bought, as `predict_proba` takes them."""
    names = [set(bought.split(" > ")) for bought in table["bought"]]
    known = np.array([[name in one for name in X.columns] for one in names])
    return X.where(known)


def test_the_wrapped_model_is_asked_where_it_is_said(stopping, data, asked):
    quick = stopping.quick()
    asked.clear()
    table = quick.acquire(data[0][1000:])
    alone = table["asked_policy"] + table["asked_belief"] == 0
    assert sum(asked) <= table["asked_policy"].sum() + table["asked_belief"].sum()
    assert alone.mean() > 0.5
    asked.clear()
    for r in np.flatnonzero(alone)[:20]:
        followed(quick, data[0].iloc[1000 + r])
    assert not asked
    always, margins = selector_with_margins(stopping, np.inf), {"budget": 4.0}
    exact = stopping.with_policy(stopping.policy_.exact_).acquire(data[0][1000:1040], **margins)
    table = always.acquire(data[0][1000:1040], **margins)
    names = np.array(stopping.features_)
    assert table["bought"].tolist() == [" > ".join(names[order[order >= 0]]) for order in exact.order]
    np.testing.assert_allclose(table["proba_1"], exact.proba[:, -1, 1], atol=1e-9)


def selector_with_margins(selector, margin):
    """Quick cases that always ask, or never do."""
    import copy

    other = copy.copy(selector)
    other.policy_ = copy.copy(selector.policy_)
    other.policy_.margin_ = other.policy_.belief_margin_ = margin
    return other.quick()


def test_the_stop_keeps_its_promise_and_outlives_saving(stopping, data, tmp_path):
    X, quick = data[0][1000:], stopping.quick()
    assert "at most 10% of all cases" in quick.stop_.promise
    assert stopping.stop_ is None  # that of `acquire` is another one
    table = quick.acquire(X)
    assert (table["prediction"].to_numpy() == stopping.predict(X)).mean() >= 0.87  # 90 % less two standard errors
    assert table["spent"].mean() < 0.8 * stopping.prices_.total()
    stopping.save(tmp_path / "saved")
    again = askwise.load(tmp_path / "saved").quick()
    pd.testing.assert_frame_equal(again.acquire(X), table)
    assert isinstance(again.stop_, QuickStop)
    assert quick.acquire(X, budget=4.0)["spent"].max() > table["spent"].min()  # it was not calibrated for this budget
    stopping.save(tmp_path / "synthetic", rows="synthetic")
    assert askwise.load(tmp_path / "synthetic").quick().stop_ is None


def test_groups_categories_and_what_is_known_at_the_start():
    X, y = patients(300, 0)
    groups = {"lab": list(X.columns[:2])}
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    words = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    numbers = SimpleImputer(), make_column_selector(dtype_include="number")
    columns = make_column_transformer(numbers, (words, make_column_selector(dtype_exclude="number")))
    model = make_pipeline(columns, LogisticRegression(max_iter=2000)).fit(X, y)
    options: dict[str, Any] = {"epistemic": None, "calibration": None, "random_state": 0, "progress": False}
    policy = Distilled(Greedy(), n_states=300, hidden=(8,))
    found = DynamicFeatureSelector(model, groups=groups, policy=policy, **options).fit(X, y)
    quick, some = found.quick(), X.dropna().head(5)
    table = quick.acquire(some, budget=2)
    for r in range(len(some)):
        row = {"lab": dict(some.iloc[r][groups["lab"]]), **some.iloc[r].to_dict()}
        case, bought = followed(quick, row, budget=2)
        assert " > ".join(bought) == table["bought"][r]
        np.testing.assert_allclose(case.predict_proba(), table.filter(like="proba_").iloc[r].astype(float), atol=1e-9)
    case = quick.start(known={"lab": {groups["lab"][0]: some.iloc[0][groups["lab"][0]]}}, budget=1)
    assert case.spent == 0
    assert case.suggest() not in (None, "lab")


def test_bad_input(selector, data):
    quick = selector.quick()
    case = quick.start()
    with pytest.raises(InvalidInput, match="there is no feature 'y'"):
        case.answer("y", 1.0)
    case.answer("x1", 1.0)
    with pytest.raises(InvalidInput, match="'x1' is known already"):
        case.answer("x1", 1.0)
    with pytest.raises(InvalidInput, match="must be a number"):
        case.answer("x2", "high")
    poor = quick.start(budget=0.5)
    with pytest.raises(InvalidInput, match=r"'x1' costs 2 and only 0.5 is left\. Pass values that are known"):
        poor.answer("x1", 1.0)
    assert poor.spent == 0
    for known in ([1], "x1"):
        with pytest.raises(InvalidInput, match="known must be a dict"):
            quick.start(known)
    with pytest.raises(InvalidInput, match=r'needs policy="distilled"; this selector has Greedy'):
        selector.with_policy("greedy").quick()
    with pytest.raises(InvalidInput, match="quick=True needs X_cal"):
        selector.calibrate_stop(agreement=0.9, quick=True)
    X, y = data
    options: dict[str, Any] = {"epistemic": None, "calibration": None, "progress": False}
    policy = Distilled(Greedy(), n_states=60, hidden=(4,))
    ruled = DynamicFeatureSelector(LogisticRegression(), policy=policy, constraints=[first("x0")], **options)
    with pytest.raises(InvalidInput, match="rules of the house"):
        ruled.fit(X[:100], y[:100]).quick()
