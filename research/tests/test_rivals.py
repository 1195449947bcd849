"""The suites beside rivals: what the study measures, and the tables recomputed by hand."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier
from tests.made import patients

from askwise import DynamicFeatureSelector, Prices
from askwise.metrics import expected_calibration_error
from askwise_bench.baselines import StaticCMI
from askwise_bench.grid.methods import AUTHORS_TRAINING, METHODS, _selector, fit_method
from askwise_bench.grid.run import PROFILES, run
from askwise_bench.grid.suites import OURS, RIVALS, SUITES
from askwise_bench.grid.tasks import Limits, make_task
from askwise_bench.report.rival_tables import calibration_errors, lead, rival_tables
from askwise_bench.report.rows import read_rows
from askwise_bench.studies import rivals as study


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Two splits of wine under both prices: a tree in the place of the models, static CMI in that of a rival."""
    out = tmp_path_factory.mktemp("rivals")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "N_DRAWS", 8)
        patch.setitem(METHODS, "askwise", _selector("quick", "tree", "auto", "auto"))
        patch.setitem(METHODS, "vip", METHODS["static-cmi"])
        for step in run(["rivals", "rivals-priced"], out, methods=["askwise", "vip"], data=["wine"], seeds=2):
            assert not step.errors, "\n".join(step.errors.values())
    return read_rows(out)


def of(rows, metric, **where):
    chosen = rows[rows["metric"] == metric]
    for name, value in where.items():
        chosen = chosen[chosen[name] == value]
    return chosen["value"]


def table(rows, title):
    (found,) = [each for each in rival_tables(rows) if each.title == title]
    return found


def test_both_suites_take_the_same_methods_and_data():
    equal, priced = SUITES["rivals"], SUITES["rivals-priced"]
    assert (equal.methods, equal.data) == (priced.methods, priced.data) == ([*OURS, *RIVALS], equal.data)
    assert set(equal.methods) <= set(METHODS)


def test_the_study_measures_every_budget_and_the_model_with_everything(rows):
    for prices in ("uniform", "variable"):
        for metric in ("accuracy", "log_loss"):
            assert len(of(rows, metric, method="askwise", prices=prices, seed=1)) == 10
        assert of(rows, "full_accuracy", method="askwise", prices=prices).between(0.7, 1).all()
    assert of(rows, "fit_total", prices="uniform", seed=0).item() > of(rows, "fit_policy").item() > 0
    assert of(rows, "fit_total", seed=1).empty  # the parts are timed once
    assert (of(rows, "decision_choice", method="askwise") > 0).all()
    assert of(rows, "surplus_by_chance", method="vip").empty


def test_drawn_labels_follow_the_probabilities_and_belong_to_a_row():
    proba = np.tile([0.2, 0.5, 0.3], (20_000, 1))
    labels = study.own_labels(proba, np.arange(20_000), draw=0)
    np.testing.assert_allclose(np.bincount(labels) / 20_000, proba[0], atol=0.02)
    assert (
        study.own_labels(proba, np.zeros(20_000, dtype=int), draw=3) == study.own_labels(proba[:1], np.zeros(1, int), 3)
    ).all()
    assert (study.own_labels(proba, np.arange(20_000), draw=1) != labels).any()


def test_the_lead_and_its_interval_by_hand():
    index = pd.MultiIndex.from_product([["heart", "wine"], [0, 1, 2]], names=["data", "seed"])
    theirs = pd.Series(1.0, index=index)
    ours = pd.DataFrame({"a": [2.0, 3, 4, 1, 1, 1], "b": [2.0, 3, 4, 2, 3, 1]}, index=index)
    mean, half, n_data = lead(ours, theirs)
    samples = np.array([[1.0, 2, 3], [0.5, 1, 0]])
    variances = samples.var(axis=1, ddof=1) * (1 / 3 + 0.25)
    freedom = variances.sum() ** 2 / (variances**2 / 2).sum()
    assert n_data == 2
    assert mean == pytest.approx(samples.mean())
    assert half == pytest.approx(stats.t.ppf(0.975, freedom) * np.sqrt(variances.sum()) / 2)
    ours.loc[("wine", 1), "b"] = np.nan  # a split that one model lacks does not count
    assert lead(ours, theirs)[0] == pytest.approx((2 + 0.25) / 2)
    assert np.isnan(lead(ours.loc[[("heart", 0)]], theirs)[1])  # one split has no interval
    assert np.isnan(lead(ours.loc["heart":"heart"], theirs)[1])  # and three of one table are too few


def test_the_tables_show_the_rows(rows):
    for prices, where in (("uniform", "equal prices"), ("variable", "random prices")):
        accuracy = 100 * of(rows, "accuracy", prices=prices, method="askwise").mean()
        difference = accuracy - 100 * of(rows, "accuracy", prices=prices, method="vip").mean()
        assert table(rows, f"Accuracy beside rivals, {where}").body[0][1].text == f"{accuracy:.2f}"
        shown = table(rows, f"Lead over rivals in accuracy, {where}")
        assert [entry.text for entry in shown.body[0]] == ["over VIP", f"{difference:+.2f}"]
        assert shown.head == ("", "default, MLP")
        assert "chance" in table(rows, f"Calibration beside rivals, {where}").body[0][1].spread
    assert table(rows, "Time beside the wrapped model").body[0][0].text == "Wine, askwise"


def test_a_method_that_lacks_splits_has_no_accuracy(rows):
    fewer = rows[(rows["method"] != "vip") | (rows["seed"] == 0)]
    shown = {line[0].text: line[1].text for line in table(fewer, "Accuracy beside rivals, equal prices").body}
    assert shown["VIP"] == "-"
    assert shown["askwise"] == table(rows, "Accuracy beside rivals, equal prices").body[0][1].text


def test_calibration_puts_budgets_and_splits_together():
    rng = np.random.default_rng(0)
    parts = [(rng.dirichlet(np.ones(3), 40), rng.integers(0, 3, 40)) for _ in range(2)]
    lines: list[dict[str, Any]] = []
    for seed, (proba, y) in enumerate(parts):
        fitted: Any = SimpleNamespace(
            classes_=np.arange(3),
            prices_=Prices([1.0, 1.0]).resolve(["a", "b"]),
            _final_states=lambda X, budgets, policy, proba=proba: [
                SimpleNamespace(proba=part) for part in (proba[:20], proba[20:])
            ],
            predict_proba=lambda X, proba=proba: proba[:20],
        )
        task: Any = SimpleNamespace(X_test=pd.DataFrame(index=range(20)), y_test=y[:20], seed=seed)
        for row in study.rivals(task, fitted):
            lines.append(
                {"data": "wine", "method": "vip", "prices": "uniform", "seed": seed, "study": "rivals", **vars(row)}
            )
    found = calibration_errors(pd.DataFrame(lines), "surplus").item()
    proba, y = np.concatenate([part for part, _ in parts]), np.concatenate([np.tile(y[:20], 2) for _, y in parts])
    assert found == pytest.approx(expected_calibration_error(y, proba))


def test_budgets_that_buy_everything_are_also_left_out_of_the_calibration():
    measured: list[tuple[str, float | None, float]] = [("test_rows", None, 10), ("full_accuracy", None, 0.5)]
    measured += [(metric, budget, 0.5) for metric in ("accuracy", "log_loss") for budget in (1, 2, 3)]
    measured += [("surplus", 1, 2), ("surplus", 2, -1), ("surplus", 3, 5)]
    measured += [("surplus_by_chance", None, 3), ("surplus_by_chance", 3, 6)]
    trial = {"study": "rivals", "prices": "uniform", "seed": 0, "method": "askwise", "bin": 4, "draw": 0}
    rows = pd.DataFrame(
        [
            {"data": data, "metric": metric, "budget": budget, "value": value, **trial}
            for data, everything in (("wine", 3), ("heart", 4))
            for metric, budget, value in [*measured, ("price_of_everything", None, everything)]
        ]
    )
    whole = table(rows, "Calibration beside rivals, equal prices")
    assert [(entry.text, entry.spread) for entry in whole.body[0][1:]] == [("0.200", "chance 0.300")] * 2
    incomplete = table(rows, "Calibration of incomplete cases beside rivals, equal prices")
    assert incomplete.head == ("method", "Wine")  # no budget buys all of heart
    assert [(entry.text, entry.spread) for entry in incomplete.body[0][1:]] == [("0.050", "chance 0.150")]


def test_rivals_train_as_their_authors_do_in_the_papers_profile(monkeypatch):
    monkeypatch.setattr(StaticCMI.__mro__[1], "fit", lambda self, X, y: self)
    for profile, options in (("paper", AUTHORS_TRAINING), ("quick", {"batch_size": None, "patience": 20})):
        for name in ("gdfs", "dime"):
            method: Any = fit_method(name, make_task("wine", "uniform", 0, Limits(60, 20), PROFILES[profile].settings))
            assert {key: getattr(method, key) for key in options} == options


def test_steps_are_timed_on_a_row_with_a_category_that_a_session_refuses():
    X, y = patients(120, 0)
    X = X.fillna({"age": 50.0, "city": "Ghent"})
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["city", "pain"]), ("passthrough", ["age"])
    )
    model = make_pipeline(columns, DecisionTreeClassifier(random_state=0)).fit(X, y)
    selector = DynamicFeatureSelector(model, epistemic=None, calibration=None, random_state=0).fit(X, y)
    timed = list(study._steps(selector, X[:1].assign(city="Paris")))
    assert [part for part, _ in timed].count("choice") == study.TIMED_STEPS
    assert [part for part, _ in timed].count("answer") == study.TIMED_STEPS - 1  # the city is unavailable
