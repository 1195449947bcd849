"""A slice of the suites as they are, each by its quickest method: what they measure, and that the page shows it.

The suites l1 and reparam train a network per weight or a model per subset around a network, which takes too long here;
their studies have tests of their own.
"""

import numpy as np
import pandas as pd
import pytest

from askwise.bench.grid.run import run
from askwise.bench.grid.suites import SUITES
from askwise.bench.report.study_figures import points
from askwise.bench.report.study_tables import parameters, tables
from askwise.bench.report.tables import read_rows
from askwise.datasets.home import data_home

BY_STATIC_CMI = ["data", "variable", "uniform", "unavailable", "switch"]
BY_GREEDY_CART = ["lambda", "bias", "selective", "shift", "risk-gap", "scatter"]
SLOW = ["l1", "reparam"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("suites")
    for suites, method in ((BY_STATIC_CMI, "static-cmi"), (BY_GREEDY_CART, "greedy-cart")):
        for step in run(suites, out, methods=[method]):
            assert not step.errors, "\n".join(step.errors.values())
    return out


@pytest.fixture(scope="module")
def rows(folder):
    return read_rows(folder)


def values(rows, metric, data="wine", **where):
    """A metric on wine, or on other data."""
    chosen = (rows["metric"] == metric) & (rows["data"] == data)
    for column, value in where.items():
        chosen &= rows[column] == value
    return rows.loc[chosen].sort_values("budget")["value"].to_numpy()


def test_no_suite_is_forgotten():
    assert sorted([*BY_STATIC_CMI, *BY_GREEDY_CART, *SLOW, "prices"]) == sorted(SUITES)


def test_each_suite_has_a_result_of_its_own(folder):
    timings = pd.read_csv(folder / "timings.csv")
    assert sorted(timings["study"]) == sorted([*BY_STATIC_CMI, *BY_GREEDY_CART])
    fits = timings.groupby(["data", "method", "prices"])["fit_seconds"].nunique()
    assert (fits == 1).all()  # the suites of a cell share its fit


def test_suites_do_not_take_each_others_names(folder):
    written = pd.read_csv(folder / "rows.csv")
    assert not written.duplicated(["data", "method", "prices", "seed", "budget", "metric"]).any()


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
        ("Selective prediction by measure of uncertainty", "Appendix E"),
        ("Shift of the test rows", "Appendix F"),
        ("Epistemic uncertainty and risk gap", "Appendix F"),
        ("Features that cannot be had", "Section 2.1"),
    ]:
        assert shown.count((title, label)) == 1, title


def test_money_buys_accuracy_under_all_prices(rows):
    for prices in ("uniform", "variable"):
        curve = values(rows, "accuracy", method="static-cmi", prices=prices)
        assert len(curve) == 10
        assert curve[-1] > curve[0]
        assert curve[-1] > 0.8
    assert values(rows, "logistic_accuracy").item() > 0.9


def test_the_switch_says_which_others_matter(rows):
    """A fixed order buys what is of no use to half of the rows: it needs more than the two features that are enough."""
    curve = values(rows, "accuracy", data="switch", method="static-cmi")
    assert curve.max() > curve[1] + 0.05


def test_with_everything_to_be_had_the_suites_agree(rows):
    shares = parameters(rows, "unavailable[share=*]/accuracy")
    assert (shares[0], shares[-1]) == (0, 0.5)
    all_there = values(rows, "unavailable[share=0]/accuracy")
    assert all_there.tolist() == values(rows, "accuracy", method="static-cmi", prices="uniform").tolist()


def test_noise_costs_accuracy(rows):
    clean, noisy = (values(rows, f"shift[sigma={sigma}]/accuracy").mean() for sigma in (0, 2))
    assert noisy < clean - 0.05


def test_every_weight_of_risk_is_measured_at_the_same_budgets(rows):
    weights = parameters(rows, "lambda[*]/accuracy")
    assert min(weights) < 0 < max(weights)
    budgets = {tuple(rows.loc[rows["metric"] == f"lambda[{weight:g}]/accuracy", "budget"]) for weight in weights}
    assert len(budgets) == 1
    assert min(values(rows, f"lambda[{weight:g}]/accuracy").mean() for weight in weights) > 0.6
    assert min(values(rows, f"lambda[{weight:g}]/epistemic").min() for weight in weights) > 0


def test_rejection_by_entropy_beats_rejection_at_random(rows):
    assert values(rows, "selective[total]/aurc").mean() < values(rows, "selective[random]/aurc").mean()


def test_points_lie_where_they_can(rows):
    for x, y in (("bias/kl_full", "bias/kl_ref"), ("scatter/aleatoric", "scatter/epistemic")):
        found = points(rows, x, y).to_numpy()
        assert len(found) >= 20
        assert (found >= -1e-9).all()
    assert np.abs(points(rows, "risk_gap/variance", "risk_gap[error]/delta")["y"]).max() <= 1


def test_published_prices_are_in_money(tmp_path):
    if not (data_home() / "tabular/hepatitis").exists():
        pytest.skip("the hepatitis data are not in the data home")
    (step,) = run(["prices"], tmp_path, methods=["static-cmi"])
    assert not step.errors
    assert step.cell.data == "hepatitis"
    rows = read_rows(tmp_path)
    budgets = rows.loc[rows["metric"] == "accuracy", "budget"].to_numpy()
    spent = values(rows, "spent", data="hepatitis")
    assert (spent <= budgets + 1e-9).all()
    assert not np.allclose(budgets, budgets.round())
