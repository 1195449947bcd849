"""What every predictor promises, whichever model it wraps."""

import functools
import pickle
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tests.made import correlated_numbers, patients

from askwise.errors import InvalidInput
from askwise.predict import (
    ConditionalPredictor,
    ImputedPredictor,
    LocalPredictor,
    MaskTrainedPredictor,
    PooledPredictor,
    ReparametrizedPredictor,
    RulePredictor,
    SubsetPredictor,
    wrap,
)

PREDICTORS = {
    "mean": lambda model: ImputedPredictor(model, "mean"),
    "zero": lambda model: ImputedPredictor(model, "zero"),
    "marginal": lambda model: ImputedPredictor(model, "marginal", n_draws=10, random_state=0),
    "conditional": lambda model: ConditionalPredictor(model, n_neighbors=20, random_state=0),
    "pooled": lambda model: PooledPredictor(model, n_neighbors=20, random_state=0),
    "local": LocalPredictor,
    "output": lambda model: ReparametrizedPredictor(model, "output", epochs=3, random_state=0),
    "masked": lambda model: MaskTrainedPredictor(model, epochs=3, width=8, random_state=0),
}
WRAPPING_ONLY = ["mean", "zero", "marginal", "conditional", "pooled"]  # equal to the model on complete rows


def numeric_data():
    return correlated_numbers(90, 4, [-0.5, 0.7])


def holed_data():
    X, y = numeric_data()
    X[np.random.default_rng(1).random(X.shape) < 0.15] = np.nan
    return X, y


def mixed_data():
    return patients(90, 0)


def pipeline(classifier=None):
    """Encoders, imputer and all; it picks columns by type, so that it can be trained on any subset of them."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    return make_pipeline(
        ColumnTransformer(
            [
                ("numbers", numbers, make_column_selector(dtype_include="number")),
                ("others", OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
            ]
        ),
        LogisticRegression() if classifier is None else classifier,
    )


def forest():
    return RandomForestClassifier(n_estimators=8, random_state=0)


def boosting():
    return HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5, random_state=0)


MODELS: dict[str, tuple[Any, Any]] = {
    "logistic regression": (LogisticRegression, numeric_data),
    "pipeline": (pipeline, mixed_data),
    "gradient boosting": (boosting, holed_data),
}
MODELS_WITH_RULES: dict[str, tuple[Any, Any]] = {
    "forest": (forest, numeric_data),
    "forest in a pipeline": (lambda: pipeline(forest()), mixed_data),
    "forest and holes": (forest, holed_data),
}
WITH_RULES = [("rules", model) for model in MODELS_WITH_RULES]


class Case:
    """One fitted model and one predictor fitted around it."""

    def __init__(self, predictor: str, model: str) -> None:
        make_model, make_data = {**MODELS, **MODELS_WITH_RULES}[model]
        self.X, self.y = make_data()
        self.model = make_model().fit(self.X, self.y)
        self.answers_before = self.model.predict_proba(self.X)
        self.bytes_before = pickle.dumps(self.model)
        self.hash_before = joblib.hash(self.model)
        self.make = RulePredictor if predictor == "rules" else PREDICTORS[predictor]
        self.predictor: SubsetPredictor = self.make(self.model).fit(self.X, self.y)
        n, d = np.shape(self.X)
        rng = np.random.default_rng(5)
        # A few subsets, so that a model per subset is trained a few times only.
        subsets = np.vstack([np.zeros(d, bool), np.ones(d, bool), rng.random((4, d)) < 0.5])
        self.mask = subsets[rng.integers(len(subsets), size=n)]
        self.mask[: len(subsets)] = subsets

    def rows(self, picked):
        return self.X.iloc[picked] if isinstance(self.X, pd.DataFrame) else self.X[picked]

    @property
    def complete(self):
        return np.flatnonzero(~pd.DataFrame(self.X).isna().to_numpy().any(axis=1))


EVERY_CASE = [(p, m) for m in MODELS for p in PREDICTORS] + WITH_RULES
WRAPPING_CASES = [(p, m) for m in MODELS for p in WRAPPING_ONLY] + WITH_RULES


def for_each(pairs: list[tuple[str, str]]) -> Callable[[Callable[[Any], None]], Callable[[], None]]:
    """One test that makes the same check of several cases; a failure names its case."""

    def decorate(check: Callable[[Any], None]) -> Callable[[], None]:
        def test() -> None:
            for pair in pairs:
                try:
                    check(fitted_case(*pair))
                except Exception as error:
                    error.add_note(" around ".join(pair))
                    raise

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return decorate


fitted_case = functools.cache(Case)


@for_each(EVERY_CASE)
def test_rows_are_distributions_on_every_subset(case):
    proba = case.predictor.predict_proba(case.X, case.mask)
    assert proba.shape == (len(case.y), len(case.predictor.classes_))
    assert_allclose(proba.sum(axis=1), 1, atol=1e-9)
    assert (proba >= 0).all()


@for_each(EVERY_CASE)
def test_classes_are_those_of_the_model(case):
    assert_array_equal(case.predictor.classes_, case.model.classes_)


@for_each(EVERY_CASE)
def test_the_empty_and_the_full_subset_are_answered(case):
    d = np.shape(case.X)[1]
    empty = case.predictor.predict_proba(case.X, np.zeros(d, bool))
    assert_array_equal(empty, np.tile(empty[0], (len(empty), 1)))  # all rows look alike
    full = case.predictor.predict_proba(case.X, np.ones(d, bool))
    assert_array_equal(full, case.predictor.predict_proba(case.X))
    assert len(np.unique(full, axis=0)) > 10


@for_each(EVERY_CASE)
def test_answers_use_what_is_observed(case):
    d = np.shape(case.X)[1]
    first = np.zeros(d, bool)
    first[0] = True
    rows = case.complete
    proba = case.predictor.predict_proba(case.rows(rows), first)
    assert len(np.unique(proba.round(9), axis=0)) > 5


def filled(X, mask, filler):
    """`X` with other values in the cells that `mask` hides."""
    if not isinstance(X, pd.DataFrame):
        return np.where(mask, X, filler)
    other = X.copy()
    for j, name in enumerate(other.columns):
        filling = filler
        if other[name].dtype == bool or (filler == 1e6 and not pd.api.types.is_numeric_dtype(other[name].dtype)):
            filling = other[name].iloc[::-1].to_numpy()  # another value of the same kind
        elif np.isnan(filler) and pd.api.types.is_integer_dtype(other[name].dtype):
            other[name] = other[name].astype(float)
        other[name] = other[name].where(mask[:, j], filling)
    assert not other.equals(X)
    return other


@for_each(EVERY_CASE)
def test_hidden_cells_do_not_matter(case):
    expected = case.predictor.predict_proba(case.X, case.mask)
    for filler in (1e6, np.nan):
        found = case.predictor.predict_proba(filled(case.X, case.mask, filler), case.mask)
        assert_array_equal(found, expected, err_msg=f"filled with {filler}")


@for_each(EVERY_CASE)
def test_the_mask_and_missing_cells_say_the_same(case):
    """Hidden by the mask or missing in the table: one answer."""
    missing = case.X.where(case.mask) if isinstance(case.X, pd.DataFrame) else np.where(case.mask, case.X, np.nan)
    assert_array_equal(case.predictor.predict_proba(missing), case.predictor.predict_proba(case.X, case.mask))


@for_each(EVERY_CASE)
def test_a_row_has_its_own_answer_whoever_stands_beside_it(case):
    together = case.predictor.predict_proba(case.X, case.mask)
    order = np.random.default_rng(2).permutation(len(case.y))
    shuffled = case.predictor.predict_proba(case.rows(order), case.mask[order])
    assert_allclose(shuffled, together[order], rtol=0, atol=1e-9)
    assert_array_equal(shuffled.argmax(axis=1), together[order].argmax(axis=1))
    for r in range(8):
        alone = case.predictor.predict_proba(case.rows([r]), case.mask[[r]])
        assert_allclose(alone[0], together[r], rtol=0, atol=1e-9)
        assert alone[0].argmax() == together[r].argmax()


@for_each(EVERY_CASE)
def test_no_rows_no_answers(case):
    if isinstance(case.X, pd.DataFrame):
        assert case.predictor.predict_proba(case.X[:0]).shape == (0, len(case.predictor.classes_))
    else:
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            case.predictor.predict_proba(case.X[:0])


@for_each(EVERY_CASE)
def test_the_input_is_not_changed(case):
    X, mask = case.X.copy(), case.mask.copy()
    case.predictor.predict_proba(X, mask)
    case.predictor.predict_full(X)
    case.predictor.candidates(X, mask)
    clone(case.predictor).fit(X, case.y)
    assert_array_equal(mask, case.mask)
    if isinstance(X, pd.DataFrame):
        assert_frame_equal(X, case.X)
    else:
        assert_array_equal(X, case.X)


@for_each(EVERY_CASE)
def test_same_seed_same_numbers(case):
    again = case.make(case.model).fit(case.X, case.y)
    assert_array_equal(again.predict_proba(case.X, case.mask), case.predictor.predict_proba(case.X, case.mask))


@for_each(EVERY_CASE)
def test_asking_twice_gives_the_same_numbers(case):
    first = case.predictor.predict_proba(case.X, case.mask)
    assert_array_equal(case.predictor.predict_proba(case.X, case.mask), first)


@for_each(EVERY_CASE)
def test_a_clone_is_unfitted_and_has_the_same_parameters(case):
    copy = clone(case.predictor)
    assert {k: v for k, v in copy.get_params(deep=False).items() if k != "estimator"} == {
        k: v for k, v in case.predictor.get_params(deep=False).items() if k != "estimator"
    }
    with pytest.raises(NotFittedError):
        copy.predict_proba(case.X)
    copy.fit(case.X, case.y)  # trains its own clone of the model
    assert_allclose(copy.predict_proba(case.X, case.mask).sum(axis=1), 1)


@for_each(EVERY_CASE)
def test_the_wrapped_model_is_used_as_it_is_and_stays_as_it_was(case):
    assert case.predictor.estimator_ is case.model
    case.predictor.predict_proba(case.X, case.mask)
    case.predictor.predict_full(case.X)
    assert pickle.dumps(case.model) == case.bytes_before
    assert joblib.hash(case.model) == case.hash_before
    assert_array_equal(case.model.predict_proba(case.X), case.answers_before)


@for_each(EVERY_CASE)
def test_predictions_are_the_most_probable_classes(case):
    proba = case.predictor.predict_proba(case.X, case.mask)
    assert_array_equal(case.predictor.predict(case.X, case.mask), case.model.classes_[proba.argmax(axis=1)])


@for_each(EVERY_CASE)
def test_every_column_that_is_not_observed_is_a_candidate(case):
    observed = case.mask & ~pd.DataFrame(case.X).isna().to_numpy()
    candidates = case.predictor.candidates(case.X, case.mask)
    if isinstance(case.predictor, RulePredictor):  # it knows which of them cannot matter any more
        assert (candidates <= ~observed).all()
        assert candidates.any()
    else:
        assert_array_equal(candidates, ~observed)


@for_each(EVERY_CASE)
def test_the_full_prediction_is_the_models_own_on_complete_rows(case):
    rows = case.rows(case.complete)
    assert_array_equal(case.predictor.predict_full(rows), case.model.predict_proba(rows))


@for_each(EVERY_CASE)
def test_the_global_random_state_is_left_alone(case):
    before = joblib.hash(np.random.get_state())  # noqa: NPY002 - the very thing that must not be used
    case.make(case.model).fit(case.X, case.y).predict_proba(case.X, case.mask)
    assert joblib.hash(np.random.get_state()) == before  # noqa: NPY002


@for_each(EVERY_CASE)
def test_masks_that_are_refused(case):
    refused: list[tuple[Any, str]] = [
        (np.zeros((1, 1), bool), "mask must have shape"),
        (np.zeros(3, bool), "mask must have shape"),
        (np.zeros((90, 4), int), "mask must be boolean"),
        ("all", "mask must be boolean"),
    ]
    for mask, message in refused:
        with pytest.raises(InvalidInput, match=message):
            case.predictor.predict_proba(case.X, mask)


def test_unfitted_predictors_say_so():
    X, y = numeric_data()
    for make in PREDICTORS.values():
        unfitted = make(LogisticRegression().fit(X, y))
        for ask in (unfitted.predict_proba, unfitted.predict, unfitted.predict_full, unfitted.candidates):
            with pytest.raises(NotFittedError):
                ask(X)


@for_each(WRAPPING_CASES)
def test_on_the_full_mask_the_answer_is_the_models_own(case):
    rows = case.rows(case.complete)
    mask = np.ones(np.shape(rows), dtype=bool)
    rounding = 1e-12 if isinstance(case.predictor, RulePredictor) else 0  # a forest adds up its trees in another order
    assert_allclose(case.predictor.predict_proba(rows, mask), case.model.predict_proba(rows), rtol=0, atol=rounding)


def test_a_reparametrized_model_with_zero_epochs_is_the_imputed_one():
    X, y = numeric_data()
    mask = np.random.default_rng(0).random(X.shape) < 0.5
    model = LogisticRegression().fit(X, y)
    untrained = ReparametrizedPredictor(model, "output", epochs=0, random_state=0).fit(X, y)
    imputed = ImputedPredictor(model, "mean").fit(X, y)
    assert_allclose(untrained.predict_proba(X, mask), imputed.predict_proba(X, mask), rtol=0, atol=1e-9)


@for_each(WRAPPING_CASES)
def test_complete_rows_among_incomplete_ones_have_the_models_own_answer(case):
    mask = case.mask.copy()
    mask[case.complete[::2]] = True
    proba = case.predictor.predict_proba(case.X, mask)
    expected = case.model.predict_proba(case.rows(case.complete[::2]))
    assert_allclose(proba[case.complete[::2]], expected, rtol=0, atol=1e-12)


def test_where_the_model_takes_missing_cells_the_full_prediction_is_its_own():
    for make_model, make_data in ((boosting, holed_data), (pipeline, mixed_data)):
        X, y = make_data()
        model = make_model().fit(X, y)
        for name, make in PREDICTORS.items():
            assert_array_equal(make(model).fit(X, y).predict_full(X), model.predict_proba(X), err_msg=name)


def test_missing_cells_in_other_columns_than_in_training_are_the_models_business_too():
    X, y = numeric_data()
    holes, later = X.copy(), X.copy()
    holes[::7, 0] = np.nan
    later[::5, 1] = np.nan
    model = boosting().fit(holes, y)
    for name, make in PREDICTORS.items():
        assert_array_equal(make(model).fit(holes, y).predict_full(later), model.predict_proba(later), err_msg=name)


@pytest.mark.parametrize("holes_in_training", [False, True])
def test_a_model_that_takes_missing_cells_in_one_column_only(holes_in_training):
    """The imputed column may be missing in the full prediction, the other one is completed."""
    X, y = numeric_data()
    table = pd.DataFrame(X, columns=list("abcd"))
    model = make_pipeline(
        ColumnTransformer([("imputed", SimpleImputer(), ["a"])], remainder="passthrough"), LogisticRegression()
    ).fit(table, y)
    holes = table.copy()
    if holes_in_training:
        holes.loc[::6, "a"] = np.nan
        holes.loc[::5, "b"] = np.nan
    fitted = ConditionalPredictor(model, n_neighbors=20, random_state=0).fit(holes, y)
    lacks_a = table.assign(a=np.nan)
    assert_array_equal(fitted.predict_full(lacks_a), model.predict_proba(lacks_a))
    lacks_b = table.assign(b=np.nan)
    assert_array_equal(fitted.predict_full(lacks_b), fitted.predict_proba(lacks_b))


def test_where_the_model_refuses_missing_cells_the_full_prediction_is_from_all_that_is_there():
    X, y = numeric_data()
    model = LogisticRegression().fit(X, y)
    holes = holed_data()[0]
    complete = ~np.isnan(holes).any(axis=1)
    for name, make in PREDICTORS.items():
        fitted = make(model).fit(holes, y)
        full = fitted.predict_full(holes)
        assert_allclose(full.sum(axis=1), 1, err_msg=name)
        assert_array_equal(full[complete], model.predict_proba(holes[complete]), err_msg=name)
        assert_allclose(full[~complete], fitted.predict_proba(holes)[~complete], rtol=0, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("predictor", ["mean", "marginal", "conditional", "pooled"])
def test_a_model_that_refuses_missing_cells_never_gets_one(predictor):
    X, y = numeric_data()
    holes = holed_data()[0]
    model = LogisticRegression().fit(X, y)

    class Watching(LogisticRegression):
        def predict_proba(self, X):
            assert not np.isnan(X).any()
            return super().predict_proba(X)

    watching = Watching().fit(X, y)
    fitted = PREDICTORS[predictor](watching).fit(holes, y)
    mask = np.random.default_rng(0).random(X.shape) < 0.5
    expected = PREDICTORS[predictor](model).fit(holes, y).predict_proba(holes, mask)
    assert_allclose(fitted.predict_proba(holes, mask), expected, rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("default")  # as for a user: a warning must not stand in for the model's refusal
def test_arrays_of_whole_numbers():
    """Hidden cells are filled with means and averages, not with means rounded to the type of the table."""
    X = np.random.default_rng(0).integers(0, 3, size=(90, 3))
    y = (X[:, 0] + X[:, 1] > 2).astype(int)
    mask = np.random.default_rng(1).random(X.shape) < 0.5
    for name, make in PREDICTORS.items():
        whole = make(LogisticRegression()).fit(X, y)
        real = make(LogisticRegression()).fit(X.astype(float), y).predict_proba(X.astype(float), mask)
        assert not whole.takes_missing_.any(), name
        assert_allclose(whole.predict_proba(X, mask), real, rtol=0, atol=1e-6, err_msg=name)


def test_a_category_never_seen_is_the_models_business_and_leaves_no_trace():
    """800 of them in several batches: passed on by value, and the same answers and columns afterwards."""
    X, y = mixed_data()
    model = pipeline().fit(X, y)
    rows = X.iloc[np.flatnonzero(X.notna().all(axis=1))]
    batches = [pd.concat([rows] * 4)[:200].assign(city=[f"{b}-{i}" for i in range(200)]) for b in range(4)]
    for name in WRAPPING_ONLY:
        fitted = PREDICTORS[name](model).fit(X, y)
        before, columns = fitted.predict_proba(X), joblib.hash(fitted.schema_)
        for batch in batches:
            assert_array_equal(fitted.predict_proba(batch), model.predict_proba(batch), err_msg=name)
        assert_array_equal(fitted.predict_proba(X), before, err_msg=name)
        assert joblib.hash(fitted.schema_) == columns, name


def test_an_unseen_category_is_passed_on_by_value():
    X, y = mixed_data()
    seen: set[str] = set()

    def model(table):
        seen.update(table["city"].dropna())
        return np.full((len(table), 2), 0.5)

    for name in WRAPPING_ONLY:
        fitted = PREDICTORS[name](wrap(model, [0, 1])).fit(X, y)
        seen.clear()
        fitted.predict_proba(X[:3].assign(city="Liège"), np.array([False, True, True, False, True]))
        assert seen == {"Liège"}, name


def test_an_array_for_a_table_with_categories_is_refused():
    X, y = mixed_data()
    codes = np.zeros((2, 5))
    for name, make in PREDICTORS.items():
        fitted = make(pipeline()).fit(X, y)
        for ask in (fitted.predict_proba, fitted.predict, fitted.predict_full, fitted.candidates, fitted.explain):
            with pytest.raises(InvalidInput, match=r"must be a DataFrame.*categories; got an array"):
                ask(codes)
        assert fitted.predict_proba(X[:2]).shape == (2, 2), name


def spelled(table):
    """A model that looks at the very cells: numbers that are spelled as in training are surer."""
    kept = [all(str(cell) == str(int(cell)) for cell in row) for row in table.astype(object).to_numpy().tolist()]
    sure = np.where(kept, 0.9, 0.5)
    return np.column_stack([1 - sure, sure])


def single_precision(table):
    """A model that is surer in single precision."""
    sure = np.full(len(table), 0.9 if (table.dtypes == np.float32).all() else 0.5)
    return np.column_stack([1 - sure, sure])


def test_a_row_does_not_depend_on_its_batch_through_types():
    """One row whose cells the types of the training table cannot hold must not change how others are asked about."""
    rng = np.random.default_rng(0)
    counts = pd.DataFrame(rng.integers(0, 9, (60, 3)), columns=list("abc"))
    small = pd.DataFrame(rng.normal(size=(60, 3)).astype("float32"), columns=list("abc"))
    nullable = counts.astype("Int64")
    y = (counts["a"] > 4).astype(int).to_numpy()
    mask = rng.random((60, 3)) < 0.6
    cases = {
        "counts": (wrap(spelled, [0, 1]), counts),
        "nullable counts": (wrap(spelled, [0, 1]), nullable),
        "single precision": (wrap(single_precision, [0, 1]), small),
    }
    for case, (model, X) in cases.items():
        later = X.astype(float) + 0.1 * (np.arange(60) % 2)[:, None]  # every second row does not fit
        for name in WRAPPING_ONLY:
            fitted = PREDICTORS[name](model).fit(X, y)
            for table in (X, later):
                together = fitted.predict_proba(table, mask)
                alone = np.vstack([fitted.predict_proba(table.iloc[[r]], mask[[r]]) for r in range(12)])
                assert_allclose(together[:12], alone, rtol=0, atol=1e-12, err_msg=f"{case}, {name}")
        assert fitted.predict_proba(later)[:, 1].tolist() == [0.9, 0.5] * 30, case


def test_masked_arrays_hide_what_they_mask():
    X, y = numeric_data()
    hidden = np.random.default_rng(0).random(X.shape) < 0.2
    holes = np.where(hidden, np.nan, X)
    masked = np.ma.MaskedArray(np.where(hidden, 1e6, X), mask=hidden)
    for name, make in PREDICTORS.items():
        by_nan = make(boosting()).fit(holes, y)
        by_mask = make(boosting()).fit(masked, y)
        assert_array_equal(by_mask.predict_proba(masked), by_nan.predict_proba(holes), err_msg=name)


@for_each([("mean", "logistic regression"), ("conditional", "logistic regression"), ("pooled", "pipeline")])
def test_with_other_rows_what_is_stored_of_them_is_theirs(case):
    half = case.rows(np.arange(0, len(case.y), 2))
    fresh = case.make(case.model).fit(half, case.y[::2])
    encoded, codes = fresh.training_rows_, fresh.training_labels_
    found = case.predictor.with_rows(encoded, codes).predict_proba(case.X, case.mask)
    if case.predictor.stores_rows:
        assert np.abs(found - case.predictor.predict_proba(case.X, case.mask)).max() > 1e-3
        assert_allclose(found, fresh.predict_proba(case.X, case.mask), atol=1e-9)
    else:
        assert_array_equal(found, case.predictor.predict_proba(case.X, case.mask))
