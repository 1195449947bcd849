"""Evaluation on records with missing tests: weights, simulation and both, against closed forms and known truth."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression

from askwise import DynamicFeatureSelector, InvalidInput
from askwise.errors import AskwiseWarning
from askwise.records import completions
from askwise.records.estimators import (
    FLOOR,
    MOST_WEIGHT,
    CaseValues,
    Paths,
    Questions,
    check_reasons,
    overlap_of,
    plain_values,
    weighted_values,
)
from askwise.records.tables import doubt
from askwise.stopping import Confidence
from askwise.table.schema import read_table
from tests.commands import run

STOP = Confidence(0.9)


def population(n, seed):
    """Age is in every record; the scan tells most."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=["age", "lab", "culture", "scan"])
    X["lab"] += 0.5 * X["age"]
    return X, (rng.random(n) < expit(2 * (X["age"] + X["lab"] + 2 * X["scan"]))).astype(int).to_numpy()


def mostly_clear(X, seed):
    """The scan is recorded for clear cases, mostly."""
    rng = np.random.default_rng(seed)
    return X.assign(scan=X["scan"].where(rng.random(len(X)) < expit(3 * X["age"].abs() - 2)))


@pytest.fixture(scope="module")
def fitted():
    X, y = population(300, 0)
    prices = {"age": 0, "lab": 1, "culture": 1, "scan": 5}
    options: dict[str, Any] = {
        "epistemic": None,
        "calibration": None,
        "policy": "greedy",
        "random_state": 0,
        "progress": False,
    }
    return DynamicFeatureSelector(LogisticRegression().fit(X, y), costs=prices, **options).fit(X, y)


@pytest.fixture(scope="module")
def compared(fitted):
    X, y = population(500, 1)
    truth = fitted.evaluate(X, y, missing="blocked", stop=STOP).iloc[0]
    return truth, fitted.evaluate(mostly_clear(X, 2), y, missing="all", stop=STOP).set_index("missing")


def test_where_nothing_is_missing_all_ways_agree(fitted):
    X, y = population(60, 3)
    table = fitted.evaluate(X, y, [3.0], missing="all")
    plain = fitted.evaluate(X, y, [3.0])
    for name in ("accuracy", "spent", "kept", "features", "log_loss", "balanced_accuracy"):
        assert_allclose(table[name], plain[name].iloc[0], atol=1e-9, err_msg=name)
    assert table["trusted"].all()
    assert (table["effective"] == 60).all()


def test_blocked_is_far_off_and_the_others_are_not(compared):
    truth, table = compared
    assert truth["accuracy"] - table.loc["blocked", "accuracy"] > 0.03
    for way, near in {"weighted": 0.04, "simulated": 0.02, "doubly_robust": 0.03}.items():
        assert abs(truth["accuracy"] - table.loc[way, "accuracy"]) < near, way
    robust = table.loc["doubly_robust"]
    assert robust["accuracy_low"] < truth["accuracy"] < robust["accuracy_high"]
    assert abs(truth["spent"] - robust["spent"]) < 0.2
    assert abs(truth["spent"] - table.loc["blocked", "spent"]) > 0.5


def test_one_run_under_equal_prices_is_as_many(fitted):
    X, y = population(40, 4)
    other = DynamicFeatureSelector(
        fitted.estimator_, epistemic=None, calibration=None, policy="greedy", random_state=0, progress=False
    ).fit(*population(300, 0))
    records = mostly_clear(X, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AskwiseWarning)
        together = other.evaluate(records, y, [1, 3], missing="all")
        alone = other.evaluate(records, y, [1], missing="all")
    pd.testing.assert_frame_equal(together[together["budget"] == 1], alone)


def test_a_warning_says_that_much_is_missing_and_is_not_given_if_that_is_meant(fitted):
    X, y = population(40, 6)
    with pytest.warns(AskwiseWarning, match="could not have been done"):
        silent = fitted.evaluate(mostly_clear(X, 0), y, [3.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        meant = fitted.evaluate(mostly_clear(X, 0), y, [3.0], missing="blocked")
        fitted.evaluate(mostly_clear(X, 0), y, [3.0], reasons={"scan": "not available"})
    pd.testing.assert_frame_equal(silent, meant)


def test_what_was_not_available_stays_blocked(fitted):
    X, y = population(80, 7)
    records = mostly_clear(X, 1)
    never = fitted.evaluate(records, y, [7.0], missing="all", reasons={"scan": "not available"})
    assert_allclose(never["accuracy"], never["accuracy"].iloc[0])
    assert_allclose(never["spent"], never["spent"].iloc[0])
    wrongs: list[Any] = [{"scans": "not ordered"}, {"scan": "broken"}, "scan"]
    for wrong in wrongs:
        with pytest.raises(InvalidInput, match="reason"):
            check_reasons(wrong, fitted.schema_)


def test_weights_are_inverse_probabilities_truncated():
    asked = Questions(np.array([[0.5, 0.5, 1.0], [0.001, 1.0, 1.0]]), np.array([[True, True, False]] * 2))
    assert_allclose(asked.weights[0], [1, 2, 4, 4])
    assert_allclose(asked.weights[1], [1, *[min(1 / FLOOR, MOST_WEIGHT)] * 3])
    assert asked.without_overlap.tolist() == [[False] * 3, [True, False, False]]


def paths_of(order, right, full):
    """Paths that buy everything of `order`, each price 1, and end with a right decision or not; the class is 1."""
    order = np.array(order)
    steps = order.shape[1]
    end = (order >= 0).sum(axis=1)
    decision = np.where(np.arange(steps + 1) < end[:, None], 0, np.array(right)[:, None])
    proba = np.where(decision[..., None] == np.arange(2), 0.8, 0.2)
    spent = np.minimum(np.arange(steps + 1.0), end[:, None])
    return Paths(order, spent, proba, decision, end, np.array(full))


def test_weighted_counts_followed_cases_by_their_weight():
    paths = paths_of([[0], [0], [0], [-1]], [1, 0, 1, 1], [1, 1, -1, 1])
    recorded = np.array([[True], [True], [False], [True]])
    asked = Questions(np.array([[0.5, 1.0], [0.25, 1.0], [0.5, 1.0], [1.0, 1.0]]), np.array([[True, False]] * 4))
    values = weighted_values(paths, asked, recorded, np.ones(4, dtype=int), None)
    assert values.weights["accuracy"].tolist() == [2, 4, 0, 1]
    assert values.estimate("accuracy", 0.9)[0] == pytest.approx(3 / 7)
    assert values.estimate("spent", 0.9)[0] == pytest.approx(6 / 7)
    assert values.effective() == pytest.approx(49 / 21)


def test_the_interval_of_a_plain_share_is_that_of_wilson():
    values = CaseValues({"accuracy": np.array([[1.0] * 90 + [0.0] * 10])}, {"accuracy": np.ones(100)})
    mean, low, high = values.estimate("accuracy", 0.9)
    assert mean == 0.9
    assert_allclose([low, high], [0.839, 0.940], atol=0.003)
    sure = CaseValues({"accuracy": np.ones((1, 50))}, {"accuracy": np.ones(50)})
    assert sure.estimate("accuracy", 0.9)[1] < 0.96  # fifty right decisions do not prove that all are


def test_a_share_is_worth_no_more_cases_than_tell_of_it():
    """Without a single case that is not kept, the values alone would be sure."""
    ones = np.ones(100)
    sure = CaseValues({"kept": ones[None]}, {"kept": ones}).estimate("kept", 0.9)
    few = CaseValues({"kept": ones[None]}, {"kept": ones}, {"kept": 10.0})
    wilson = 1 / (1 + student.ppf(0.95, 99) ** 2 / 10)
    assert few.estimate("kept", 0.9) == pytest.approx((1.0, wilson, 1.0))
    assert few.estimate("kept", 0.9)[1] < sure[1]
    half = few.estimate("kept", 0.9, np.arange(100) < 50)
    assert half[1] == pytest.approx(1 / (1 + student.ppf(0.95, 49) ** 2 / 5))


def test_the_spread_of_draws_widens_the_interval():
    rng = np.random.default_rng(0)
    spent = rng.normal(size=(1, 100))
    alike = CaseValues({"spent": np.repeat(spent, 5, axis=0)}, {"spent": np.ones(100)})
    apart = CaseValues({"spent": spent + np.linspace(-0.5, 0.5, 5)[:, None]}, {"spent": np.ones(100)})
    width = [np.diff(one.estimate("spent", 0.9)[1:]) for one in (alike, apart)]
    assert width[1] > 2 * width[0]


def test_completions_keep_what_is_known_and_how_features_go_together():
    rng = np.random.default_rng(0)
    n = 400
    y = rng.integers(2, size=n)
    table = pd.DataFrame({"a": rng.normal(size=n) + y})
    table["b"] = table["a"] + 0.3 * rng.normal(size=n)
    table["city"] = np.where(table["a"] > 0.5, "Ghent", "Lille")
    schema, whole = read_table(table, {"panel": ["b", "city"]})
    lacking = np.zeros((n, 2), dtype=bool)
    lacking[::2, 1] = True
    values = np.where(schema.expand(lacking), np.nan, whole.values)
    drawn = completions(values, lacking, y, schema, 3, 0)
    assert drawn.shape == (3, n, 3)
    assert not np.isnan(drawn).any()
    assert_array_equal(drawn[:, ~lacking[:, 1]], np.stack([whole.values[~lacking[:, 1]]] * 3))
    made = drawn[:, lacking[:, 1]].reshape(-1, 3)
    assert np.corrcoef(made[:, 0], made[:, 1])[0, 1] > 0.9
    pairs = {tuple(pair) for pair in whole.values[1::2, 1:]}
    assert {tuple(pair) for pair in made[:, 1:]} <= pairs  # cells of a panel stay together
    assert np.isin(made[:, 2], [0, 1]).all()
    again = completions(values, lacking, y, schema, 3, 0)
    assert_array_equal(drawn, again)


def test_tests_hardly_ever_recorded_are_named_with_their_cases(fitted):
    X, y = population(400, 8)
    records = X.set_index(np.arange(1000, 1400))
    records["scan"] = records["scan"].where(records["age"] < 0.5)  # never done for the old
    with pytest.warns(AskwiseWarning, match=r"'scan'.*hardly ever recorded.*cases 1\d\d\d"):
        table = fitted.evaluate(records, y, [7.0], missing="doubly_robust")
    assert not table["trusted"].any()
    hardly = fitted.overlap(records, y, 7.0).set_index("feature")["hardly"]
    assert len(hardly["scan"]) > 20
    assert (records.loc[hardly["scan"], "age"] > 0.3).mean() > 0.95
    assert not hardly["age"]


def test_a_test_that_is_recorded_for_nobody_is_in_doubt_and_one_row_is_refused(fitted):
    X, y = population(40, 5)
    records = X * np.nan
    overlap = fitted.overlap(records, y, 7.0).set_index("feature")
    asked = overlap[overlap["asked"] > 0]
    assert len(asked)
    assert (asked["hardly"].map(len) == asked["asked"]).all()
    with pytest.raises(InvalidInput, match="needs at least two rows; got 1"):
        fitted.evaluate(records[:1], y[:1], budgets=[7.0], missing="doubly_robust")


def test_too_few_followed_cases_are_not_trusted_with_weights():
    paths = paths_of([[0]] * 40, [1] * 40, [1] * 40)
    recorded = np.arange(40)[:, None] % 2 == 0
    asked = Questions(np.full((40, 2), 0.5), np.array([[True, False]] * 40))
    found = overlap_of(paths, asked, recorded, 20.0)
    assert found.trusted("doubly_robust")
    assert not found.trusted("weighted")
    assert "no more than 20 cases (20 of 40" in doubt(found, "weighted", ["a"], np.arange(40))


def test_plain_values_leave_out_what_the_record_does_not_tell():
    values = plain_values(paths_of([[0], [0]], [1, 0], [1, -1]), np.ones(2, dtype=int), None)
    assert values.weights["kept"].tolist() == [1, 0]


def test_savings_and_a_stop_from_incomplete_records(fitted):
    X, y = population(400, 9)
    records = mostly_clear(X, 3)
    of = {way: fitted.savings(records, [0.95], missing=way).set_index("way") for way in ("blocked", "simulated")}
    truth = fitted.savings(X, [0.95]).set_index("way")["price"]["stop per case"]
    assert abs(of["simulated"]["price"]["stop per case"] - truth) < 0.4
    assert abs(of["blocked"]["price"]["stop per case"] - truth) > 0.4
    for way in ("weighted", "simulated"):
        stop = fitted.calibrate_stop(records, y, agreement=0.9, missing=way, per_class=False)
        assert stop.promise.startswith("Estimated")
        assert "every test can be had" in stop.promise
        run_ = fitted.acquire(X, stop=stop)
        full = fitted.predictor_.predict_full(X).argmax(axis=1)
        assert (run_.decision[:, -1] == full).mean() > 0.88
    fitted.stop_ = None
    with pytest.raises(InvalidInput, match="missing must be one of"):
        fitted.savings(records, missing="doubly_robust")


def test_subgroups_say_who_pays_more_and_who_is_decided_worse(fitted):
    X, y = population(300, 11)
    old = X["age"].abs() < 0.5  # the open cases
    table = fitted.evaluate(X, y, stop=STOP, subgroups=np.where(old, "open", "clear")).set_index("subgroup")
    assert table.loc["open", "spent_low"] > table.loc["clear", "spent_high"]
    assert table["rows"].tolist()[0] == 300
    apart = fitted.evaluate(X[old], y[old], stop=STOP).iloc[0]
    for name in ("accuracy", "spent", "spent_low", "kept", "kept_high", "balanced_accuracy", "price_per_correct"):
        assert table.loc["open", name] == pytest.approx(apart[name]), name
    run_ = fitted.acquire(X[old & (y == 1)], stop=STOP)
    assert table.loc["open", "recall_1"] == pytest.approx((run_.predict() == 1).mean())
    by_column = fitted.evaluate(X.round(0), y, [3.0], subgroups="culture")
    assert by_column["rows"].iloc[1:].sum() == 300
    for wrong in ("nothing", old[:10], np.full(300, np.nan)):
        with pytest.raises(InvalidInput, match="subgroups"):
            fitted.evaluate(X, y, [3.0], subgroups=wrong)


def test_the_price_of_a_right_decision_and_of_one_more(fitted):
    X, y = population(200, 12)
    table = fitted.evaluate(X, y, [1.0, 7.0], against="static")
    assert_allclose(table["price_per_correct"], table["spent"] / table["accuracy"])
    static = fitted.with_policy("static").evaluate(X, y, [1.0, 7.0])
    assert_allclose(table["added_correct"], table["accuracy"] - static["accuracy"])
    assert_allclose(table["added_price"], table["spent"] - static["spent"])
    told = table["price_per_added_correct"].notna()
    assert (told == (table["added_correct"] * table["added_price"] > 0)).all()
    with pytest.raises(InvalidInput, match="against"):
        fitted.evaluate(X, y, [1.0], against="static", stop=STOP)


def test_the_command_shows_the_four_side_by_side(fitted, tmp_path):
    X, y = population(120, 10)
    mostly_clear(X, 4).assign(ill=y).to_csv(tmp_path / "new.csv", index=False)
    fitted.save(tmp_path / "selector")
    page = tmp_path / "page.html"
    said = run("evaluate", tmp_path / "selector", tmp_path / "new.csv", "--target", "ill", "-o", page).stdout
    assert "doubly robust:" in said
    assert "blocked assumes that a test that is not recorded could not" in " ".join(said.split())
    assert "What the missing tests hide" in page.read_text(encoding="utf-8")
