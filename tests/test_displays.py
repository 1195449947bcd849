"""Pictures and cards made from a small fitted selector: drawn into given axes or into a figure of their own."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from askwise import DynamicFeatureSelector, InvalidInput
from askwise.cards import selector_card
from askwise.displays import (
    AcquisitionOrderDisplay,
    BudgetDisplay,
    DecisionCurveDisplay,
    RejectionDisplay,
    ReliabilityDisplay,
    SavingsDisplay,
    TrajectoryDisplay,
)

X, Y = load_wine(return_X_y=True, as_frame=True)
X, Y = X.iloc[:, [0, 6, 9, 12]].rename(columns={"proline": "<b>proline</b>"}), Y.to_numpy()


@pytest.fixture(scope="module")
def selector():
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[::2], Y[::2])
    prices = {"alcohol": 2.0, "flavanoids": 5.0}
    return DynamicFeatureSelector(model, costs=prices, epistemic=None, random_state=0).fit(X[::2], Y[::2])


@pytest.fixture(autouse=True)
def closed():
    with mpl.rc_context({"backend": "agg"}):
        yield
    plt.close("all")


MADE = {
    "savings": lambda s, ax: SavingsDisplay.from_selector(s, X[1::2], levels=(0.9, 0.95), unit="EUR", ax=ax),
    "budgets": lambda s, ax: BudgetDisplay.from_selector(s, X[1::2], Y[1::2], [2, 5, 9], ax=ax),
    "order": lambda s, ax: AcquisitionOrderDisplay.from_selector(s, X[1:20:2], ax=ax),
    "trajectory": lambda s, ax: TrajectoryDisplay.from_trajectory(s.acquire(X[1:4]), 1, ax=ax),
    "case": lambda s, ax: TrajectoryDisplay.from_selector(s, X[1:4], 2, budget=5, ax=ax),
    "session": lambda s, ax: TrajectoryDisplay.from_session(s.start(known={"alcohol": 13.0}), ax=ax),
    "reliability": lambda s, ax: ReliabilityDisplay.from_selector(s, X[1::2], Y[1::2], ax=ax),
    "decision": lambda s, ax: DecisionCurveDisplay.from_selector(
        s, X[1::2], Y[1::2], budget=3, positive=2, price_per_benefit=50, ax=ax
    ),
    "rejection": lambda s, ax: RejectionDisplay.from_selector(s, X[1::2], Y[1::2], budget=3, ax=ax),
}


@pytest.mark.parametrize("name", MADE)
def test_a_display_draws_into_given_axes_or_makes_its_own(selector, name):
    _, ax = plt.subplots()
    given = MADE[name](selector, ax)
    assert given.ax_ is ax
    assert given.figure_ is ax.figure
    own = MADE[name](selector, None)
    assert own.figure_ is plt.gcf()
    assert own.ax_.has_data()
    n_known = len(plt.get_fignums())
    for width in (6.2, 3.5):
        assert isinstance(own.to_figure(width), Figure)
    assert len(plt.get_fignums()) == n_known  # pages are drawn without pyplot


def test_the_numbers_drawn_are_those_of_the_selector(selector):
    table = selector.savings(X[1::2], (0.9,))
    drawn = SavingsDisplay.from_selector(selector, X[1::2], (0.9,)).savings
    assert drawn.equals(table)
    lines = BudgetDisplay.from_selector(selector, X[1::2], Y[1::2], [2, 5]).lines
    assert list(lines) == ["askwise", "static", "random"]
    assert np.array_equal(lines["askwise"], selector.evaluate(X[1::2], Y[1::2], [2, 5])["accuracy"])


def test_reliability_counts_every_prediction_once(selector):
    display = ReliabilityDisplay.from_selector(selector, X[1::2], Y[1::2])
    assert display.counts.sum() == len(X[1::2]) * (X.shape[1] + 1)


def test_a_decision_curve_worked_out_by_hand():
    y, proba = [1, 1, 1, 0, 0, 0, 0, 0, 0, 0], [0.9, 0.5, 0.1, 0.8, 0.3, 0.2, 0.1, 0.1, 0.0, 0.0]
    # From 0.25 on: 2 of 3 found, 2 false alarms at 1/3 each; from 0.5 on: 2 found, 1 false alarm at 1.
    for t, found, alarms in ((0.25, 2, 2), (0.5, 2, 1), (0.85, 1, 0)):
        display = DecisionCurveDisplay.from_predictions(y, proba, [t])
        assert display.curves["predictions"][0] == pytest.approx(found / 10 - alarms / 10 * t / (1 - t))
        assert display.treat_all[0] == pytest.approx(0.3 - 0.7 * t / (1 - t))
    of = {"few": np.array(proba), "all": np.array(proba) ** 0.5}
    price = {"few": [0, 4] * 5, "all": 10.0}
    free = DecisionCurveDisplay.from_predictions(y, of, [0.25, 0.5], price=price)
    paid = DecisionCurveDisplay.from_predictions(y, of, [0.25, 0.5], price=price, price_per_benefit=40)
    assert np.allclose(free.curves["few"] - paid.curves["few"], 0.05)
    assert np.allclose(free.curves["all"] - paid.curves["all"], 0.25)
    assert np.array_equal(free.treat_all, paid.treat_all)
    assert "less the price" in paid.ax_.get_ylabel()
    assert "less the price" not in free.ax_.get_ylabel()


def test_a_decision_curve_is_of_the_last_predictions_and_of_the_full_rows(selector):
    of, positive = X[1::2], Y[1::2] == 2
    display = DecisionCurveDisplay.from_selector(selector, of, Y[1::2], budget=3, positive=2, thresholds=[0.3])
    run = selector.acquire(of, budget=3)
    for name, proba in {"askwise": run.proba[:, -1, 2], "everything known": selector.predict_proba(of)[:, 2]}.items():
        acts = proba >= 0.3
        by_hand = (acts & positive).mean() - (acts & ~positive).mean() * 3 / 7
        assert display.curves[name] == pytest.approx([by_hand]), name
    paid = DecisionCurveDisplay.from_selector(
        selector, of, Y[1::2], budget=3, positive=2, thresholds=[0.3], price_per_benefit=20
    )
    assert display.curves["askwise"] - paid.curves["askwise"] == pytest.approx(run.spent_after(-1).mean() / 20)
    assert display.curves["everything known"] - paid.curves["everything known"] == pytest.approx(9 / 20)


def test_what_cannot_be_drawn_is_refused(selector):
    with pytest.raises(InvalidInput, match="with 3 classes, name the one to act on"):
        DecisionCurveDisplay.from_selector(selector, X[1:4], Y[1:4])
    with pytest.raises(InvalidInput, match="positive must be one of the classes"):
        DecisionCurveDisplay.from_selector(selector, X[1:4], Y[1:4], positive="ill")
    for wrong, message in (
        ({"thresholds": [0.0]}, "thresholds must be a list of probabilities above 0 and below 1"),
        ({"price_per_benefit": 5}, "price has none for 'predictions'"),
        ({"price": 1, "price_per_benefit": 0}, "price_per_benefit must be a number > 0"),
    ):
        with pytest.raises(InvalidInput, match=message):
            DecisionCurveDisplay.from_predictions([0, 1], [0.2, 0.7], **wrong)
    for y, proba, message in (
        ([0, 1], [0.2, 7], "between 0 and 1"),
        ([0, 2], [0.2, 0.7], "y_true must be 0 or 1"),
        ([0], [0.2, 0.7], "equally long"),
    ):
        with pytest.raises(InvalidInput, match=message):
            DecisionCurveDisplay.from_predictions(y, proba)
    with pytest.raises(InvalidInput, match="case must be a position from 0 to 2; got 3"):
        TrajectoryDisplay.from_trajectory(selector.acquire(X[1:4]), 3)
    with pytest.raises(InvalidInput, match="at least one step"):
        TrajectoryDisplay([])


def test_cards_tell_the_case_and_hold_names_as_text(selector):
    case = selector.start(budget=8)
    question = case.suggest()
    card = case._repr_html_()
    assert "Ask next" in card
    assert question.feature.replace("<", "&lt;").replace(">", "&gt;") in question._repr_html_()
    run = selector.acquire(X[1:30])
    for html in (card, question._repr_html_(), run._repr_html_(), selector_card(selector)):
        assert "<b>proline</b>" not in html
        assert html.count("<div") == html.count("</div>")
        assert "http" not in html
    assert "29 cases" in run._repr_html_()
    assert "LogisticRegression" not in selector_card(selector)
    assert "flavanoids" in selector_card(selector)


def test_a_finished_case_says_stop(selector):
    case = selector.start(budget=0)
    assert "<b>Stop</b>" in case._repr_html_()
