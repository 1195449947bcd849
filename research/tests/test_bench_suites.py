"""A slice of the suites as they are, each by its quickest method: what they measure, and that the page shows it.

The suites l1 and reparam train a network per weight or a model per subset around a network, which takes too long here;
their studies have tests of their own.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from askwise.datasets import load
from askwise.policy import Greedy
from askwise.table.prices import Prices
from askwise_bench.grid.methods import METHODS, _selector
from askwise_bench.grid.run import run
from askwise_bench.grid.suites import SUITES
from askwise_bench.report.rows import Quantity, read_rows, settings
from askwise_bench.report.study_figures import points
from askwise_bench.report.study_tables import tables
from askwise_bench.studies import policies, subsets, uncertainty

BY_STATIC_CMI = ["data", "variable", "uniform", "unavailable", "switch"]
BY_GREEDY_CART = ["lambda", "bias", "selective", "shift", "risk-gap", "scatter"]
SLOW = ["l1", "reparam"]
ELSEWHERE = ["prices", "images", "rivals", "rivals-priced"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Each suite by one method, with fewer subsets, weights and noise; greedy CART by the training-free estimator."""
    out = tmp_path_factory.mktemp("suites")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(METHODS, "greedy-cart", _selector("quick", "tree", "rules", Greedy))
        patch.setattr("askwise_bench.grid.tasks.SWITCH_ROWS", 300)
        patch.setattr(subsets, "SUBSETS_PER_SIZE", 4)
        patch.setattr(subsets, "BIAS_SUBSETS_PER_SIZE", 2)
        patch.setattr(policies, "RISK_WEIGHTS", (-1.0, 0.0, 1.0))
        patch.setattr(policies, "LAMBDA_SHARES", (0.2, 0.5))
        patch.setattr(policies, "UNAVAILABLE_SHARES", (0.0, 0.5))
        patch.setattr(uncertainty, "SIGMAS", (0.0, 2.0))
        patch.setattr(uncertainty, "SELECTIVE_SHARES", (0.2, 0.5))
        for suites, method in ((BY_STATIC_CMI, "static-cmi"), (BY_GREEDY_CART, "greedy-cart")):
            for step in run(suites, out, methods=[method]):
                assert not step.errors, "\n".join(step.errors.values())
    return out


@pytest.fixture(scope="module")
def rows(folder):
    return read_rows(folder)


def values(rows, study, metric, data="wine", **where):
    """A metric of a study on wine, or on other data."""
    chosen = Quantity(study, metric, {"data": data, **where}).of(rows)
    return chosen.sort_values("budget")["value"].to_numpy()


def test_no_suite_is_forgotten():
    assert sorted([*BY_STATIC_CMI, *BY_GREEDY_CART, *SLOW, *ELSEWHERE]) == sorted(SUITES)


def test_each_suite_has_a_result_of_its_own(folder):
    timings = pd.read_csv(folder / "timings.csv")
    assert sorted(timings["suite"]) == sorted([*BY_STATIC_CMI, *BY_GREEDY_CART])
    fits = timings.groupby(["data", "method", "prices"])["fit_seconds"].nunique()
    assert (fits == 1).all()  # the suites of a trial share its fit


def test_studies_are_named_and_each_number_is_there_once(folder):
    written = pd.read_csv(folder / "rows.csv")
    assert not written.duplicated([name for name in written.columns if name != "value"]).any()
    assert set(written["study"]) == {SUITES[name].study.__name__ for name in (*BY_STATIC_CMI, *BY_GREEDY_CART)}
    for study, parameter in (
        ("risk_weights", "risk_weight"),
        ("shift", "sigma"),
        ("unavailable", "unavailable_share"),
        ("selective", "measure"),
    ):
        assert written.loc[written["study"] == study, parameter].notna().all(), study
        assert written.loc[written[parameter].notna(), "study"].nunique() >= 1
    subset = written[written["subset"].notna()]
    assert subset["budget"].isna().all(), "the size of a subset is not money"
    assert (subset["subset_size"] >= 1).all()


def test_every_suite_has_its_table(rows):
    shown = [(table.title, table.label) for table in tables(rows)]
    for title, label in [
        ("Data", "Appendix G"),
        ("Accuracy under random prices", "Table 1"),
        ("Accuracy under equal prices", "Appendix E"),
        ("Accuracy under equal prices: switch", "beyond the paper"),
        ("Weight of epistemic uncertainty", "Table 2"),
        ("Prediction bias", "Table 3"),
        ("Selective prediction", "Appendix E"),
        ("Selective prediction, averaged over the measures", "Appendix E"),
        ("Selective prediction by measure of uncertainty", "Appendix E"),
        ("Distribution shift of the test rows", "Appendix F"),
        ("Entropy and AUROC under distribution shift", "Appendix F"),
        ("Epistemic uncertainty and risk gap", "Appendix F"),
        ("Unavailable features", "Section 2.1"),
    ]:
        assert shown.count((title, label)) == 1, title


def test_money_buys_accuracy_under_all_prices(rows):
    for prices in ("uniform", "variable"):
        curve = values(rows, "accuracy", "accuracy", method="static-cmi", prices=prices)
        assert len(curve) == 10
        assert curve[-1] > curve[0]
        assert curve[-1] > 0.8
    assert values(rows, "summary", "logistic_accuracy").item() > 0.9


def test_the_switch_tells_which_others_matter(rows):
    """A fixed order buys what is of no use to half of the rows: it needs more than the two features that are enough."""
    curve = values(rows, "accuracy", "accuracy", data="switch", method="static-cmi")
    assert curve.max() > curve[1] + 0.05


def test_with_everything_available_the_suites_agree(rows):
    assert settings(rows, "unavailable", "unavailable_share") == [0, 0.5]
    all_there = values(rows, "unavailable", "accuracy", unavailable_share=0)
    assert all_there.tolist() == values(rows, "accuracy", "accuracy", method="static-cmi", prices="uniform").tolist()


def test_noise_costs_accuracy(rows):
    clean, noisy = (values(rows, "shift", "accuracy", sigma=sigma).mean() for sigma in (0, 2))
    assert noisy < clean - 0.05


def test_every_weight_of_risk_is_measured_at_the_same_budgets(rows):
    weights = settings(rows, "risk_weights", "risk_weight")
    assert weights == [-1, 0, 1]
    chosen = Quantity("risk_weights", "accuracy").of(rows)
    assert len({tuple(part["budget"]) for _, part in chosen.groupby("risk_weight")}) == 1
    for weight in weights:
        assert values(rows, "risk_weights", "accuracy", risk_weight=weight).mean() > 0.6
        assert values(rows, "risk_weights", "epistemic", risk_weight=weight).min() > 0


def test_rejection_by_entropy_beats_rejection_at_random(rows):
    by_entropy, at_random = (values(rows, "selective", "aurc", measure=name).mean() for name in ("total", "random"))
    assert by_entropy < at_random


def test_points_lie_where_they_can(rows):
    for study, x, y in (("bias", "kl_full", "kl_ref"), ("scatter", "aleatoric", "epistemic")):
        found = points(rows, Quantity(study, x), Quantity(study, y)).to_numpy()
        assert len(found) >= 10
        assert (found >= -1e-9).all()
    gaps = points(rows, Quantity("risk_gap", "variance"), Quantity("risk_gap", "delta", {"loss": "error"}))
    assert len(gaps) == 2 * 4
    assert np.abs(gaps["y"]).max() <= 1


def test_published_prices_are_in_money(tmp_path, monkeypatch):
    prices = Prices(dict(zip(load("wine").X.columns, np.linspace(0.35, 7.9, 13), strict=True)))
    monkeypatch.setitem(SUITES, "prices", replace(SUITES["prices"], data=("wine",)))
    monkeypatch.setattr("askwise_bench.grid.tasks.load", lambda name: replace(load(name), prices=prices))
    (step,) = run(["prices"], tmp_path, methods=["static-cmi"])
    assert not step.errors
    assert step.trial.prices == "published"
    rows = read_rows(tmp_path)
    budgets = Quantity("accuracy", "accuracy").of(rows)["budget"].to_numpy()
    assert (values(rows, "accuracy", "spent") <= budgets + 1e-9).all()
    assert not np.allclose(budgets, budgets.round())
