"""Members stand in for clones fitted without the rows that they have not seen."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler, TargetEncoder

from askwise import DynamicFeatureSelector
from askwise.calibrate.crossfit import out_of_bag
from askwise.epistemic import AuxiliaryEnsemble
from askwise.model.parts import reads_no_labels
from askwise.predict import ImputedPredictor

X, Y = load_wine(return_X_y=True)
X, Y = X[::2], Y[::2]


def ensemble(model, **options):
    return AuxiliaryEnsemble(random_state=0, **options).fit(ImputedPredictor(model.fit(X, Y)).fit(X, Y))


def settled(model, **options):
    found = DynamicFeatureSelector(model.fit(X, Y), random_state=0, **options).fit(X, Y)
    return found.choices_["settling"]


def test_what_a_member_was_trained_on_is_known():
    found = ensemble(KNeighborsClassifier(1))
    assert found.trained_on_.shape == (5, len(X))
    for k, member in enumerate(found.estimators_):
        left_out = np.flatnonzero(~found.trained_on_[k])
        assert 0.2 < len(left_out) / len(X) < 0.5
        assert_array_equal(np.unique(member._fit_X, axis=0), np.unique(X[found.trained_on_[k]], axis=0))
        assert found.member_without(left_out) is member
    assert found.member_without(np.arange(len(X))) is None


def test_of_other_rows_nothing_is_known():
    found, predictor = ensemble(GaussianNB()), ImputedPredictor(GaussianNB().fit(X, Y)).fit(X, Y)
    other = found.with_rows_of(predictor)
    assert other.trained_on_ is None
    assert other.member_without(np.array([0])) is None
    assert found.trained_on_ is not None


def test_given_members_and_reseeded_ones_leave_nothing_out():
    given = ensemble(GaussianNB(), estimators=[GaussianNB().fit(X, Y)])
    assert given.trained_on_ is None
    assert given.member_without(np.array([0])) is None
    assert ensemble(RandomForestClassifier(5), resample="reseed").trained_on_ is None


def test_rows_are_shared_out_evenly_among_the_members_that_have_not_seen_them():
    trained_on = ensemble(GaussianNB()).trained_on_
    part = out_of_bag(X, Y, trained_on, random_state=0)
    assert part is not None
    held = np.bincount(part[part >= 0], minlength=5)
    assert held.min() >= 0.8 * held.max()
    at = np.flatnonzero(part >= 0)
    assert not trained_on[part[at], at].any()
    assert trained_on[:, part < 0].all()


def test_rows_of_rare_classes_stay_with_every_model_and_few_rows_are_not_shared_out():
    trained_on = ensemble(GaussianNB()).trained_on_
    rare = np.where(np.arange(len(Y)) < 3, 9, Y)
    part = out_of_bag(X, np.unique(rare, return_inverse=True)[1], trained_on, random_state=0)
    assert part is not None
    assert (part[:3] == -1).all()
    assert out_of_bag(X, Y, np.ones_like(trained_on), random_state=0) is None
    few = np.where(np.arange(len(Y)) < 3, 1, 0)  # one class alone is frequent
    assert out_of_bag(X, few, trained_on, random_state=0) is None


@pytest.mark.parametrize(("options", "refits"), [({}, 0), ({"calibration": 3}, 3), ({"epistemic": None}, 5)])
def test_members_spare_the_clones_of_folds(options, refits):
    found = settled(RandomForestClassifier(5, random_state=0), **options)
    assert found["refits"] == refits
    assert found["folds"] == (refits or 5)


def test_sample_weights_and_preparations_that_read_labels_need_clones():
    model = RandomForestClassifier(5, random_state=0)
    weighted = DynamicFeatureSelector(model, random_state=0).fit(X, Y, sample_weight=np.ones(len(Y)))
    assert weighted.choices_["settling"]["refits"] == 5
    assert settled(make_pipeline(StandardScaler(), model))["refits"] == 0
    nested = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), [0, 1]), remainder="passthrough"
    )
    assert settled(make_pipeline(nested, model))["refits"] == 0
    assert settled(make_pipeline(SelectKBest(k=5), model))["refits"] == 5
    assert not reads_no_labels(make_pipeline(StandardScaler(), TargetEncoder()))


class Peeking(BaseEstimator):
    """A preparation that knows the label of each row that it was fitted on, without a method `fit`."""

    def fit_transform(self, X, y=None):
        self.labels_ = {
            row.tobytes(): float(label) for row, label in zip(np.ascontiguousarray(X, float), y, strict=True)
        }
        return self.transform(X)

    def transform(self, X):
        return np.array([[self.labels_.get(row.tobytes(), 0.5)] for row in np.ascontiguousarray(X, float)])


def test_a_preparation_without_fit_may_read_labels():
    peeking = make_column_transformer((Peeking(), [0, 1]))
    assert settled(make_pipeline(peeking, GaussianNB()))["refits"] == 5


def test_rows_with_nothing_to_buy_do_no_harm():
    cells, y = np.array([[np.nan]] * 15 + [[0.0], [1.0]] * 5), np.arange(25) % 2
    model = make_pipeline(SimpleImputer(), GaussianNB())
    for epistemic in ("auto", None):
        found = DynamicFeatureSelector(model, epistemic=epistemic, random_state=0).fit(cells, y)
        assert np.isfinite(found.predict_proba(cells)).all()


def test_a_handful_of_unseen_rows_calibrates_nothing():
    names = pd.DataFrame({"n": np.arange(20.0) % 7, "id": [None, *(f"v{i}" for i in range(1, 20))]})
    encode = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    prepare = make_column_transformer((encode, ["id"]), remainder="passthrough", sparse_threshold=0)
    model = make_pipeline(prepare, GaussianNB())
    found = DynamicFeatureSelector(model, random_state=0).fit(names, np.arange(20) % 2)
    assert found.calibration_ is None
    assert "5 rows cannot be left out" in found.choices_["settling"]["reason"]
