"""Fuzzy models of ex-fuzzy, trained for real and wrapped as they are."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from askwise import DynamicFeatureSelector
from askwise.errors import InvalidInput
from askwise.predict import RulePredictor

ex_fuzzy = pytest.importorskip("ex_fuzzy")

MODELS = {
    "FERL": lambda: ex_fuzzy.FERL(),
    "FuzzyRulesClassifier": lambda: ex_fuzzy.FuzzyRulesClassifier(),
    "BaseFuzzyRulesClassifier": lambda: ex_fuzzy.BaseFuzzyRulesClassifier(nRules=10, nAnts=2, n_gen=5, pop_size=12),
}
NO_PROBABILITIES = {
    "RuleMineClassifier": lambda: ex_fuzzy.RuleMineClassifier(nRules=6, n_gen=2, pop_size=8),
    "RuleFineTuneClassifier": lambda: ex_fuzzy.RuleFineTuneClassifier(nRules=6, n_gen=2, pop_size=8),
}


def iris(framed=True):
    X, y = load_iris(return_X_y=True, as_frame=True)
    X.columns = ["sepal length", "sepal width", "petal length", "petal width"]
    return X if framed else X.to_numpy(), y.to_numpy()


def trained(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y) or model


@pytest.fixture(scope="module", params=[(name, framed) for name in MODELS for framed in (True, False)], ids=str)
def case(request):
    name, framed = request.param
    X, y = iris(framed)
    model = trained(MODELS[name](), X, y)
    return model, RulePredictor(model).fit(X, y), X, y


def every_mask(d):
    return np.array(list(itertools.product([False, True], repeat=d)))


def test_complete_rows_have_the_models_own_answer(case):
    model, predictor, X, _ = case
    assert_array_equal(predictor.predict_proba(X), model.predict_proba(X))
    assert_array_equal(predictor.predict_full(X), model.predict_proba(X))


def test_every_subset_is_answered(case):
    _, predictor, X, y = case
    for mask in every_mask(4):
        proba = predictor.predict_proba(X, mask)
        assert_allclose(proba.sum(axis=1), 1)
        assert (proba >= 0).all()
    nothing = predictor.predict_proba(X, np.zeros(4, bool))
    assert_allclose(nothing, np.full((150, 3), 1 / 3))
    petals = predictor.predict(X, np.array([False, False, True, True]))
    assert (petals == y).mean() > 0.5  # a third by chance


def test_confidences_are_sums_of_memberships(case):
    """One rule of the predictor, counted again with the membership functions of the library."""
    _, predictor, X, y = case
    (reduced,), table = predictor._reduced, np.asarray(X, dtype=float)
    number = int(np.argmax([len(rule.conditions) for rule in predictor.rule_sets_[0].rules]))
    conditions = predictor.rule_sets_[0].rules[number].conditions
    column, term = next(iter(conditions.items()))
    degrees = np.prod([np.asarray(function(table[:, column])) for function in term.functions], axis=0)
    mask = np.arange(4) == column
    (found,) = reduced.reduce(mask[None])
    assert_allclose(found.counts[number], [degrees[y == c].sum() for c in range(3)], rtol=0, atol=1e-9)


def test_modifiers_of_a_rule_are_powers_of_its_memberships():
    X, y = iris(False)
    model = trained(MODELS["BaseFuzzyRulesClassifier"](), X, y)
    before = RulePredictor(model).fit(X, y)
    rules = [rule for base in model.rule_base.rule_bases for rule in base.rules]
    for rule in rules:
        rule.modifiers = np.where(np.arange(4) < 2, 2.0, -1.0)  # "very" for the first two columns
    after = RulePredictor(model).fit(X, y)
    table = np.ones(X.shape, bool)
    (plain,), (modified,) = before._reduced, after._reduced
    for j, expected in ((0, 2), (1, 2), (2, 1), (3, 1)):
        seen = table & (np.arange(4) == j)
        assert_allclose(modified.degrees(X, seen), plain.degrees(X, seen) ** expected, rtol=0, atol=1e-9)
    fired = np.hstack(
        [base.compute_rule_antecedent_memberships(X) for base in model.rule_base.rule_bases if base.rules]
    )
    assert_allclose(modified.degrees(X, table), fired, rtol=0, atol=1e-9)


def test_no_feature_that_could_change_the_answer_is_dropped(case):
    _, predictor, X, _ = case
    rows = np.asarray(X, dtype=float)[::30]
    cells = np.quantile(np.asarray(X, dtype=float), [0, 1], axis=0)
    n_dropped = 0
    for mask in every_mask(4):
        dropped = ~mask & ~predictor.candidates(rows, mask)
        n_dropped += dropped.sum()
        for known in every_mask(4):
            if not (mask <= known).all():
                continue
            before = predictor.predict_proba(rows, known)
            for j, cell in itertools.product(np.flatnonzero(~known), range(len(cells))):
                tried = rows.copy()
                tried[:, j] = cells[cell, j]
                after = predictor.predict_proba(tried, known | (np.arange(4) == j))
                assert_allclose(after[dropped[:, j]], before[dropped[:, j]], rtol=0, atol=1e-9)
    assert n_dropped > 0


def test_training_rows_with_missing_cells(case):
    model, _, X, y = case
    holes = np.asarray(X, dtype=float).copy()
    holes[::4, 2] = np.nan
    table = pd.DataFrame(holes, columns=X.columns) if isinstance(X, pd.DataFrame) else holes
    predictor = RulePredictor(model).fit(table, y)
    complete = ~np.isnan(holes).any(axis=1)
    rows = table[complete]
    assert_array_equal(predictor.predict_proba(rows), model.predict_proba(rows))
    assert_allclose(predictor.predict_proba(table).sum(axis=1), 1)


def test_rules_are_said_in_the_words_of_the_library(case):
    _, predictor, X, _ = case
    names = [column.name for column in predictor.schema_.columns]
    found = predictor.explain(X[:30], np.array([False, False, False, False]), most=100)
    words = {words for one in found for rule in one.possible for words in rule.open}
    assert words
    assert all(any(word.startswith(f"{name} is ") for name in names) for word in words)


def test_behind_a_scaler_variables_are_known_by_position():
    for name in MODELS:
        for framed in [True, False]:
            X, y = iris(framed)
            model = trained(make_pipeline(StandardScaler(), MODELS[name]()), X, y)
            predictor = RulePredictor(model).fit(X, y)
            assert_array_equal(predictor.predict_proba(X), model.predict_proba(X))
            asked = predictor.candidates(X, np.zeros(4, bool)).any(axis=0)
            used = {column for rule in predictor.rule_sets_[0].rules for column in rule.conditions}
            assert set(np.flatnonzero(asked)) == used


def test_behind_a_projection_everything_is_needed():
    X, y = iris(False)
    model = trained(make_pipeline(PCA(2), MODELS["FERL"]()), X, y)
    predictor = RulePredictor(model).fit(X, y)
    assert_array_equal(predictor.predict_proba(X), model.predict_proba(X))
    assert predictor.candidates(X, np.zeros(4, bool)).all()


def test_a_selector_from_end_to_end():
    for name in MODELS:
        X, y = iris()
        labels = np.array(["setosa", "versicolor", "virginica"])[y]
        model = trained(MODELS[name](), X, labels)
        selector = DynamicFeatureSelector(model, adaptation="rules", epistemic="distance", random_state=0).fit(
            X, labels
        )
        run = selector.acquire(X[::3], budget=2)
        assert (run.predict() == labels[::3]).mean() > 0.7
        session = selector.start(budget=2)
        while (suggestion := session.suggest()) is not None:
            session.answer(suggestion.feature, float(X[suggestion.feature].iloc[60]))
        report = session.report()
        assert report["spent"] <= 2
        assert report["rules"]["n_firing"] >= 0
        assert selector.explain(X[:1])[0].n_possible == 0


def test_classifiers_without_probabilities_are_refused_by_name():
    for name in NO_PROBABILITIES:
        X, y = iris(False)
        model = trained(NO_PROBABILITIES[name](), X, y)
        with pytest.raises(InvalidInput, match=f"{name} gives no probabilities"):
            RulePredictor(model).fit(X, y)


def test_soft_trees_without_words_are_refused_with_a_way_out():
    X, y = iris(False)
    model = trained(ex_fuzzy.DeepFERL(), X, y)
    with pytest.raises(InvalidInput, match=r'got DeepFERL\. Any model works with adaptation="conditional"'):
        RulePredictor(model).fit(X, y)


def test_rules_on_columns_that_are_not_there_are_refused():
    X, y = iris()
    model = trained(MODELS["BaseFuzzyRulesClassifier"](), X.to_numpy(), y)
    with pytest.raises(InvalidInput, match="The fuzzy rules refer to '0'; the columns of X are 'sepal length'"):
        RulePredictor(model).fit(X, y)
