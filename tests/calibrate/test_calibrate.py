"""What calibration does to a selector, on which rows, and where it is off."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from askwise import DynamicFeatureSelector, InvalidInput, wrap
from askwise.calibrate.unseen import check_unseen
from askwise.calibrate.visited_states import VisitedStates, calibrated, sizes_visited
from askwise.evaluation import final_states
from askwise.predict import ConditionalPredictor, LocalPredictor
from askwise.stopping import Confidence
from askwise.table.rows import EncodedRows

X, Y = load_wine(return_X_y=True, as_frame=True)
TRAIN, TEST = np.arange(0, len(Y), 2), np.arange(1, len(Y), 2)
FOREST = RandomForestClassifier(10, min_samples_leaf=2, random_state=0).fit(X.iloc[TRAIN], Y[TRAIN])
FIXED_WIDTH = ConditionalPredictor(None, random_state=0)


def fitted(estimator=FOREST, rows=TRAIN, unseen=None, **options):
    owner = DynamicFeatureSelector(estimator, random_state=0, progress=False, **{"epistemic": None, **options})
    given = {} if unseen is None else {"X_unseen": X.iloc[unseen], "y_unseen": Y[unseen]}
    return owner.fit(X.iloc[rows], Y[rows], **given)


@pytest.fixture(scope="module")
def both():
    """Without and with temperatures; the kernel width, which would be chosen as well, is given."""
    return fitted(adaptation=FIXED_WIDTH, calibration=None), fitted(adaptation=FIXED_WIDTH)


@pytest.fixture(scope="module")
def partly():
    rng = np.random.default_rng(0)
    return X.iloc[TEST].mask(rng.random((len(TEST), X.shape[1])) < 0.7)


def test_off_is_the_predictor_itself(both, partly):
    off, _ = both
    assert off.calibration_ is None
    assert not hasattr(off, "adaptation_report_")
    assert_array_equal(off.predict_proba(partly), off.predictor_.predict_proba(partly))
    run = off.acquire(X.iloc[TEST[:5]], budget=3)
    assert_array_equal(run.decision_is_final, run.agreement)


def test_decisions_choices_and_completions_stay(both, partly):
    both = [owner.with_policy("greedy") for owner in both]  # "auto" also learns gains where it is calibrated
    off, on = both
    assert_array_equal(on.predict(partly), off.predict(partly))
    assert_array_equal(on.suggest(partly), off.suggest(partly))
    before, after = (owner.acquire(X.iloc[TEST], budget=4) for owner in both)
    for name in ("order", "decision", "agreement"):
        assert_array_equal(getattr(after, name), getattr(before, name))
    assert not np.allclose(after.proba, before.proba)


def test_complete_rows_get_the_answer_of_the_model(both):
    assert_array_equal(both[1].predict_proba(X.iloc[TEST]), FOREST.predict_proba(X.iloc[TEST]))
    run = both[1].acquire(X.iloc[TEST[:3]])
    assert_array_equal(run.decision_is_final[:, -1], 1)
    assert_allclose(run.proba[:, -1], FOREST.predict_proba(X.iloc[TEST[:3]]))


def test_predictions_and_agreement_come_closer_to_the_truth(both):
    y, found = Y.to_numpy()[TEST], []
    for owner in both:
        run = owner.acquire(X.iloc[TEST], budget=6)
        full = FOREST.predict(X.iloc[TEST])
        kept = run.classes[run.decision[:, 1:]] == full[:, None]
        final = np.clip(run.decision_is_final[:, 1:], 1e-6, 1 - 1e-6)
        losses = -np.where(kept, np.log(final), np.log(1 - final)).mean()
        found.append([np.mean([log_loss(y, run.proba[:, t]) for t in range(1, 7)]), losses])
    (before, before_final), (after, after_final) = found
    assert after < before - 0.03
    assert after_final < before_final


def test_the_report_has_the_log_loss_by_size(both):
    report = both[1].adaptation_report_
    assert report["stage"].unique().tolist() == ["calibration"]
    assert report["size"].tolist() == sizes_visited(X.shape[1])
    assert (report["rows"] == len(TRAIN)).all()
    assert report["after"].mean() < report["before"].mean()
    assert len(both[1].calibration_.temperatures) == X.shape[1] + 1


def test_members_get_the_same_temperature(partly):
    on = fitted(epistemic="ensemble")
    rows = on._encode(partly)
    calibrated = on.beliefs_.believe(rows)
    on.beliefs_.calibration = None
    raw = on.beliefs_.believe(rows)
    size = rows.observed.sum(axis=1)
    assert raw.members.shape[0] == 5
    for k in range(6):
        assert_allclose(calibrated.answers[:, k], on.calibration_.proba(raw.answers[:, k], size))
    assert_array_equal(calibrated.completions.answers, raw.completions.answers)


def test_a_session_says_what_its_row_in_a_batch_does(both):
    on = both[1]
    run = on.acquire(X.iloc[TEST[:2]], budget=3)
    session = on.start(budget=3)
    for t in range(3):
        name = session.suggest().feature
        session.answer(name, X[name].iloc[TEST[1]])
        report = session.report()
        assert_allclose(list(report["probabilities"].values()), run.proba[1, t + 1])
        assert report["decision_is_final"] == pytest.approx(run.decision_is_final[1, t + 1])
    steps = run.to_frame()
    assert_allclose(steps.loc[steps["case"] == X.index[TEST[1]], "decision_is_final"], run.decision_is_final[1])


def test_every_budget_is_evaluated_with_calibrated_probabilities(both):
    on = both[1]
    prices = np.where(np.arange(X.shape[1]) == 0, 2.0, 1.0)
    owner = fitted(costs=prices)  # one episode per budget
    end = final_states(owner, X.iloc[TEST[:9]], [2.0])[0]
    assert_array_equal(end.proba, owner.predict_proba(X.iloc[TEST[:9]].where(end.mask)))
    end = final_states(on, X.iloc[TEST[:9]], [2.0])[0]
    assert_allclose(end.proba, on.predict_proba(X.iloc[TEST[:9]].where(end.mask)))


def test_confidence_reads_calibrated_probabilities(both):
    run = both[1].acquire(X.iloc[TEST], stop=Confidence(0.95))
    bought = (run.order >= 0).sum(axis=1)
    largest = run.proba.max(axis=2)
    for row, steps in enumerate(bought):
        assert (largest[row, :steps] < 0.95).all()
    assert bought.mean() < (both[0].acquire(X.iloc[TEST], stop=Confidence(0.95)).order >= 0).sum(axis=1).mean()


def test_the_same_seed_gives_the_same_temperatures(both):
    again = fitted(adaptation=FIXED_WIDTH)
    assert_array_equal(again.calibration_.temperatures, both[1].calibration_.temperatures)
    assert again.calibration_.final_map == both[1].calibration_.final_map


def test_rows_that_are_given_are_used_in_place_of_folds(monkeypatch):
    rows, unseen = TRAIN, TEST[::2]
    monkeypatch.setattr(DynamicFeatureSelector, "_cross_fit", None)  # calling it fails
    for estimator in (FOREST, wrap(FOREST.predict_proba, [0, 1, 2]), RandomForestClassifier(5, random_state=0)):
        owner = fitted(estimator, rows, unseen)
        assert owner.adaptation_report_["rows"].max() == len(unseen)
        assert (owner.calibration_.temperatures[1:] != 1).all()


def test_with_nothing_known_the_answer_is_the_average_over_all_rows():
    average = FOREST.predict_proba(X.iloc[TRAIN]).mean(axis=0)
    for seed in (0, 1):
        for adaptation in ("auto", "pooled"):
            options: dict[str, Any] = {"adaptation": adaptation, "epistemic": None, "random_state": seed}
            owner = DynamicFeatureSelector(FOREST, progress=False, **options).fit(X.iloc[TRAIN], Y[TRAIN])
            shown = owner.start().report()["probabilities"]
            assert_allclose(
                list(shown.values()), average, atol=0.01
            )  # a little is mixed in so that nothing is excluded


def test_identifiers_as_categories_leave_nothing_to_calibrate_on():
    table = X.iloc[TRAIN, :2].assign(patient=[f"p{i}" for i in range(len(TRAIN))])
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["patient"]), remainder="passthrough")
    model = make_pipeline(encoder, RandomForestClassifier(5, random_state=0)).fit(table, Y[TRAIN])
    owner = DynamicFeatureSelector(model, epistemic=None, random_state=0, progress=False).fit(table, Y[TRAIN])
    assert owner.calibration_ is None


def test_predictors_without_completions_are_calibrated_too():
    few = X.iloc[TRAIN, :3]
    for adaptation in (LocalPredictor(None), "mean"):
        options: dict[str, Any] = {"adaptation": adaptation, "policy": "random", "epistemic": None, "random_state": 0}
        owner = DynamicFeatureSelector(GaussianNB(), progress=False, **options).fit(few, Y[TRAIN])
        run = owner.acquire(few[:8], budget=2)
        assert owner.calibration_ is not None
        assert_allclose(run.agreement, run.proba.max(axis=2))
        assert_allclose(run.decision_is_final, owner.calibration_.final(run.agreement, run.agreement))


def test_models_that_cannot_be_fitted_again_are_not_calibrated(partly):
    owner = fitted(wrap(FOREST.predict_proba, [0, 1, 2]))
    assert owner.calibration_ is None
    assert_array_equal(owner.predict_proba(partly), owner.predictor_.predict_proba(partly))


def test_training_rows_are_refused():
    for rows in (TRAIN, TRAIN[:10], np.r_[TRAIN[:20], TEST]):
        with pytest.raises(InvalidInput, match=r"X_unseen: \d+ of \d+ rows were given to fit"):
            fitted(unseen=rows)


def test_rows_that_repeat_by_chance_are_not_refused():
    rng = np.random.default_rng(0)
    training, fresh = (EncodedRows(rng.integers(0, 2, size=(n, 4)).astype(float)) for n in (200, 50))
    check_unseen(fresh.keys(), training.keys(), "X_unseen")
    numbers = EncodedRows(rng.normal(size=(200, 4)))
    missing = numbers.masked(np.array([True, True, True, False]))
    check_unseen(missing.keys(), numbers.keys(), "X_unseen")
    with pytest.raises(InvalidInput, match="30 of 30 rows"):
        check_unseen(missing.take(slice(30)).keys(), missing.keys(), "X_unseen")


def test_what_is_given_is_checked():
    owner = DynamicFeatureSelector(FOREST, random_state=0, progress=False, epistemic=None)
    train, rows, labels = (X.iloc[TRAIN], Y[TRAIN]), X.iloc[TEST], Y.to_numpy()[TEST]
    wrong = {
        "y_unseen holds 7": {"X_unseen": rows, "y_unseen": np.where(labels == 1, 7, labels)},
        "one of them is None": {"X_unseen": rows},
        "at least 2 rows": {"X_unseen": rows[:1], "y_unseen": labels[:1]},
        "one label per row, 89": {"X_unseen": rows, "y_unseen": labels[:-1]},
        "feature names": {"X_unseen": rows[rows.columns[:4]], "y_unseen": labels},
    }
    for message, given in wrong.items():
        with pytest.raises(InvalidInput, match=message):
            owner.fit(*train, **given)
    with pytest.raises(InvalidInput, match="calibration is None"):
        owner.set_params(calibration=None).fit(*train, X_unseen=rows, y_unseen=labels)
    with pytest.raises(InvalidInput, match="calibration must be"):
        owner.set_params(calibration="isotonic").fit(*train)


def test_missing_cells_free_features_and_groups():
    rng = np.random.default_rng(0)
    table = X.iloc[TRAIN].mask(rng.random((len(TRAIN), X.shape[1])) < 0.1)
    names = X.columns.tolist()
    owner = DynamicFeatureSelector(
        RandomForestClassifier(5, random_state=0),
        groups={"panel": names[:4]},
        costs={names[5]: 0.0},
        epistemic=None,
        random_state=0,
        progress=False,
    ).fit(table, Y[TRAIN])
    assert owner.calibration_ is not None
    assert len(owner.calibration_.temperatures) == len(owner.features_) + 1
    assert np.isfinite(owner.acquire(pd.DataFrame(X.iloc[TEST[:5]])).proba).all()


def test_sizes_are_all_of_few_features_and_a_dozen_of_many():
    assert sizes_visited(5) == [0, 1, 2, 3, 4]
    many = sizes_visited(784)
    assert len(many) <= 12
    assert many[:3] == [0, 1, 2]
    assert many[-1] == 783


def test_temperatures_that_clearly_raise_the_log_loss_of_other_cases_are_not_used():
    """Answers that are calibrated already, of few cases: temperatures only fit their noise."""
    rng = np.random.default_rng(3)
    found = []
    for _ in range(20):
        proba = rng.dirichlet(np.ones(3), size=24)
        labels = (proba.cumsum(axis=1) < rng.random((24, 1))).sum(axis=1)
        states = VisitedStates(np.arange(24), np.arange(24) % 3, proba, None, labels, proba.argmax(axis=1))
        calibration, report = calibrated(states, 3, lambda proba: proba.argmax(axis=1))
        kept = report["kept"].all()
        assert kept == report["kept"].any()
        assert (calibration.temperatures == 1).all() != kept
        before, after = (np.average(report[stage], weights=report["rows"]) for stage in ("before", "after"))
        assert kept or after > before
        found.append(kept)
    assert 0 < sum(found) < 20
