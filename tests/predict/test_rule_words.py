"""Rules behind a Pipeline: what depends on what, conditions in the words of the table, explanations that add up."""

import functools
import json
import time
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier

from askwise import DynamicFeatureSelector
from askwise.errors import InvalidInput
from askwise.predict import ConditionalPredictor, RulePredictor
from askwise.predict.rules.explanation import ExplainedRule
from askwise.trees import FuzzyTreeClassifier
from askwise.trees.rule_list import RuleListClassifier


def tree():
    return DecisionTreeClassifier(max_depth=4, random_state=0)


def wine(n=160, seed=0):
    """Numbers, counts, text, booleans and a category."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "alcohol": rng.normal(12.8, 1.0, n).round(2),
            "bottles": rng.integers(0, 6, n),
            "city": rng.choice(["Ghent", "Lille", "Namur", "Tours"], n),
            "dry": rng.random(n) < 0.5,
            "body": pd.Categorical(rng.choice(["light", "full"], n), ["light", "full"]),
        }
    )
    good = (table["alcohol"] > 12.8) ^ table["city"].isin(["Ghent", "Lille"]) ^ (table["bottles"] > 3)
    return table, np.where(good, "good", "poor")


def mixed_pipeline(final=None):
    """Imputer and scaler for numbers, one-hot for the rest."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    return make_pipeline(
        ColumnTransformer(
            [
                ("numbers", numbers, ["alcohol", "bottles"]),
                ("others", OneHotEncoder(handle_unknown="ignore"), ["city", "dry", "body"]),
            ]
        ),
        tree() if final is None else final,
    )


@functools.cache
def wine_predictor():
    X, y = wine()
    return RulePredictor(mixed_pipeline().fit(X, y)).fit(X, y)


@functools.cache
def wine_selector():
    options: dict[str, Any] = {"adaptation": "rules", "epistemic": None, "random_state": 0}
    return DynamicFeatureSelector(mixed_pipeline(), **options).fit(*wine())


def said(predictor, X, mask=None):
    """All conditions in the explanations of all rows."""
    found = predictor.explain(X, mask, most=10_000)
    firing = {words for one in found for rule in one.firing for words in rule.conditions}
    return firing | {words for one in found for rule in one.possible for words in (*rule.conditions, *rule.open)}


def answered_by_hand(model, X, y, row, mask, depends):
    """p(y | x_S) of a Pipeline that ends in a tree, counted on its transformed rows; `depends` are sets of columns."""
    Z = np.asarray(model[:-1].transform(X), dtype=np.float32)
    z = np.asarray(model[:-1].transform(row), dtype=np.float32)[0]
    seen = np.array([columns <= set(np.flatnonzero(mask)) for columns in depends])
    grown = model[-1].tree_
    mass, settled, own = np.zeros(len(model.classes_)), True, None
    waiting = [(0, np.ones(len(Z), bool), False, True)]  # node, rows that satisfy it, any condition seen, all seen
    while waiting:
        node, rows, kept, whole = waiting.pop()
        k = grown.feature[node]
        if k < 0:
            counts = np.array([(y[rows] == label).sum() for label in model.classes_])
            if whole:
                own = grown.value[node, 0]
                mass += own * max(counts.sum(), 1)
            else:
                settled = False
                mass += counts * kept
            continue
        for child, holds in (
            (grown.children_left[node], lambda cells, node=node: cells <= grown.threshold[node]),
            (grown.children_right[node], lambda cells, node=node: cells > grown.threshold[node]),
        ):
            if not seen[k]:
                waiting.append((child, rows, kept, False))
            elif holds(z[k]):
                waiting.append((child, rows & holds(Z[:, k]), True, whole))
    if settled:
        return own
    return mass / mass.sum() if mass.sum() > 0 else np.array([(y == label).mean() for label in model.classes_])


def test_a_pipeline_of_scaler_imputer_and_one_hot_answers_as_counted_by_hand():
    X, y = wine()
    predictor = wine_predictor()
    model = predictor.estimator_
    assert_array_equal(predictor.predict_proba(X), model.predict_proba(X))
    depends = [{0}, {1}, *[{2}] * 4, *[{3}] * 2, *[{4}] * 2]
    found = [set(np.flatnonzero(column)) for column in predictor._inputs.depends.T]
    assert found == depends
    rng = np.random.default_rng(0)
    for r in range(8):
        mask = rng.random(5) < 0.5
        expected = answered_by_hand(model, X, y, X.iloc[[r]], mask, depends)
        assert_allclose(predictor.predict_proba(X.iloc[[r]], mask)[0], expected, rtol=0, atol=1e-12)


def test_training_rows_with_missing_cells_behind_an_imputer():
    """A missing cell satisfies no condition, whatever the imputer would put there."""
    X, y = wine()
    holes = X.copy()
    holes.loc[::3, "alcohol"] = np.nan
    holes.loc[1::4, "city"] = np.nan
    model = mixed_pipeline().fit(holes, y)
    predictor = RulePredictor(model).fit(holes, y)
    complete = holes.notna().all(axis=1).to_numpy()
    assert_allclose(predictor.predict_proba(holes[complete]), model.predict_proba(holes[complete]), atol=1e-12)
    only = np.array([True, False, False, False, False])
    without = RulePredictor(model).fit(holes[holes["alcohol"].notna()], y[holes["alcohol"].notna()])
    known = holes["alcohol"].notna().to_numpy()
    # Both count the same rows for conditions on alcohol alone.
    assert_allclose(
        predictor.predict_proba(holes[known], only), without.predict_proba(holes[known], only), rtol=0, atol=1e-12
    )


def test_categories_by_ordinal_code():
    X, y = wine()
    encode = make_column_transformer(
        (OrdinalEncoder(), ["city", "dry", "body"]), remainder="passthrough", verbose_feature_names_out=False
    )
    model = make_pipeline(encode, tree()).fit(X, y)
    predictor = RulePredictor(model).fit(X, y)
    assert_array_equal(predictor.predict_proba(X), model.predict_proba(X))
    words = said(predictor, X)
    assert "city is Ghent or Lille" in words
    assert "city is Namur or Tours" in words


def test_a_whole_number_that_is_one_hot_encoded_is_never_given_a_mean():
    X, y = wine()
    encode = make_column_transformer((OneHotEncoder(), ["bottles", "city"]), remainder="drop")
    model = make_pipeline(encode, tree()).fit(X, y)
    predictor = RulePredictor(model).fit(X, y)
    assert_array_equal(predictor.predict_proba(X), model.predict_proba(X))
    mask = np.array([True, False, True, True, True])
    assert_allclose(predictor.predict_proba(X, mask).sum(axis=1), 1)
    assert predictor.candidates(X, mask)[:, 1].any()
    assert not predictor.candidates(X, np.zeros(5, bool))[:, [0, 3, 4]].any()  # the encoder drops them


def test_pca_needs_every_column_and_still_answers():
    X = np.random.default_rng(0).normal(size=(80, 3))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    model = make_pipeline(PCA(2), tree()).fit(X, y)
    predictor = RulePredictor(model).fit(X, y)
    assert predictor._inputs.depends.all()
    assert_array_equal(predictor.predict_proba(X), model.predict_proba(X))
    prior = np.bincount(y) / 80
    for mask in ([True, True, False], [False, False, False]):
        assert_allclose(predictor.predict_proba(X, np.array(mask)), np.tile(prior, (80, 1)))
        assert_array_equal(predictor.candidates(X, np.array(mask)), np.tile(~np.array(mask), (80, 1)))
    assert any(words.startswith("pca") for words in said(predictor, X))


def test_products_of_columns_are_observed_when_both_are():
    X = np.random.default_rng(1).normal(size=(90, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = make_pipeline(PolynomialFeatures(interaction_only=True, include_bias=False), tree()).fit(X, y)
    predictor = RulePredictor(model).fit(X, y)
    products = {"x0 x1": {0, 1}, "x0 x2": {0, 2}, "x1 x2": {1, 2}}
    names = model[:-1].get_feature_names_out()
    for k, name in enumerate(names):
        assert set(np.flatnonzero(predictor._inputs.depends[:, k])) == products.get(name, {k})
    assert any(words.startswith("x0 x1 ") for words in said(predictor, X))


def test_a_column_that_is_constant_in_the_rows_of_fit_is_still_hidden_when_it_is_not_observed():
    """The model was trained on rows where it varied: its rules ask for it, and it can still change the answer."""
    X, y = wine(300)
    model = mixed_pipeline().fit(X, y)
    some = X["city"] == "Ghent"
    rows = X[some].assign(alcohol=12.0)
    predictor = RulePredictor(model).fit(rows, y[some])
    plain = RulePredictor(model).fit(X, y)
    mask = np.array([False, True, False, True, True])
    assert predictor.candidates(X, mask)[:, [0, 2]].any(axis=0).all()
    assert_array_equal(predictor.candidates(X, mask), plain.candidates(X, mask))
    assert_array_equal(predictor.predict_proba(X), model.predict_proba(X))


def test_a_category_that_is_rare_in_a_large_table_depends_on_its_column_too():
    rng = np.random.default_rng(0)
    n = 5000
    X = pd.DataFrame({"x": rng.normal(size=n), "city": rng.choice(["Ghent", "Lille"], n)})
    X.loc[n - 3 :, "city"] = "Arlon"
    y = ((X["x"] > 0) | (X["city"] == "Arlon")).astype(int)
    model = make_pipeline(make_column_transformer((OneHotEncoder(), ["city"]), remainder="passthrough"), tree())
    predictor = RulePredictor(model.fit(X, y)).fit(X, y)
    assert_array_equal(predictor._inputs.depends, [[False, False, False, True], [True, True, True, False]])


def test_a_rule_list_behind_a_scaler_speaks_of_scaled_numbers():
    X = np.random.default_rng(0).normal(5, 2, size=(80, 3))
    y = (X[:, 0] > 5).astype(int)
    rules = RuleListClassifier([({0: (0.0, None)}, 1), ({1: (None, 0.5), 2: (0.0, None)}, None)], default=0)
    model = make_pipeline(StandardScaler(), rules).fit(X, y)
    predictor = RulePredictor(model).fit(X, y)
    assert_allclose(predictor.predict_proba(X), model.predict_proba(X))
    mask = np.array([True, False, False])
    settled = X[:, 0] > X[:, 0].mean()
    assert_allclose(predictor.predict_proba(X[settled], mask), [[0.0, 1.0]] * settled.sum())
    assert not predictor.candidates(X[settled], mask).any()
    assert predictor.candidates(X[~settled], mask)[:, 1:].all()


# Words


def test_thresholds_are_in_the_units_of_the_table():
    for scaled in [False, True]:
        X, y = wine()
        X = X[["alcohol", "bottles"]]
        stump = DecisionTreeClassifier(max_depth=1, random_state=0)
        y = X["alcohol"] > 12.8
        model = make_pipeline(StandardScaler(), stump) if scaled else stump
        predictor = RulePredictor(model).fit(X, y)
        edges = X["alcohol"][y].min(), X["alcohol"][~y].max()
        at = f"{sum(edges) / 2:.4g}"
        assert said(predictor, X) == {f"alcohol > {at}", f"alcohol <= {at}"}


def test_whole_numbers_are_said_as_whole_numbers():
    for scaled in [False, True]:
        for dtype in ["int64", "Int64", "uint8"]:
            rng = np.random.default_rng(0)
            X = pd.DataFrame({"sex": rng.integers(0, 2, 60), "visits": rng.integers(0, 9, 60)}, dtype=dtype)
            y = (X["sex"] == 1) & X["visits"].between(3, 5)
            grown = DecisionTreeClassifier(random_state=0)
            predictor = RulePredictor(make_pipeline(StandardScaler(), grown) if scaled else grown).fit(X, y)
            words = said(predictor, X)
            assert {"sex >= 1", "sex <= 0", "3 <= visits <= 5", "visits >= 6", "visits <= 2"} == words


def test_one_value_of_a_whole_number_is_said_as_such():
    X = pd.DataFrame({"stage": np.tile([1, 2, 3], 20), "other": np.arange(60)})
    predictor = RulePredictor(DecisionTreeClassifier(random_state=0)).fit(X, X["stage"] == 2)
    assert said(predictor, X) == {"stage <= 1", "stage = 2", "stage >= 3"}


def test_decreasing_transformations_turn_the_words_round():
    for function in [np.negative, np.reciprocal]:
        X = pd.DataFrame({"dose": np.arange(1.0, 41.0), "other": np.tile([0.0, 1.0], 20)})
        y = (X["dose"] > 20).to_numpy()
        model = make_pipeline(FunctionTransformer(function), DecisionTreeClassifier(random_state=0)).fit(X[["dose"]], y)
        predictor = RulePredictor(model).fit(X[["dose"]], y)
        assert_array_equal(predictor.predict_proba(X[["dose"]]), model.predict_proba(X[["dose"]]))
        words = sorted(said(predictor, X[["dose"]]))
        assert [word.split()[:2] for word in words] == [["dose", "<="], ["dose", ">"]]
        assert all(20 < float(word.split()[2]) < 21 for word in words)
        (low,) = predictor.explain(pd.DataFrame({"dose": [3.0]}))
        assert low.firing[0].conditions == (words[0],)


def test_an_interval_behind_a_decreasing_transformation():
    X = pd.DataFrame({"dose": np.arange(0.0, 40.0)})
    y = X["dose"].between(11, 20).to_numpy()
    model = make_pipeline(FunctionTransformer(np.negative), DecisionTreeClassifier(random_state=0)).fit(X, y)
    words = said(RulePredictor(model).fit(X, y), X)
    assert words == {"dose <= 10.5", "10.5 < dose <= 20.5", "dose > 20.5"}


def test_thresholds_beyond_the_rows_of_fit_are_said_where_they_are():
    X = pd.DataFrame({"dose": np.arange(0.0, 40.0)})
    y = (X["dose"] > 30).to_numpy()
    model = make_pipeline(StandardScaler(), DecisionTreeClassifier(random_state=0)).fit(X, y)
    few = np.r_[0:12, 35]
    predictor = RulePredictor(model).fit(X.iloc[few], y[few])
    assert said(predictor, X) == {"dose <= 30.5", "dose > 30.5"}
    predictor = RulePredictor(model).fit(X[:12], np.tile([False, True], 6))
    assert said(predictor, X) == {"dose <= 30.5", "dose > 30.5"}


def test_long_numbers_keep_their_digits():
    X = pd.DataFrame({"income": np.arange(60) * 1000.0 + 1_234_567.5, "id": np.arange(60) + 7_654_321})
    by_income = RulePredictor(DecisionTreeClassifier(max_depth=1)).fit(X[["income"]], np.arange(60) > 29)
    assert said(by_income, X[["income"]]) == {"income <= 1264068", "income > 1264068"}
    by_id = RulePredictor(DecisionTreeClassifier(max_depth=1)).fit(X[["id"]], np.arange(60) > 29)
    assert said(by_id, X[["id"]]) == {"id <= 7654350", "id >= 7654351"}


def test_a_transformation_that_is_neither_rising_nor_falling_keeps_its_own_name():
    X = pd.DataFrame({"angle": np.linspace(-2, 2, 80)})
    y = (X["angle"] ** 2 > 1).to_numpy()
    square = FunctionTransformer(np.square, feature_names_out=lambda _, names: [f"{name} squared" for name in names])
    predictor = RulePredictor(make_pipeline(square, tree())).fit(X, y)
    assert {words.split(" ", 2)[1] for words in said(predictor, X)} == {"squared"}
    nameless = RulePredictor(make_pipeline(FunctionTransformer(np.square), tree())).fit(X, y)
    assert all(words.startswith("input 0 ") for words in said(nameless, X))


def test_one_hot_columns_are_said_as_categories():
    X, _ = wine()
    words = said(wine_predictor(), X[:60])
    cities = {word for word in words if word.startswith("city")}
    names = ["Ghent", "Lille", "Namur", "Tours"]
    assert cities
    assert cities <= {f"city is {name}" for name in names} | {f"city is not {name}" for name in names}
    assert all(set(word.split()) & {"alcohol", "bottles", "city", "dry", "body"} for word in words)


def test_booleans_and_categories_without_a_pipeline():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"smoker": rng.random(60) < 0.5, "age": rng.normal(50, 9, 60)})
    y = X["smoker"].to_numpy()
    predictor = RulePredictor(DecisionTreeClassifier(random_state=0)).fit(X, y)
    assert said(predictor, X) == {"smoker is True", "smoker is False"}
    assert not predictor.candidates(X, np.array([True, False])).any()


def test_many_categories_are_not_all_listed():
    names = [f"town {k:02d}" for k in range(20)]
    X = pd.DataFrame({"town": np.tile(names, 4)})
    y = X["town"].isin(names[:9]).to_numpy()
    predictor = RulePredictor(make_pipeline(OrdinalEncoder(), tree())).fit(X, y)
    assert said(predictor, X) == {
        "town is town 00, town 01, town 02, town 03 or 5 others",
        "town is not town 00, town 01, town 02, town 03 or 5 others",
    }


def test_bins_of_a_discretizer_are_said_by_their_own_name():
    X = pd.DataFrame({"age": np.linspace(20, 80, 90)})
    y = (X["age"] > 50).to_numpy()
    bins = KBinsDiscretizer(4, encode="onehot-dense", strategy="uniform")  # warns of no default in any version
    model = make_pipeline(bins, tree()).fit(X, y)
    predictor = RulePredictor(model).fit(X, y)
    assert_array_equal(predictor.predict_proba(X), model.predict_proba(X))
    assert all(words.startswith("age_") for words in said(predictor, X))


def test_rule_lists_and_fuzzy_trees_in_words():
    X, y = wine()
    rules = RuleListClassifier([({"city": {"Ghent", "Lille"}, "alcohol": (12, 13)}, "good"), ({"bottles": 2}, "poor")])
    predictor = RulePredictor(rules).fit(X, y)
    assert said(predictor, X, np.zeros(5, bool)) == {"city is Ghent or Lille", "12 < alcohol <= 13", "bottles is 2"}
    numbers = X[["alcohol", "bottles"]]
    fuzzy = RulePredictor(FuzzyTreeClassifier(max_depth=2, random_state=0)).fit(numbers, y)
    words = said(fuzzy, numbers)
    assert any(word in words for word in ("alcohol is low", "alcohol is high", "bottles is high", "bottles is low"))


# Explanations


def explained_answer(explanation, prior):
    """What the firing rules say together; the rest of the weight is the prior's."""
    answer, weight = np.zeros(len(prior)), 0.0
    for rule in explanation.firing:
        answer += rule.weight * rule.proba
        weight += rule.weight
    return answer + (1 - weight) * prior


EXPLAINED = {
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
    "forest": RandomForestClassifier(4, random_state=0),
    "shallow forest": RandomForestClassifier(6, max_depth=2, random_state=0),
    "fuzzy": FuzzyTreeClassifier(min_weight_leaf=5, random_state=0),
}


def test_the_weighted_confidences_of_the_firing_rules_are_the_prediction():
    for name in EXPLAINED:
        for whole in [False, True]:
            rng = np.random.default_rng(0)
            X = rng.integers(0, 4, (60, 4)) if whole else rng.normal(size=(60, 4))
            y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [1, 3] if whole else [0, 1.5])
            model, prior = clone(EXPLAINED[name]).fit(X, y), np.bincount(y) / len(y)
            masks = rng.random((8, 4)) < 0.5
            masks[0], masks[1] = False, True
            for aggregation in ["support", "best"]:
                predictor = RulePredictor(model, aggregation=aggregation).fit(X, y)
                proba = predictor.predict_proba(X[:8], masks)
                for r, found in enumerate(predictor.explain(X[:8], masks, most=100_000)):
                    assert_allclose(explained_answer(found, prior), proba[r], rtol=0, atol=1e-9)
                    assert len(found.firing) == found.n_firing == len({rule.conditions for rule in found.firing})
                    weights = [rule.weight for rule in found.firing]
                    assert weights == sorted(weights, reverse=True)


def test_possible_rules_are_the_living_ones_with_open_conditions():
    X, y = wine()
    X = X[["alcohol", "bottles"]].astype(float)
    predictor = RulePredictor(tree()).fit(X, y)
    paths = [rule.conditions for rule in predictor.rule_sets_[0].rules]
    for mask in ([False, False], [True, False], [False, True], [True, True]):
        for r, found in enumerate(predictor.explain(X[:20], np.array(mask), most=1000)):
            row = X.iloc[r].to_numpy()
            expected = 0
            for conditions in paths:
                alive = all(c.low < row[k] <= c.high for k, c in conditions.items() if mask[k])
                expected += alive and any(not mask[k] for k in conditions)
            assert found.n_possible == len(found.possible) == expected
            assert all(rule.open for rule in found.possible)
            for rule in found.possible:
                assert rule.support > 0
                assert_allclose(rule.proba.sum(), 1)


def test_the_support_of_a_rule_is_a_number_of_training_rows():
    X, y = wine()
    X = X[["alcohol"]]
    y = X["alcohol"] > 12.8
    predictor = RulePredictor(DecisionTreeClassifier(max_depth=1, random_state=0)).fit(X, y)
    (found,) = predictor.explain(pd.DataFrame({"alcohol": [14.0]}))
    assert found.firing[0].support == y.sum()
    (found,) = predictor.explain(pd.DataFrame({"alcohol": [np.nan]}))
    assert sorted(rule.support for rule in found.possible) == sorted([y.sum(), (~y).sum()])
    assert found.firing == []


def test_most_limits_the_lists_and_not_the_counts():
    X, _ = wine()
    predictor = wine_predictor()
    mask = np.array([True, False, False, True, True])
    (long,) = predictor.explain(X[:1], mask, most=100)
    (short,) = predictor.explain(X[:1], mask, most=2)
    assert (short.n_firing, short.n_possible) == (long.n_firing, long.n_possible)
    assert (len(short.firing), len(short.possible)) == (min(2, long.n_firing), 2)
    assert short.as_dict(predictor.classes_)["firing"] == long.as_dict(predictor.classes_)["firing"][:2]


def test_a_leaf_that_no_row_of_fit_reaches_is_the_models_own_word():
    X = pd.DataFrame({"dose": [1.0, 2.0, 8.0, 9.0], "age": [30.0, 40.0, 50.0, 60.0]})
    model = DecisionTreeClassifier(random_state=0).fit(X[["dose"]], [0, 0, 1, 1])
    predictor = RulePredictor(model).fit(X[["dose"]][:2], [0, 1])
    (unreached,) = predictor.explain(pd.DataFrame({"dose": [9.0]}))
    (reached,) = predictor.explain(pd.DataFrame({"dose": [1.0]}))
    assert unreached.firing[0].proba.tolist() == [0.0, 1.0]
    assert unreached.firing[0].evidence == "the model's own value; no row given to fit satisfies the rule"
    assert reached.firing[0].evidence == "the model's own value; 2 rows given to fit satisfy the rule"
    both = DecisionTreeClassifier(random_state=0).fit(X, [0, 1, 1, 0])
    shortened = RulePredictor(both).fit(X[:2], [0, 1]).explain(X[3:], np.array([False, True]))[0]
    assert all(rule.support > 0 for rule in shortened.firing if not rule.from_model)
    for rule in RulePredictor(both).fit(X, [0, 1, 1, 0]).explain(X[:1], np.array([False, True]))[0].firing:
        assert rule.from_model == (rule.evidence.startswith("the model's own value"))


def test_evidence_counts_rows_whole_or_in_part():
    shown = {0.0: "no row", 1.0: "1 row", 3.0: "3 rows", 3.14: "3.1 rows", 25.616: "26 rows", 12345.0: "12,345 rows"}
    for support, words in shown.items():
        rule = ExplainedRule((), np.array([0.3, 0.7]), support, 1.0, False, frozenset([0]))
        assert rule.evidence == f"{words} given to fit"


def test_equal_rules_of_a_forest_are_one_line_with_a_count():
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (60, 2)).astype(float), columns=["a", "b"])
    y = X["a"].to_numpy() * X["b"].to_numpy()
    forest = RandomForestClassifier(12, max_features=1, random_state=0)  # trees that ask for a first, or for b
    predictor = RulePredictor(forest).fit(X, y)
    for mask in ([False, False], [True, False], [True, True]):
        (found,) = predictor.explain(X[:1], np.array(mask), most=100)
        for rules in (found.firing, found.possible):
            read = [(rule.conditions, getattr(rule, "open", ())) for rule in rules]
            assert len(set(read)) == len(read)
            assert all(1 <= len(rule.trees) <= 12 for rule in rules)
    (found,) = predictor.explain(X[:1], np.zeros(2, dtype=bool), most=100)
    assert max(len(rule.trees) for rule in found.possible) > 3
    assert found.as_dict(predictor.classes_)["possible"][0]["n_trees"] > 3


def test_explaining_a_forest_in_a_pipeline_takes_no_minutes():
    X, y = wine(200)
    predictor = RulePredictor(mixed_pipeline(RandomForestClassifier(15, random_state=0)).fit(X, y)).fit(X, y)
    start = time.perf_counter()
    (found,) = predictor.explain(X[:1], np.zeros(5, bool))
    assert found.n_possible > 300  # rules that read differently
    assert time.perf_counter() - start < 8


def test_a_selector_explains_its_rows():
    X, _ = wine()
    selector = wine_selector()
    known = np.array([True, False, True, False, False])
    found = selector.explain(X[:5], mask=known, most=3)
    assert len(found) == 5
    hidden = X[:5].astype({"bottles": float, "dry": object}).assign(bottles=np.nan, dry=None, body=None)
    again = selector.explain(hidden, most=3)
    assert [one.as_dict(selector.classes_) for one in again] == [one.as_dict(selector.classes_) for one in found]


def test_a_session_shows_its_rules_at_every_step():
    X, _ = wine()
    selector = wine_selector()
    session = selector.start()
    for name in ("alcohol", "city"):
        session.answer(name, X[name].tolist()[0])
    report = session.report()
    assert json.loads(json.dumps(report)) == report
    rules = report["rules"]
    assert set(rules) == {"probabilities", "firing", "possible", "n_firing", "n_possible"}
    assert rules == report["trace"][-1]["rules"]
    assert report["trace"][0]["rules"]["firing"] == []
    after_one = report["trace"][1]["rules"]["firing"]
    assert after_one
    assert all("alcohol" in words for rule in after_one for words in rule["conditions"])
    top = rules["firing"][0]
    said = {"then", "confidence", "probabilities", "support", "evidence", "degree", "n_trees"}
    assert set(top) == {"conditions", "weight", *said}
    assert top["then"] in ("good", "poor")
    assert top["confidence"] == max(top["probabilities"].values())
    assert all("alcohol" in words or "city" in words for rule in rules["firing"] for words in rule["conditions"])
    assert all(rule["open"] for rule in rules["possible"])


def test_predictors_without_rules_say_so():
    X, y = wine()
    model = mixed_pipeline(LogisticRegression()).fit(X, y)
    assert ConditionalPredictor(model).fit(X, y).explain(X[:2]) is None
    selector = DynamicFeatureSelector(model, epistemic=None).fit(X, y)
    with pytest.raises(InvalidInput, match="ConditionalPredictor has no rules to explain"):
        selector.explain(X[:2])
    assert "rules" not in selector.start().report()
