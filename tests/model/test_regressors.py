"""A regressor with limits: the probabilities of its classes, what it refuses, and a whole run."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import askwise
from askwise import DynamicFeatureSelector, wrap_regressor
from askwise.errors import InvalidInput
from askwise.metrics import expected_calibration_error

CUTS = [3.5, 7.0]


def made(n=400, seed=0, noise=1.5):
    """Rows, a number that is linear in them, and the number with normal noise of known size."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    exact = 5 + 2 * X[:, 0] - X[:, 1]
    return X, exact, exact + noise * rng.normal(size=n)


def test_the_probability_is_the_share_of_errors_that_lead_into_the_class():
    X = np.zeros((40, 1))
    errors = np.r_[np.full(10, -2.0), np.full(20, 0.0), np.full(10, 2.0)]
    model = wrap_regressor(lambda rows: np.full(len(rows), 5.0), [4.0, 7.0], X=X, y=5 + errors, unseen=True)
    third = 1 / 3  # of one error more, of which nothing is known
    expected = [(10 + third) / 41, (20 + third) / 41, (10 + third) / 41]  # 5 + 2 equals the limit: it is above it
    np.testing.assert_allclose(model.predict_proba(X[:2]), [expected] * 2, rtol=1e-12)
    assert model.label([3.9, 4.0, 7.0]).tolist() == ["below 4", "4 to 7", "from 7"]
    assert model.predict_number(X[:2]).tolist() == [5.0, 5.0]


@pytest.mark.parametrize("model", [LinearRegression(), RandomForestRegressor(20, n_jobs=1, random_state=0)])
def test_classes_are_as_frequent_as_their_probabilities(model):
    """Also of a forest that knows its training rows: errors are those of clones on rows left out."""
    X, _, y = made(1000)
    decides = wrap_regressor(model.fit(X, y), CUTS, X=X, y=y)
    new, _, truth = made(6000, seed=1)
    proba, at = decides.predict_proba(new), np.digitize(truth, CUTS)
    assert expected_calibration_error(at, proba) < 0.04
    for c in range(3):
        assert abs(proba[:, c].mean() - (at == c).mean()) < 0.03
        for low, high in ((0.05, 0.3), (0.3, 0.6), (0.6, 1.0)):  # among rows with such a probability
            among = (proba[:, c] >= low) & (proba[:, c] < high)
            if among.sum() > 200:
                assert abs(proba[among, c].mean() - (at[among] == c).mean()) < 0.08


def test_errors_on_rows_that_the_model_knows_would_be_too_small():
    """Of a tree that knows its rows by heart, they are zero."""
    X, _, y = made(400)
    tree = DecisionTreeRegressor(random_state=0).fit(X, y)
    cross_fitted = wrap_regressor(tree, CUTS, X=X, y=y)
    assert np.std(cross_fitted.residuals) > 1.5  # the noise
    by_heart = wrap_regressor(tree, CUTS, X=X, y=y, unseen=True)
    assert np.std(by_heart.residuals) == 0
    fresh, _, numbers = made(400, seed=3)
    unseen = wrap_regressor(tree, CUTS, X=fresh, y=numbers, unseen=True)
    assert np.std(unseen.residuals) == pytest.approx(np.std(cross_fitted.residuals), rel=0.15)


def test_residuals_of_a_known_noise_have_its_size():
    X, exact, y = made(4000)
    decides = wrap_regressor(LinearRegression().fit(X, y), CUTS, X=X, y=y)
    from scipy.stats import norm

    below = norm.cdf((np.array(CUTS) - exact[:, None]) / 1.5)
    known = np.diff(below, axis=1, prepend=0, append=1)
    assert np.abs(decides.predict_proba(X) - known).max() < 0.06


def test_the_model_is_not_changed_and_numbers_repeat():
    X, _, y = made(200)
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    before = forest.predict(X), forest.get_params(), list(forest.estimators_)
    first, again = (wrap_regressor(forest, CUTS, X=X, y=y, random_state=4) for _ in range(2))
    np.testing.assert_array_equal(first.residuals, again.residuals)
    np.testing.assert_array_equal(forest.predict(X), before[0])
    assert forest.get_params() == before[1]
    assert forest.estimators_ == before[2]
    assert first.function is forest
    assert clone(first) is first


def test_an_unfitted_regressor_is_cloned_and_fitted():
    X, _, y = made(100)
    given = Ridge()
    decides = wrap_regressor(given, CUTS, X=X, y=y)
    assert not hasattr(given, "coef_")
    np.testing.assert_array_equal(decides.predict_number(X), Ridge().fit(X, y).predict(X))


def test_a_frozen_regressor_is_used_as_it_is_and_its_clones_are_fitted():
    X, _, y = made(100)
    frozen = FrozenEstimator(Ridge().fit(X, y))
    decides = wrap_regressor(frozen, CUTS, X=X, y=y)
    np.testing.assert_array_equal(decides.residuals, wrap_regressor(Ridge(), CUTS, X=X, y=y).residuals)
    with pytest.raises(InvalidInput, match="cannot be fitted"):
        decides.fit(X, decides.label(y))


X, _, Y = made(60)
FITTED = LinearRegression().fit(X, Y)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cuts": []}, r"cuts must be a list of one or more finite numbers, ascending.*got \[\]"),
        ({"cuts": 3.5}, r"cuts must be a list.*got 3\.5"),
        ({"cuts": [7, 3.5]}, r"ascending.*got \[7, 3\.5\]"),
        ({"cuts": [3.5, 3.5]}, "ascending"),
        ({"cuts": [np.nan]}, "finite"),
        ({"cuts": ["low"]}, r"finite numbers.*\['low'\]"),
        ({"labels": ["low", "high"]}, "labels must be 3 different labels.*one more than there are cuts"),
        ({"labels": ["low", "high", "low"]}, "3 different labels"),
        ({"labels": "lmh"}, "3 different labels"),
        ({"y": Y[:-1]}, "got 60 rows and 59 numbers"),
        ({"X": X[:19], "y": Y[:19]}, "20 rows or more; got 19 rows"),
        ({"y": np.where(np.arange(60) == 4, np.nan, Y)}, r"y must be finite; row 4 is nan"),
        ({"y": ["low"] * 60}, "y must be numbers"),
        ({"y": np.c_[Y, Y]}, r"one number per row; got an array of shape \(60, 2\)"),
        ({"model": LinearRegression}, "an object, not the class LinearRegression"),
        ({"model": 3}, "a regressor with predict, or a callable.*got int"),
        ({"model": LogisticRegression()}, "LogisticRegression is a classifier, which DynamicFeatureSelector takes"),
        ({"model": lambda rows: rows[:, 0]}, "cannot be cloned.*not trained on.*unseen=True"),
        ({"model": Ridge(), "unseen": True}, "Ridge is not fitted. Fit it first, on other rows than these"),
        (
            {"model": lambda rows: rows, "unseen": True},
            r"one number per row, 60 in all; got .* \(60, 3\)",
        ),
        ({"model": lambda rows: rows[:, 0] * np.inf, "unseen": True}, "must return finite numbers"),
        ({"model": lambda rows: ["a"] * len(rows), "unseen": True}, "must return numbers; got"),
        ({"X": np.full((60, 3), np.nan)}, "LinearRegression could not be fitted on rows of X"),
        ({"X": X[:, :2], "unseen": True}, "LinearRegression cannot take these rows"),
        ({"random_state": -1}, "random_state must be a seed"),
    ],
)
def test_bad_input_is_refused(given, message):
    with pytest.raises(InvalidInput, match=message):
        wrap_regressor(**{"model": FITTED, "cuts": CUTS, "X": X, "y": Y, **given})


def test_a_torch_module_is_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(InvalidInput, match=r"torch module\. Give a function"):
        wrap_regressor(torch.nn.Linear(3, 1), CUTS, X=X, y=Y)


def test_a_bare_regressor_is_refused_with_what_to_do():
    with pytest.raises(InvalidInput, match=r"LinearRegression is a regressor.*askwise\.wrap_regressor\(model, cuts="):
        DynamicFeatureSelector(FITTED).fit(X, np.digitize(Y, CUTS))


def test_labels_read_well():
    def labels(cuts):
        return wrap_regressor(FITTED, cuts, X=X, y=Y).classes_.tolist()

    assert labels([3.5]) == ["below 3.5", "from 3.5"]
    assert labels([-1, 0, 1000000.25]) == ["below -1", "-1 to 0", "0 to 1000000.25", "from 1000000.25"]
    named = wrap_regressor(FITTED, CUTS, X=X, y=Y, labels=["low", "fine", "high"])
    assert named.label([1, 5, 9]).tolist() == ["low", "fine", "high"]
    with pytest.raises(InvalidInput, match="label: y must be finite"):
        named.label([np.inf])


def test_columns_are_those_of_the_regressor():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    of_frame = wrap_regressor(LinearRegression().fit(frame, Y), CUTS, X=frame, y=Y)
    of_array = wrap_regressor(FITTED, CUTS, X=X, y=Y)
    y = of_array.label(Y)
    options: dict[str, Any] = {"epistemic": None, "policy": "static", "random_state": 0, "progress": False}
    found = [  # pytest turns the warnings of scikit-learn about names of columns into errors
        DynamicFeatureSelector(model, **options).fit(table, y).predict_proba(table)
        for model in (of_frame, of_array)
        for table in (frame, X)
    ]
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-9)
    with pytest.raises(InvalidInput, match=r"trained on the columns \['a', 'b', 'c'\]"):
        DynamicFeatureSelector(of_frame, **options).fit(frame.set_axis(["b", "a", "c"], axis=1), y)


@pytest.fixture(scope="module")
def diabetes():
    """A fitted selector around a regressor on the diabetes data of scikit-learn, and rows that it has not seen."""
    data = load_diabetes(as_frame=True)
    X, X_new, y, y_new = train_test_split(data.data, data.target, test_size=0.5, random_state=0)
    X_unseen, X_test, y_unseen, y_test = train_test_split(X_new, y_new, test_size=0.5, random_state=0)
    regressor = make_pipeline(StandardScaler(), Ridge()).fit(X, y)
    decides = wrap_regressor(regressor, cuts=[100, 200], X=X, y=y)
    selector = DynamicFeatureSelector(decides, random_state=0, progress=False)
    selector.fit(X, decides.label(y), X_unseen=X_unseen, y_unseen=decides.label(y_unseen))
    return selector, X_test, y_test


def test_a_whole_run_on_the_diabetes_data(diabetes):
    selector, X, y = diabetes
    truth = selector.estimator_.label(y)
    assert selector.classes_.tolist() == ["below 100", "100 to 200", "from 200"]
    table = selector.evaluate(X, truth, budgets=[0, 2, 10])
    accuracy = table.set_index("budget")["accuracy"]
    assert accuracy[10] > accuracy[0] + 0.1
    assert accuracy[2] > accuracy[0] + 0.05  # two of ten features tell much of it
    full = selector.estimator_.predict_proba(X)
    np.testing.assert_allclose(selector.predictor_.predict_full(X), full, rtol=1e-9)
    session = selector.start(known={"age": 0.0}, budget=2)
    session.answer("bmi", 0.1)
    report = session.report()
    assert report["prediction"] in selector.classes_
    selector.calibrate_stop(X, truth, agreement=0.8)
    assert selector.acquire(X.iloc[:5], stop="calibrated").predict().shape == (5,)


def test_it_is_saved_with_the_regressor(diabetes, tmp_path):
    pytest.importorskip("skops")
    selector, X, y = diabetes
    selector.save(tmp_path / "saved")
    loaded = askwise.load(tmp_path / "saved")  # no model= is needed
    np.testing.assert_array_equal(loaded.predict_proba(X), selector.predict_proba(X))
    assert loaded.estimator_.label(y).tolist() == selector.estimator_.label(y).tolist()
    np.testing.assert_array_equal(loaded.estimator_.predict_number(X), selector.estimator_.predict_number(X))


@pytest.mark.parametrize("kind", ["forest", "xgboost", "lightgbm"])
def test_trees_and_boosters_are_saved(kind, tmp_path):
    pytest.importorskip("skops")
    if kind == "forest":
        regressor = RandomForestRegressor(3, max_depth=3, random_state=0)
    elif kind == "xgboost":
        regressor = pytest.importorskip("xgboost").XGBRegressor(n_estimators=3, max_depth=2, n_jobs=1)
    else:
        regressor = pytest.importorskip("lightgbm").LGBMRegressor(n_estimators=3, num_leaves=4, n_jobs=1, verbose=-1)
    decides = wrap_regressor(regressor.fit(X, Y), CUTS, X=X, y=Y)
    selector = DynamicFeatureSelector(decides, epistemic=None, policy="static", random_state=0, progress=False)
    selector.fit(X, decides.label(Y)).save(tmp_path / "saved")
    loaded = askwise.load(tmp_path / "saved")
    np.testing.assert_array_equal(loaded.predict_proba(X), selector.predict_proba(X))


class Formula:
    """A model of another kind: it has `predict`, and nothing else of scikit-learn."""

    def predict(self, rows):
        return 5 + 2 * np.asarray(rows)[:, 0]


def test_a_function_is_given_again_when_it_is_loaded(tmp_path):
    pytest.importorskip("skops")
    formula = Formula()
    for model, again in ((formula, formula.predict), (formula.predict, formula.predict)):
        decides = wrap_regressor(model, CUTS, X=X, y=Y, unseen=True)
        selector = DynamicFeatureSelector(decides, epistemic=None, policy="static", random_state=0, progress=False)
        selector.fit(X, decides.label(Y)).save(tmp_path / "saved")
        with pytest.raises(InvalidInput, match=r"model=\.\.\."):
            askwise.load(tmp_path / "saved")
        loaded = askwise.load(tmp_path / "saved", model=again)
        np.testing.assert_array_equal(loaded.predict_proba(X), selector.predict_proba(X))
