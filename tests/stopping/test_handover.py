"""Which cases to hand to a person: the promise about the others, what is refused, and what is said about a case."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from askwise import DynamicFeatureSelector, InvalidInput
from askwise.epistemic import Assessment
from askwise.errors import AskwiseWarning
from askwise.stopping.handover import HandoverGoal, calibrated_handover, p_values_of_means
from askwise.uncertainty import Uncertainty


def assessed(rng, n):
    """Cases whose decision is wrong with probability u / 2, of which only the entropy knows; u is uniform."""
    u = rng.random(n)
    proba = np.column_stack([1 - u / 2, u / 2])
    noise = [rng.random(n) for _ in range(6)]
    found = Uncertainty(u, *noise)
    final = np.tile([0.5, 0.5], (n, 1)) + 0.1 * rng.random((n, 1)) * [1, -1]
    return Assessment(proba, np.zeros(n, dtype=int), np.ones(n), final, found), (rng.random(n) < u / 2).astype(int), u


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(900, 4)), columns=list("abcd"))
    y = np.where(X["a"] + 0.7 * X["b"] + rng.normal(scale=0.8, size=900) > 0, "ill", "well")
    model = LogisticRegression().fit(X[:300], y[:300])
    selector = DynamicFeatureSelector(model, random_state=0, progress=False).fit(X[:300], y[:300])
    selector.calibrate_stop(X[300:500], y[300:500], agreement=0.9)
    selector.calibrate_handover(X[500:], y[500:], accuracy=0.9)
    return selector, X, y


def test_the_accuracy_is_kept_on_fresh_cases():
    kept, over = [], []
    for seed in range(100):
        found, labels, _ = assessed(np.random.default_rng(seed), 2400)
        fresh, _, u = assessed(np.random.default_rng(10_000 + seed), 5_000)
        try:
            rule = calibrated_handover(found, labels, HandoverGoal(accuracy=0.9), None, None, np.inf, np.arange(2))
        except InvalidInput:  # nothing is promised
            continue
        decided = ~rule.hands_over(fresh)
        kept.append((1 - u[decided] / 2).mean() >= 0.9)  # the probability itself, without the noise of the labels
        over.append(1 - decided.mean())
    assert len(kept) >= 85
    assert np.mean(kept) >= 0.86
    assert np.median(over) < 0.75, "60 % must be handed over by the entropy: the mean of u / 2 is 0.1 up to u = 0.4"


def test_costs_of_errors_are_kept_below_a_mean():
    costs = np.array([[0.0, 1.0], [4.0, 0.0]])
    kept = []
    for seed in range(40):
        found, labels, _ = assessed(np.random.default_rng(seed), 4000)
        rule = calibrated_handover(found, labels, HandoverGoal(error_cost=0.5), costs, None, np.inf, np.arange(2))
        fresh, _, u = assessed(np.random.default_rng(10_000 + seed), 20_000)
        decided = ~rule.hands_over(fresh)
        kept.append(4 * (u[decided] / 2).mean() <= 0.5)
    assert np.mean(kept) >= 0.86


def test_p_values_of_zeros_and_ones_are_binomial_and_others_are_bounded_by_them():
    rng = np.random.default_rng(0)
    losses, scores = (rng.random(50) < 0.05).astype(float), np.arange(50.0)
    exact = p_values_of_means(losses, scores, np.array([19.0, np.inf]), 0.2)
    bounded = p_values_of_means(losses * 0.999, scores, np.array([19.0, np.inf]), 0.2)
    assert (bounded >= exact - 1e-12).all()
    assert p_values_of_means(losses, scores, np.array([-1.0]), 0.2).tolist() == [1.0]


def test_what_cannot_be_promised_is_refused():
    rng = np.random.default_rng(0)
    found, labels, _ = assessed(rng, 600)
    with pytest.raises(InvalidInput, match="exactly one of accuracy and error_cost"):
        HandoverGoal()
    with pytest.raises(InvalidInput, match="accuracy must be between 0 and 1"):
        HandoverGoal(accuracy=95)
    with pytest.raises(InvalidInput, match="needs a selector with error_costs"):
        calibrated_handover(found, labels, HandoverGoal(error_cost=1.0), None, None, np.inf, np.arange(2))
    with pytest.raises(InvalidInput, match=r"needs at least 3\d\d\d rows"):
        calibrated_handover(found, labels, HandoverGoal(accuracy=0.999), None, None, np.inf, np.arange(2))
    guessed = rng.integers(2, size=600)
    with pytest.raises(InvalidInput, match=r"cannot promise accuracy=0\.95"):
        calibrated_handover(found, guessed, HandoverGoal(accuracy=0.95), None, None, np.inf, np.arange(2))


def test_a_batch_and_a_session_hand_over_the_same_cases(fitted):
    selector, X, _ = fitted
    rows = X[:40]
    run = selector.acquire(rows, stop="calibrated")
    assert run.handed_over is not None
    assert 0 < run.handed_over.mean() < 1
    assert "handed_over" in run.to_frame()
    for r in range(0, 40, 5):
        session = selector.start(stop="calibrated")
        assert session.report()["handover"]["advice"] == "ask on"
        while (suggestion := session.suggest()) is not None:
            session.answer(suggestion.feature, rows.iloc[r][suggestion.feature])
        report = session.report()
        json.dumps(report)
        assert report["handover"]["advice"] == ("hand over" if run.handed_over[r] else "decide")
        assert (session.why()["advice"] == "hand over") == run.handed_over[r]
    assert selector.acquire(rows).handed_over is None, "another stop"
    assert selector.acquire(rows, budget=2).handed_over is None


def test_rows_that_calibrated_the_stop_are_refused(fitted):
    selector, X, y = fitted
    with pytest.raises(InvalidInput, match="were given to calibrate_stop as well"):
        selector.calibrate_handover(X[300:600], y[300:600], accuracy=0.9)
    with pytest.raises(InvalidInput, match="y_cal must hold one label per row"):
        selector.calibrate_handover(X[500:], y[501:], accuracy=0.9)


def test_a_value_unlike_all_of_training_is_handed_over(fitted):
    selector, _, _ = fitted
    session = selector.start(stop="calibrated")
    session.answer(session.suggest().feature, 1e6)
    while (suggestion := session.suggest()) is not None:
        session.answer(suggestion.feature, 0.0)
    report = session.report()
    assert report["handover"]["advice"] == "hand over"
    assert not report["guaranteed"]
    assert "outside of everything seen in training" in report["guarantee"]


def test_too_few_rows_are_told_from_too_many_errors():
    found = assessed(np.random.default_rng(0), 60)[0]
    easy = np.where(np.arange(60) < 3, 1, 0)  # 95 % are right, and 20 rows cannot show 90 %
    with pytest.raises(InvalidInput, match="too few to show"):
        calibrated_handover(found, easy, HandoverGoal(accuracy=0.9), None, None, np.inf, np.arange(2))
    with pytest.raises(InvalidInput, match="no measure of uncertainty"):
        calibrated_handover(found, 1 - easy, HandoverGoal(accuracy=0.9), None, None, np.inf, np.arange(2))


def test_a_rare_class_that_is_decided_wrongly_is_said():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1500, 3)), columns=list("abc"))
    truth = rng.random(1500) < 0.06
    X["a"] += 1.2 * truth  # hardly to be told from the others
    y = np.where(truth, "ill", "well")
    selector = DynamicFeatureSelector(LogisticRegression(), epistemic=None, random_state=0).fit(X[:500], y[:500])
    with pytest.warns(AskwiseWarning, match="cases of 'ill' .* are: they are too few to count among all"):
        rule = selector.calibrate_handover(X[500:], y[500:], accuracy=0.9)
    ill, well = rule.classes
    assert (ill.label, well.label) == ("ill", "well")
    assert sum(rule.by_class["decided"]) == rule.n_decided
    assert ill.right < 0.6 < well.right
    mean = (ill.right * ill.decided + well.right * well.decided) / rule.n_decided
    assert mean == pytest.approx(1 - rule.mean_loss)
    assert f"'ill' {100 * ill.right:.3g}% of {ill.decided}" in repr(rule)
