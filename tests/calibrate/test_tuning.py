"""What a selector chooses on unseen rows, and what it says about it."""

import json
import warnings
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_wine
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from askwise import DynamicFeatureSelector, acquisition
from askwise.calibrate import crossfit, tuning
from askwise.calibrate.tuning import REPRODUCTION, UNSEEN
from askwise.calibrate.visited_states import VisitedStates, sizes_visited
from askwise.errors import InvalidInput
from askwise.predict import ConditionalPredictor
from askwise.stopping import stop_calibration

X, Y = load_wine(return_X_y=True)
TRAIN, TEST = np.arange(0, len(Y), 2), np.arange(1, len(Y), 2)
MODEL = GaussianNB().fit(X[TRAIN], Y[TRAIN])
PARTLY = np.where(np.random.default_rng(0).random(X[TEST].shape) < 0.4, X[TEST], np.nan)


def fitted(model=MODEL, y=Y, unseen=False, **options):
    owner = DynamicFeatureSelector(model, random_state=0, progress=False, **{"epistemic": None, **options})
    given = {"X_unseen": X[TEST], "y_unseen": y[TEST]} if unseen else {}
    return owner.fit(X[TRAIN], y[TRAIN], **given)


def function(rows):
    return MODEL.predict_proba(rows)


def test_a_factor_of_clearly_less_loss_is_used_for_the_answer_and_for_members_but_not_for_completions():
    adaptation = ConditionalPredictor(None, answer_bandwidth="auto", random_state=0)
    found = fitted(epistemic="ensemble", adaptation=adaptation, calibration=5)
    choice = found.choices_["answer"]
    assert list(choice["log_loss"]) == ["1.4", "1", "0.7"]
    assert choice["factor"] != 1.4
    assert choice["log_loss"][f"{choice['factor']:g}"] < choice["log_loss"]["1.4"]
    assert choice["by"] == UNSEEN
    wide = fitted(adaptation=ConditionalPredictor(None)).choices_["answer"]
    widths = {"narrowest": 0.8, "widest": 0.8}
    assert wide == {"factor": None, **widths, "by": "default", "log_loss": {}, "similar_rows": 0.0}
    rows = found._encode(PARTLY)
    found.beliefs_.calibration = None
    belief = found.beliefs_.believe(rows)
    n_known = rows.observed.sum(axis=1)
    widths = np.minimum(0.8, choice["factor"] * len(TRAIN) ** (-1 / (n_known + 4.0)))
    assert choice["narrowest"] == choice["factor"] * len(TRAIN) ** -0.2
    weights = belief.completions.weights ** (0.8 / widths[:, None]) ** 2
    weights /= weights.sum(axis=1, keepdims=True)
    by_hand = np.einsum("nk,nkmc->nmc", weights, belief.completions.answers)
    open_rows = ~rows.observed.all(axis=1)
    assert belief.answers.shape[1] == 6
    assert_allclose(belief.answers[open_rows], by_hand[open_rows], atol=1e-12)
    squared = found.predictor_.neighbors_.squared_distances(rows)
    assert_array_equal(belief.completions.weights, found.predictor_.neighbors_.nearest(squared)[1])


def test_a_factor_is_chosen_only_if_it_is_clearly_better_than_the_usual_one():
    noise = stats.zscore(np.random.default_rng(0).normal(size=400))

    def best(*gains):  # mean and spread over the cases of what each factor gains
        return tuning._clearly_best(np.stack([np.ones(400), *(1 - mean - spread * noise for mean, spread in gains)]))

    assert best((0, 0), (0, 0)) == 0
    assert best((-0.1, 0.1), (0.1, 1.1)) == 0  # 1.8 standard errors
    assert best((-0.1, 0.1), (0.1, 0.9)) == 2  # 2.2
    assert best((0.05, 0.1), (0.1, 1.1)) == 1  # the other loses less, but not clearly
    assert best((0.05, 0.1), (0.1, 0.1)) == 2
    few = np.array([[0.5] * 19, [0.4] * 19])
    assert tuning._clearly_best(few) == 0  # too few cases to tell
    assert tuning._clearly_best(np.repeat(few, 2, axis=1)) == 1


@pytest.mark.parametrize(("given", "width"), [(None, 0.8), (0.3, 0.3)])
def test_a_given_width_is_the_width_of_the_answer_and_none_that_of_the_completions(given, width):
    predictor = ConditionalPredictor(MODEL, bandwidth=0.8, answer_bandwidth=given, random_state=0).fit(
        X[TRAIN], Y[TRAIN]
    )
    assert predictor.answer_widths(np.array([1, 12])).tolist() == [width, width]


def test_gains_are_learned_from_states_that_were_examined_and_only_from_them():
    found = fitted()
    assert found.usual_gains_ is not None
    assert found.usual_gains_.n_states > 0
    nowhere = np.full((2, 3), np.nan)
    states = VisitedStates(np.arange(2), np.ones(2, dtype=int), *[np.full((2, 3), 1 / 3)] * 2, *[np.zeros(2, int)] * 2)
    assert states.gains() is None
    assert replace(states, expected=nowhere, actual=nowhere).gains() is None
    one = np.array([[0.1, np.nan, np.nan], [np.nan, np.nan, np.nan]])
    seen = replace(states, expected=one, actual=one).gains()
    assert seen is not None
    assert seen.case.tolist() == [0]


def test_widths_are_those_that_can_occur():
    panels = {"first": [0, 1, 2], "second": [3, 4, 5]}
    owner = DynamicFeatureSelector(MODEL, groups=panels, epistemic=None, random_state=0).fit(X[TRAIN], Y[TRAIN])
    widths = owner.predictor_.answer_widths(np.array([1, 12]))
    assert [owner.choices_["answer"][end] for end in ("narrowest", "widest")] == widths.tolist()
    panels |= {"third": list(range(6, 13))}
    owner = DynamicFeatureSelector(MODEL, groups=panels, epistemic=None, random_state=0).fit(X[TRAIN], Y[TRAIN])
    widths = owner.predictor_.answer_widths(np.array([3, 10]))
    assert [owner.choices_["answer"][end] for end in ("narrowest", "widest")] == widths.tolist()
    one = X[TRAIN][:, :1]
    only = DynamicFeatureSelector(GaussianNB().fit(one, Y[TRAIN]), epistemic=None, random_state=0).fit(one, Y[TRAIN])
    assert only.choices_["answer"]["narrowest"] == only.choices_["answer"]["widest"]


def test_a_pool_of_one_row_leaves_nothing_to_choose_by():
    found = fitted(function, adaptation=ConditionalPredictor(None, max_rows=1, answer_bandwidth="auto"))
    assert found.choices_["answer"]["log_loss"] == {}
    json.dumps(found.choices_, allow_nan=False)


def test_a_width_may_be_any_number():
    half: Any = Fraction(1, 2)
    given = ConditionalPredictor(None, answer_bandwidth=half, random_state=0)
    same = ConditionalPredictor(None, answer_bandwidth=0.5, random_state=0)
    answers = [fitted(adaptation=each).predict_proba(PARTLY) for each in (given, same)]
    assert_array_equal(*answers)


@pytest.mark.parametrize("adaptation", ["auto", "pooled"])
def test_a_stop_is_calibrated_on_folds_with_what_the_selector_chose(adaptation, monkeypatch):
    found, asked = fitted(adaptation=adaptation), []
    assert found.predictor_.answer_factor_ != 1.4
    own = acquisition.run_episodes

    def recorded(state, *rest, **options):
        asked.append(state.beliefs)
        return own(state, *rest, **options)

    monkeypatch.setattr(stop_calibration, "run_episodes", recorded)
    found.calibrate_stop(agreement=0.8)
    assert len(asked) == crossfit.N_FOLDS
    for beliefs in asked:
        assert beliefs.calibration is found.calibration_
        for name in found.predictor_.chosen_on_unseen_rows:
            assert getattr(beliefs.predictor, name) == getattr(found.predictor_, name)


def test_the_usual_factor_is_said_to_be_kept():
    few = fitted(y=np.random.default_rng(1).permutation(Y)).choices_["answer"]
    assert few["factor"] == 1.4
    assert few["by"] == f"default, because no other width has a clearly lower {UNSEEN}"
    assert len(few["log_loss"]) == 3


def test_each_training_row_is_a_case_of_its_own_whichever_fold_holds_it():
    states, _ = fitted()._states_to_calibrate_on(None)
    assert sorted(set(states.case)) == list(range(len(TRAIN)))
    assert_array_equal(states.labels, Y[TRAIN][states.case])


def test_folds_whose_model_does_not_know_every_class_are_left_out():
    holes = X[::2].copy()
    holes[np.random.default_rng(0).random(holes.shape) < 0.2] = np.nan  # few complete rows are left to train on
    found = DynamicFeatureSelector(MODEL, epistemic=None, random_state=0).fit(holes, Y[::2])
    assert found.choices_["settling"]["refits"] == 5
    assert found.choices_["calibration"] is None
    assert np.isfinite(found.predict_proba(PARTLY)).all()


def test_the_choice_does_not_refit_more_often(monkeypatch):
    fits = []
    own = GaussianNB.fit

    def counted(self, *rows, **more):
        fits.append(1)
        return own(self, *rows, **more)

    monkeypatch.setattr(GaussianNB, "fit", counted)
    fitted(adaptation=ConditionalPredictor(None, answer_bandwidth=0.8))
    before = len(fits)
    fitted(adaptation="pooled")
    assert len(fits) == 2 * before > 0


@pytest.mark.filterwarnings("ignore:The wrapped model keeps")
def test_a_model_that_cannot_be_cloned_is_reproduced_from_rows_left_out():
    found = fitted(function, adaptation="pooled")
    assert found.choices_["answer"]["by"].endswith(f"clearly lower {REPRODUCTION}")
    forest = RandomForestClassifier(20, random_state=0).fit(X, Y)
    more = DynamicFeatureSelector(forest.predict_proba, epistemic=None, random_state=0).fit(X, Y).choices_["answer"]
    assert more["by"] == REPRODUCTION
    assert more["log_loss"][f"{more['factor']:g}"] < more["log_loss"]["1.4"]
    assert found.predictor_.pooling_weights_ == (0.5, 0.5)
    assert found.choices_["calibration"] is None
    given = fitted(function, adaptation="pooled", unseen=True)
    assert given.choices_["pooling"]["by"] == given.choices_["answer"]["by"] == UNSEEN
    assert given.predictor_.pooling_weights_ != (0.5, 0.5)


def test_nothing_is_chosen_where_calibration_is_off_or_completions_are_not_used():
    off = fitted(calibration=None, adaptation="pooled")
    assert (off.choices_["answer"]["factor"], off.choices_["answer"]["by"]) == (1.4, "default")
    assert off.choices_["pooling"]["model_share"] == 0.5
    assert "answer" not in fitted(adaptation="mean").choices_


def test_other_training_rows_keep_what_was_chosen():
    found = fitted(adaptation="pooled")
    again = found.predictor_.with_rows(found.predictor_.training_rows_, found.predictor_.training_labels_)
    assert again.answer_factor_ == found.predictor_.answer_factor_
    assert again.pooling_weights_ == found.predictor_.pooling_weights_


def test_pooled_answers_are_better_on_unseen_rows_and_the_report_says_what_the_model_keeps():
    found = fitted(LogisticRegression(C=1e-4, max_iter=5000).fit(X[TRAIN], Y[TRAIN]), adaptation="pooled")
    report = found.adaptation_report_
    assert report["stage"].unique().tolist() == ["pooling", "calibration"]
    pooling = report[report["stage"] == "pooling"]
    assert pooling["after"].mean() < pooling["before"].mean()
    assert (pooling["model_share"] == found.choices_["pooling"]["model_share"]).all()
    assert_allclose(found.predict_proba(X[TEST]), found.estimator_.predict_proba(X[TEST]))
    assert_allclose(found.predict_proba(PARTLY).sum(axis=1), 1)


def test_a_model_that_keeps_little_weight_gets_a_warning():
    noise = np.random.default_rng(0).permutation(Y)
    bad = DecisionTreeClassifier(random_state=0).fit(X[TEST], noise[TEST])
    with pytest.warns(UserWarning, match=r"keeps \d+% of the weight .*overfits"):
        fitted(bad.predict_proba, adaptation="pooled", unseen=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(adaptation="pooled")


def test_settling_says_folds_refits_cases_and_the_reason():
    usual = fitted().choices_["settling"]
    assert usual == {**counts(5, 5, 89), "reason": "5 of 5 folds of the training rows"}
    asked = fitted(calibration=3).choices_["settling"]
    assert asked == {**counts(3, 3, 89), "reason": "3 of 3 folds of the training rows"}
    assert fitted(unseen=True).choices_["settling"] == {**counts(0, 0, 89), "reason": "rows given as X_unseen"}
    assert fitted(calibration=None).choices_["settling"] == {**counts(0, 0, 0), "reason": "calibration is None"}
    reason = fitted(function).choices_["settling"]["reason"]
    assert reason.startswith("no folds: the model cannot be fitted again (a callable")
    slow = fitted(adaptation="output").choices_["settling"]
    reason = "1 of 5 folds of the training rows, because this adaptation is slow to fit"
    assert slow == {**counts(1, 1, 18), "reason": reason}


def counts(folds, refits, cases, cut_short=False):
    return {"folds": folds, "refits": refits, "cases": cases, "cut_short": cut_short}


def test_only_a_very_large_model_is_calibrated_on_fewer_cases(monkeypatch):
    work = 30 * len(sizes_visited(13)) * 100 * (13 * 3 + 1)  # of 30 cases, with 13 features and 3 classes
    monkeypatch.setattr(crossfit, "MOST_WORK", work)
    monkeypatch.setattr(crossfit, "FEWEST_CASES", 20)
    found = fitted()
    assert found.choices_["settling"].items() >= counts(2, 2, 30, cut_short=True).items()
    assert found.choices_["settling"]["reason"] == (
        "2 of 5 folds of the training rows, which hold the 30 cases to examine; 30 instead of 400 cases, because an "
        "answer of this model takes much work"
    )
    assert found.calibration_ is not None
    assert fitted(unseen=True).choices_["settling"]["cases"] == 30
    assert fitted(calibration=5).choices_["settling"]["cases"] == 89  # who asks for folds gets them


@pytest.mark.parametrize(
    ("model", "size"),
    [
        (GaussianNB(), 1),
        (LogisticRegression(C=0.01, max_iter=9000), 1),
        (RandomForestClassifier(7), 7),
        (GradientBoostingClassifier(n_estimators=7), 21),
        (HistGradientBoostingClassifier(max_iter=7), 21),
        (XGBClassifier(n_estimators=7), 21),
        (XGBClassifier(), 300),
        (LGBMClassifier(n_estimators=7, verbose=-1), 21),
        (KNeighborsClassifier(), len(TRAIN)),
        (MLPClassifier((100, 100), max_iter=3), 12),
        (VotingClassifier([("a", RandomForestClassifier(7)), ("b", KNeighborsClassifier())], voting="soft"), 96),
        (CalibratedClassifierCV(RandomForestClassifier(7), cv=2), 14),
        (make_pipeline(StandardScaler(), RandomForestClassifier(7)), 7),
        (FrozenEstimator(RandomForestClassifier(7)), 7),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_the_size_of_a_model_is_counted(model, size):
    model = FrozenEstimator(model.estimator.fit(X[TRAIN], Y[TRAIN])) if isinstance(model, FrozenEstimator) else model
    fitted_model = model.fit(X[TRAIN], Y[TRAIN])
    assert crossfit.work_of_an_answer(fitted_model, 13, 3) == 39 + size


def test_usual_models_keep_all_cases():
    for n_features, n_classes, size in ((13, 3, 100), (64, 10, 1000), (500, 2, 900)):
        assert crossfit.MOST_WORK // (12 * 100 * (n_features * n_classes + size)) >= crossfit.MOST_CASES


def test_a_number_of_folds_that_cannot_be_had_is_refused():
    with pytest.raises(InvalidInput, match=r"calibration=3 asks for so many folds .* cannot be fitted again"):
        fitted(function, calibration=3)
    with pytest.raises(InvalidInput, match=r"calibration=70 asks .* fewer than two classes with 70 rows"):
        fitted(calibration=70)
    with pytest.raises(InvalidInput, match=r"calibration=3 asks for folds .* X_unseen are other rows"):
        fitted(calibration=3, unseen=True)
    for wrong in (1, 0, -3, 2.5, True, "isotonic", [5]):
        with pytest.raises(InvalidInput, match='calibration must be "auto", None'):
            fitted(calibration=wrong)


def test_the_error_of_a_model_that_cannot_be_refitted_is_told():
    stubborn = KNeighborsClassifier(80).fit(X[TRAIN], Y[TRAIN])
    assert "n_neighbors = 80" in fitted(stubborn).choices_["settling"]["reason"]


def test_choices_are_json_and_follow_the_policy():
    found = fitted(adaptation="pooled")
    assert json.loads(json.dumps(found.choices_, allow_nan=False)) == found.choices_
    assert list(found.choices_) == ["policy", "answer", "pooling", "calibration", "settling"]
    assert found.choices_["settling"]["refits"] == 5
    assert found.choices_["policy"].items() >= {"name": "Greedy", "by": "default"}.items()
    assert found.choices_["policy"]["lookahead"]["pays"] is False
    other = found.with_policy("static")
    assert other.choices_["policy"] == {"name": "Static", "by": "given"}
    assert found.choices_["policy"]["name"] == "Greedy"


def test_a_width_that_is_refused():
    widths: list[Any] = [0, -1.0, "narrow", np.nan]
    for width in widths:
        with pytest.raises(InvalidInput, match='ConditionalPredictor: answer_bandwidth must be a number > 0, "auto"'):
            fitted(adaptation=ConditionalPredictor(None, answer_bandwidth=width))
