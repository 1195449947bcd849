"""What errors cost: decisions of least expected cost, expected savings, and stopping where nothing pays for itself."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from askwise import DynamicFeatureSelector, Prices, wrap
from askwise.displays import DecisionCurveDisplay
from askwise.errors import InvalidInput
from askwise.options import POLICIES
from askwise.policy import Static
from askwise.predict import ConditionalPredictor
from askwise.stopping import Confidence

CLASSES = np.array(["ill", "unclear", "well"])
COSTS = np.array([[0.0, 10.0, 20.0], [5.0, 0.0, 10.0], [30.0, 12.0, 0.0]])


def xor(X):
    """Two features decide together, right in 95 % of the cases; the third is noise."""
    ill = np.where(np.asarray(X)[:, 0] != np.asarray(X)[:, 1], 0.95, 0.05)
    return np.column_stack([ill, 1 - ill])


def parity(X):
    """Three features decide together; no pair of them tells anything."""
    ill = np.where(np.asarray(X)[:, :3].sum(axis=1) % 2 == 1, 0.95, 0.05)
    return np.column_stack([ill, 1 - ill])


def graded(X):
    """Three classes from two features; the third is noise."""
    a, b = np.asarray(X)[:, 0], np.asarray(X)[:, 1]
    weights = np.column_stack([1 + 6 * a, 2 + b, 4 - 3 * a * (b == 2)])
    return weights / weights.sum(axis=1, keepdims=True)


def cases(levels, repeats):
    """All combinations of the levels, equally often."""
    return np.repeat(np.array(list(product(*[range(n) for n in levels])), dtype=float), repeats, axis=0)


def selector_of(model, classes, levels, *, repeats=60, **options):
    X = cases(levels, repeats)
    proba = model(X)
    drawn = np.random.default_rng(0).random((len(X), 1))
    y = np.asarray(classes)[(drawn > proba.cumsum(axis=1)).sum(axis=1)]
    options = {"epistemic": None, "random_state": 0, "progress": False} | options
    return DynamicFeatureSelector(wrap(model, classes=list(classes)), **options).fit(X, y)


def exact_saving(model, levels, feature, known, costs):
    """Expected saving by a feature where all combinations of the unknown features are equally likely."""
    X = cases(levels, 1)
    for i, value in known.items():
        X = X[X[:, i] == value]
    proba = model(X)
    before = (proba.mean(axis=0) @ costs).min()
    after = [(proba[X[:, feature] == v].mean(axis=0) @ costs).min() for v in range(levels[feature])]
    return before - np.mean(after)


def test_expected_savings_are_the_exact_ones_with_many_completions():
    levels = (2, 3, 2)
    many = ConditionalPredictor(None, n_neighbors=2000, bandwidth=0.05)
    selector = selector_of(graded, CLASSES, levels, error_costs=COSTS, adaptation=many, repeats=400)
    for known in ({}, {0: 0.0}, {0: 1.0}, {1: 2.0}, {0: 1.0, 2: 1.0}):
        row = np.full((1, 3), np.nan)
        row[0, list(known)] = list(known.values())
        found = selector.gains(row)[0]  # prices are 1
        for i in set(range(3)) - set(known):
            exact = exact_saving(graded, levels, i, known, COSTS)
            alone = selector.policy_.value_.savings(selector._state(selector._encode(row), None, None)).single[0, i]
            assert alone == pytest.approx(exact, abs=0.1), (known, i)
            assert found[i] >= alone - 1e-12  # a pair may save more per price
    assert exact_saving(graded, levels, 0, {1: 2.0}, COSTS) > 1


def test_two_features_that_pay_only_together_are_acquired():
    for cost, bought in ((10.0, {0, 1}), (3.0, set())):  # the pair saves 0.45 of the cost, for a price of 2
        selector = selector_of(xor, ["ill", "well"], (2, 2, 2), error_costs={"ill": cost, "well": cost})
        run = selector.acquire(cases((2, 2, 2), 2))
        assert all(set(row[row >= 0]) == bought for row in run.order), cost
    assert all(exact_saving(xor, (2, 2, 2), i, {}, 1 - np.eye(2)) == pytest.approx(0) for i in range(3))


def test_a_shared_set_up_cost_can_make_a_pair_pay():
    costs = {"ill": 24.0, "well": 24.0}  # the pair saves 10.8
    for shared, bought in (([([0, 1], 5.0)], {0, 1}), ([], set())):  # and costs 7 or 12
        prices = Prices([6.0, 6.0, 1.0], shared=shared)
        selector = selector_of(xor, ["ill", "well"], (2, 2, 2), costs=prices, error_costs=costs)
        run = selector.acquire(cases((2, 2, 2), 1))
        assert all(set(row[row >= 0]) == bought for row in run.order), shared
        assert set(run.spent_after(-1).round(9)) == {7.0 if bought else 0.0}


def test_three_features_that_pay_only_together_are_acquired():
    for cost, n_bought in ((100.0, 3), (5.0, 0)):  # all of them save 0.45 of the cost, for a price of 3
        selector = selector_of(parity, ["ill", "well"], (2, 2, 2), error_costs=cost * (1 - np.eye(2)))
        assert ((selector.acquire(cases((2, 2, 2), 2)).order >= 0).sum(axis=1) == n_bought).all(), cost


def test_nothing_pays_where_errors_are_cheap_and_informative_features_do_where_they_are_dear():
    X = cases((2, 3, 2), 1)
    cheap = selector_of(graded, CLASSES, (2, 3, 2), error_costs=COSTS / 1000)
    assert cheap.acquire(X).n_steps == 0
    assert cheap.start().suggest() is None
    dear = selector_of(graded, CLASSES, (2, 3, 2), error_costs=COSTS * 1000, repeats=20)
    known = dear.acquire(X).mask_after(-1)
    assert known[:, 0].all()
    assert known[X[:, 0] == 1, 1].all()
    assert not known[:, 2].any()


def test_budget_free_features_and_other_rules_still_hold():
    X = cases((2, 2, 2), 1)
    selector = selector_of(xor, ["ill", "well"], (2, 2, 2), error_costs={"ill": 10.0, "well": 10.0})
    assert selector.acquire(X, budget=1).n_steps == 0  # half of a pair is no use
    assert selector.evaluate(X, np.repeat("ill", 8), [1.0, 2.0])["spent"].tolist() == [0.0, 2.0]
    assert (selector.acquire(X, available=[True, False, True]).order < 0).all()
    assert (selector.acquire(X, stop=Confidence(1.0)).order >= 0).all()
    free = selector_of(xor, ["ill", "well"], (2, 2, 2), costs=[1, 1, 0], error_costs={"ill": 1.0, "well": 1.0})
    assert free.acquire(X).order.tolist() == [[2]] * 8
    static = selector.with_policy(Static(np.arange(3.0)))  # its own order, the same end
    assert static.acquire(X).order.tolist() == [[2, 1, 0]] * 8


def test_unequal_costs_move_the_decision_everywhere():
    def thirty(X):
        return np.tile([0.3, 0.7], (len(X), 1))

    X, y = cases((2, 2), 1), np.array(["ill", "well", "well", "well"])
    for costs, decided, cost in (({"ill": 100, "well": 10}, "ill", 7.5), ({"ill": 10, "well": 10}, "well", 2.5)):
        selector = selector_of(thirty, ["ill", "well"], (2, 2), error_costs=costs)
        assert set(selector.predict(X)) == {decided}
        assert set(selector.acquire(X).predict()) == {decided}
        report = selector.start().report()
        assert report["prediction"] == decided
        assert report["expected_error_cost"] == pytest.approx(7.0 if decided == "ill" else 3.0)
        assert report["decision_is_final"] == 1.0
        assert selector.score(X, y) == (0.25 if decided == "ill" else 0.75)
        row = selector.evaluate(X, y, [2]).iloc[0]
        assert row["accuracy"] == selector.score(X, y)
        assert row["error_cost"] == pytest.approx(cost)
        assert row["total_cost"] == pytest.approx(row["spent"] + cost)
    plain = selector_of(thirty, ["ill", "well"], (2, 2))
    assert "total_cost" not in plain.evaluate(X, y, [2])
    assert "expected_error_cost" not in plain.start().report()


def test_the_net_benefit_is_what_the_tests_save_less_their_price():
    X = np.repeat(cases((2, 2, 2), 1), 4, axis=0)
    y = np.where(np.arange(len(X)) % 4 == 0, "ill", "well")
    options = {"error_costs": {"ill": 30.0, "well": 10.0}, "costs": [0.0, 1.0, 2.0]}
    selector = selector_of(xor, ["ill", "well"], (2, 2, 2), **options)
    table = selector.evaluate(X, y, [0.0, 1.0, 3.0])
    of_class = {"ill": 30.0, "well": 10.0}
    only_free = selector.acquire(X, budget=0)
    assert only_free.mask_after(-1)[:, 0].all()
    without = np.mean([of_class[true] * (true != said) for true, said in zip(y, only_free.predict(), strict=True)])
    assert table["net_benefit"].tolist() == pytest.approx((without - table["total_cost"]).tolist())
    assert table["net_benefit"][0] == 0
    with_interval = selector.evaluate(X, y, [0.0, 1.0, 3.0], stop=selector.pays_off_)
    assert with_interval["net_benefit"].tolist() == pytest.approx(table["net_benefit"].tolist())
    assert (with_interval["net_benefit_low"] <= with_interval["net_benefit"]).all()
    full = selector.savings(X, [1.0]).set_index("way").loc["fixed budget"]
    proba = selector.predict_proba(X) @ np.array([[0.0, 30.0], [10.0, 0.0]])
    free = np.searchsorted(selector.classes_, only_free.predict())
    saved = proba[np.arange(len(X)), free] - proba.min(axis=1)
    assert full["net_benefit"] == pytest.approx(saved.mean() - full["price"])
    plain = selector_of(xor, ["ill", "well"], (2, 2, 2))
    assert "net_benefit" not in plain.evaluate(X, y, [2])
    assert "net_benefit" not in plain.savings(X, [1.0])


def test_the_decision_curve_at_the_ratio_of_the_errors_is_the_benefit_in_their_costs():
    X, y = load_wine(return_X_y=True, as_frame=True)
    X, y = X[["alcohol", "flavanoids", "hue", "ash"]], (y == 2).astype(int).to_numpy()
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[::2], y[::2])
    missed, alarm = 30.0, 10.0
    errors = {1: missed, 0: alarm}
    selector = DynamicFeatureSelector(model, error_costs=errors, epistemic=None, random_state=0, progress=False)
    selector.fit(X[::2], y[::2])
    X, y = X[1::2], y[1::2]
    curve = DecisionCurveDisplay.from_selector(
        selector, X, y, stop=selector.pays_off_, thresholds=[alarm / (alarm + missed)], price_per_benefit=missed
    ).curves["askwise"][0]
    table = selector.evaluate(X, y, [np.inf]).iloc[0]
    assert missed * (y.mean() - curve) == pytest.approx(table["total_cost"])


def wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1)).fit(X[::2], y[::2])
    options = {"costs": np.linspace(1, 4, 13), "epistemic": None, "random_state": 0, "progress": False}
    return X, y, FrozenEstimator(model), options


def test_a_session_equals_its_row_in_a_batch():
    X, y, model, options = wine()
    selector = DynamicFeatureSelector(model, error_costs=20 * (1 - np.eye(3)), **options).fit(X[::2], y[::2])
    cases = X[1:60:6]
    run = selector.acquire(cases)
    assert len(set((run.order >= 0).sum(axis=1))) > 1  # each case ends where it must
    for r in range(len(cases)):
        session, order = selector.start(), []
        while (suggestion := session.suggest()) is not None:
            assert suggestion.gain > 1
            order.append(selector.features_.index(suggestion.feature))
            session.answer(suggestion.feature, cases.iloc[r][suggestion.feature])
        assert order == run.order[r][run.order[r] >= 0].tolist()
        assert session.report()["prediction"] == run.predict()[r]


def test_it_is_a_scikit_learn_parameter():
    X, y, model, options = wine()
    matrix = 20 * (1 - np.eye(3))
    selector = DynamicFeatureSelector(model, error_costs=matrix, calibration=None, **options)
    assert clone(selector).get_params()["error_costs"] is not None
    grid = {"error_costs": [None, {0: 1, 1: 50, 2: 1}]}
    search = GridSearchCV(selector, grid, cv=2, error_score="raise").fit(X[::2], y[::2])
    assert search.best_score_ > 0.8
    fitted = clone(selector).fit(X[::2], y[::2])
    assert fitted.set_params(error_costs=None).fit(X[::2], y[::2]).pays_off_ is None


def test_bad_error_costs_are_refused():
    X, y, model, options = wine()
    bad = {
        "must be a matrix": (np.ones((2, 2)), np.ones(3), "high", [[0, 1], [1]], 5.0, np.full((3, 3), "1")),
        "finite number >= 0": (
            np.where(np.eye(3) == 1, 0, -1.0),
            np.full((3, 3), np.nan),
            np.full((3, 3), np.inf),
            {0: -1, 1: 1, 2: 1},
            {0: "1", 1: 1, 2: 1},
            {0: True, 1: 1, 2: 1},
            {0: {1: np.nan, 2: 1}, 1: 1, 2: 1},
        ),
        "no class": ({0: 1, 1: 1, 2: 1, 3: 1}, {0: {1: 1, 2: 1, "x": 1}, 1: 1, 2: 1}),
        "must name every": ({0: 1, 1: 1}, {0: {1: 1}, 1: 1, 2: 1}),
    }
    for message, values in bad.items():
        for value in values:
            with pytest.raises(InvalidInput, match=message):
                DynamicFeatureSelector(model, error_costs=value, **options).fit(X[::2], y[::2])
    frame = pd.DataFrame(1.0 - np.eye(3))
    DynamicFeatureSelector(model, error_costs=frame.to_numpy(), calibration=None, **options).fit(X[::2], y[::2])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "auto"])
@pytest.mark.parametrize("grouped", [False, True])
def test_one_feature_with_every_policy(policy, grouped):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 3 if grouped else 1)), columns=list("abc") if grouped else ["a"])
    y = (X["a"] + 0.3 * rng.normal(size=60) > 0).astype(int)
    owner = DynamicFeatureSelector(
        LogisticRegression().fit(X, y),
        groups={"panel": list("abc")} if grouped else None,
        costs=[2.0],
        policy=policy,
        error_costs={0: 10, 1: 20},
        epistemic=None,
        random_state=0,
        progress=False,
    ).fit(X, y)
    assert len(owner.features_) == 1
    run = owner.acquire(X.iloc[:5])
    assert run.order[:, 0].tolist() == [0] * 5  # a wrong decision costs far more than to know
    dear = clone(owner).set_params(estimator=FrozenEstimator(owner.estimator_), costs=[50.0]).fit(X, y)
    assert dear.acquire(X.iloc[:5]).order.size == 0 or (dear.acquire(X.iloc[:5]).order == -1).all()
    session = owner.start()
    suggestion = session.suggest()
    assert suggestion is not None
    assert suggestion.feature == owner.features_[0]
    assert session.why()["feature"] == owner.features_[0]
    session.answer(owner.features_[0], dict(X.iloc[0]) if grouped else float(X.to_numpy()[0, 0]))
    assert session.suggest() is None
    assert np.isfinite(owner.evaluate(X, y)["total_cost"]).all()
