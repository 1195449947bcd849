"""Rule predictors: the model on complete rows, counted confidences on subsets, features that can still matter."""

import itertools
import pickle
import time
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from askwise import DynamicFeatureSelector, Prices
from askwise.epistemic import AuxiliaryEnsemble
from askwise.errors import InvalidInput
from askwise.policy import DQN, Static
from askwise.predict import RulePredictor
from askwise.table.rows import EncodedRows
from askwise.trees import FuzzyTreeClassifier, SubsetCartClassifier
from askwise.trees.rule_list import RuleListClassifier

SEEDS = (1, 6)  # an odd one, and one that 2 and 3 divide: the tests below differ by that
AGGREGATIONS = ("support", "best")


def data(seed=0, n=60, d=4, n_classes=3, whole=False):
    """A rule with an interaction; `whole` numbers give ties and cells that stand exactly at thresholds."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, size=(n, d)).astype(float) if whole else rng.normal(size=(n, d))
    score = X[:, 0] + X[:, 1] * (X[:, 2] > X[:, 2].mean()) + 0.5 * rng.normal(size=n)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    return X, y


def with_holes(X, seed, share=0.2):
    holes = np.random.default_rng(seed).random(X.shape) < share
    holes[0] = False  # every column has a value
    return np.where(holes, np.nan, X)


def every_mask(d):
    return np.array(list(itertools.product([False, True], repeat=d)))


# An independent account of Appendix C: rules as lists of tests, one row and one rule at a time.


def leaf_paths(tree, node=0, path=()):
    """(tests, class shares) of each leaf; a test is (column, function of one cell)."""
    if tree.children_left[node] < 0:
        yield list(path), tree.value[node, 0] / tree.value[node, 0].sum()
        return
    column, threshold = tree.feature[node], tree.threshold[node]
    left = (column, lambda cell: float(np.float32(cell) <= threshold))
    right = (column, lambda cell: float(np.float32(cell) > threshold))
    yield from leaf_paths(tree, tree.children_left[node], (*path, left))
    yield from leaf_paths(tree, tree.children_right[node], (*path, right))


def slope(cell, start, end):
    if np.isneginf(start):
        return 1.0
    if np.isposinf(end):
        return 0.0
    return float(cell > start) if start == end else min(max((cell - start) / (end - start), 0.0), 1.0)


def fuzzy_paths(model):
    for rule in model.rules_:
        tests = []
        for column, (first, last) in rule.ranges.items():
            low, high = model.partitions_[column].trapezia[first, :2], model.partitions_[column].trapezia[last, 2:]
            tests.append((column, lambda cell, low=low, high=high: slope(cell, *low) - slope(cell, *high)))
        yield tests, rule.value


def list_paths(model):
    def test(condition):
        if isinstance(condition, tuple):
            return lambda cell: float(condition[0] < cell <= condition[1])
        return lambda cell: float(cell in condition)

    for conditions, value in zip(model.conditions_, model.values_, strict=True):
        yield [(column, test(condition)) for column, condition in conditions.items()], value


def degree(tests, row, observed, join):
    """How far the tests on `observed` columns hold; a missing cell holds for none."""
    found = 1.0
    for column, test in tests:
        if observed[column]:
            found = join(found, 0.0 if np.isnan(row[column]) else test(row[column]))
    return found


class Counted:
    """p(y | x_S) of one rule set, counted from scratch each time."""

    def __init__(self, paths, X, y, n_classes, *, aggregation, minimum=False, ordered=False, default=None):
        self.paths, self.X, self.y = list(paths), X, y
        self.classes, self.aggregation, self.ordered, self.default = np.arange(n_classes), aggregation, ordered, default
        self.join = min if minimum else (lambda a, b: a * b)

    def __call__(self, row, mask):
        observed = mask & ~np.isnan(row)
        spoken, still_open = [], False
        for tests, value in self.paths:
            fires = degree(tests, row, observed, self.join)
            if fires == 0:
                continue
            columns = {column for column, _ in tests}
            whole = all(observed[column] for column in columns)
            still_open |= not whole
            if whole or any(observed[column] for column in columns):
                spoken.append((fires, whole, value, self.counts(tests, observed)))
            if self.ordered and whole:
                break
        by_best = self.aggregation == "best" and still_open
        answer = self.best(spoken) if by_best else self.mean(spoken, settled=not still_open)
        if answer is not None:
            return answer
        if self.default is not None and not still_open:
            return self.default
        return (self.y[:, None] == self.classes).mean(axis=0)

    def counts(self, tests, observed):
        weights = np.array([degree(tests, row, observed, self.join) for row in self.X])
        return np.array([weights[self.y == c].sum() for c in self.classes])

    def mean(self, spoken, settled):
        mass = np.zeros(len(self.classes))
        for fires, whole, value, counts in spoken:
            if settled:
                mass += fires * value
            else:
                mass += fires * (value * max(counts.sum(), 1) if whole else counts)
        return mass / mass.sum() if mass.sum() > 1e-9 else None

    def best(self, spoken):
        rated = []
        for fires, whole, value, counts in spoken:
            confidence = value if whole else counts / counts.sum() if counts.sum() > 1e-9 else np.zeros(len(counts))
            rated.append((fires * confidence.max(), counts.sum(), confidence))
        if not rated or max(rate for rate, _, _ in rated) <= 0:
            return None
        top = max(rate for rate, _, _ in rated)
        tied = [item for item in rated if item[0] >= top - 1e-12]
        return max(tied, key=lambda item: item[1])[2]


def assert_counted(predictor, counted, rows, masks):
    """The predictor's answers are the mean of those of the rule sets counted anew."""
    for row, mask in zip(rows, masks, strict=True):
        expected = np.mean([one(row, mask) for one in counted], axis=0)
        assert_allclose(predictor.predict_proba(row[None], mask)[0], expected, rtol=0, atol=1e-9)


TREES = {
    "tree": DecisionTreeClassifier(random_state=0),
    "shallow tree": DecisionTreeClassifier(max_depth=2, random_state=0),
    "weighted tree": DecisionTreeClassifier(max_depth=3, class_weight="balanced", random_state=0),
    "extra tree": ExtraTreeClassifier(max_depth=4, random_state=0),
    "subset tree": SubsetCartClassifier(n_subsets=2, random_state=0),
}
FORESTS = {
    "forest": RandomForestClassifier(3, max_depth=3, random_state=0),
    "forest without bootstrap": RandomForestClassifier(2, bootstrap=False, max_depth=3, random_state=0),
    "extra trees": ExtraTreesClassifier(3, max_depth=3, random_state=0),
}
FUZZY = {
    "fuzzy, product": FuzzyTreeClassifier(min_weight_leaf=4, max_depth=3, random_state=0),
    "fuzzy, minimum": FuzzyTreeClassifier(min_weight_leaf=4, max_depth=3, t_norm="minimum", random_state=0),
}
LISTS = {
    "rule list": RuleListClassifier(
        [
            ({0: (0.4, None), 1: (None, 0.9)}, {0: 0.1, 2: 0.9}),
            ({2: (-0.5, 0.7)}, 1),
            ({3: (0, None), 0: (None, 0.1), 1: (-1, 1)}, None),
            ({1: (0.2, None)}, 0),
        ]
    ),
    "rule list with default": RuleListClassifier([({0: (0, 1)}, 2), ({1: (0, 1), 2: (0, 1)}, None)], default=1),
}
MODELS = {**TREES, **FORESTS, **FUZZY, **LISTS}


def counted_for(model, X, y, aggregation):
    """One `Counted` per rule set of a fitted model."""
    C = len(model.classes_)
    if isinstance(model, RuleListClassifier):
        return [Counted(list_paths(model), X, y, C, aggregation=aggregation, ordered=True, default=model.default_)]
    if isinstance(model, FuzzyTreeClassifier):
        minimum = model.t_norm == "minimum"
        return [Counted(fuzzy_paths(model), X, y, C, aggregation=aggregation, minimum=minimum)]
    trees = [tree.tree_ for tree in getattr(model, "estimators_", [model])]
    return [Counted(leaf_paths(tree), X, y, C, aggregation=aggregation) for tree in trees]


def test_confidences_are_those_that_are_counted_by_hand():
    for seed, name in itertools.product(SEEDS, MODELS):
        X, y = data(seed, n=40)
        model = clone(MODELS[name]).fit(X, y)
        table = with_holes(X, seed) if seed % 2 else X
        rng = np.random.default_rng(seed)
        rows = np.vstack([with_holes(rng.normal(size=(2, 4)), seed + 1), X[:2]])
        masks = rng.random((4, 4)) < 0.6
        for aggregation in AGGREGATIONS:
            predictor = RulePredictor(model, aggregation=aggregation).fit(table, y)
            assert_counted(predictor, counted_for(model, table, y, aggregation), rows, masks)


def test_complete_rows_have_the_models_own_answer():
    for seed, name in itertools.product(SEEDS, MODELS):
        is_tree = name in {**TREES, **FORESTS}
        X, y = data(seed, whole=is_tree and bool(seed % 2))
        model = clone(MODELS[name]).fit(X, y)
        rows = np.random.default_rng(seed).normal(size=(30, 4)) * 2
        if is_tree:
            rows = np.vstack([X, rows, np.round(rows), np.full((1, 4), 1e30), np.full((1, 4), -1e30)])
        for aggregation in AGGREGATIONS:
            predictor = RulePredictor(model, aggregation=aggregation).fit(X, y)
            assert_allclose(predictor.predict_proba(rows), model.predict_proba(rows), rtol=0, atol=1e-12)


def test_nothing_known_means_the_class_prior_of_the_training_rows():
    for name in MODELS:
        X, y = data(1)
        other = data(2)
        model = clone(MODELS[name]).fit(*other)
        predictor = RulePredictor(model).fit(X[5:], y[5:])
        prior = np.bincount(y[5:]) / len(y[5:])
        assert_allclose(predictor.predict_proba(X[:3], np.zeros(4, bool)), np.tile(prior, (3, 1)))


def test_cells_exactly_at_a_threshold_and_a_hair_beside_it():
    X, y = data(3, n=80)
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    tree = model.tree_
    splits = np.flatnonzero(tree.children_left >= 0)
    rows = []
    for node in splits:
        at = tree.threshold[node]
        for cell in (at, np.nextafter(at, -9), np.nextafter(at, 9), np.float32(at), np.nextafter(np.float32(at), 9)):
            row = X[node % len(X)].copy()
            row[tree.feature[node]] = float(cell)
            rows.append(row)
    predictor = RulePredictor(model).fit(X, y)
    assert_array_equal(predictor.predict_proba(np.array(rows)), model.predict_proba(np.array(rows)))
    counted = counted_for(model, X, y, "support")
    masks = np.random.default_rng(0).random((40, 4)) < 0.5
    assert_counted(predictor, counted, rows[:40], masks)


def test_a_tree_trained_on_other_rows_has_leaves_that_no_row_reaches():
    X, y = data(4, n=200)
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    few, labels = X[:8], y[:8]
    predictor = RulePredictor(model).fit(few, labels)
    assert len(set(model.apply(few))) < model.get_n_leaves()
    assert_array_equal(predictor.predict_proba(X), model.predict_proba(X))
    masks = np.random.default_rng(0).random((30, 4)) < 0.6
    assert_counted(predictor, counted_for(model, few, labels, "support"), X[:30], masks)


def test_rows_that_no_training_row_resembles_have_the_prior():
    """The rules that fire have no row: there is nothing to estimate from."""
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    model = DecisionTreeClassifier(random_state=0).fit(X, [0, 1, 1, 0])
    predictor = RulePredictor(model).fit(X[:2], [0, 1])  # the first column is never above its threshold
    assert_array_equal(predictor.predict_proba([[1.0, 0.0]], [True, False]), [[0.5, 0.5]])


def test_a_class_that_is_not_among_the_rows_is_still_a_column():
    X, y = data(5)
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    predictor = RulePredictor(model).fit(X[y < 2], y[y < 2])
    assert predictor.predict_proba(X, np.zeros(4, bool)).shape == (60, 3)
    assert_array_equal(predictor.predict_proba(X), model.predict_proba(X))


def test_a_single_leaf_always_says_the_same():
    for aggregation in ["support", "best"]:
        X, y = data(6)
        model = DecisionTreeClassifier(max_depth=1, min_samples_leaf=40).fit(X, y)
        assert model.get_n_leaves() == 1
        predictor = RulePredictor(model, aggregation=aggregation).fit(X, y)
        for mask in (np.zeros(4, bool), np.ones(4, bool)):
            assert_allclose(predictor.predict_proba(X, mask), model.predict_proba(X))
        assert not predictor.candidates(X, np.zeros(4, bool)).any()
        assert predictor.predict_grid(X, every_mask(4)).shape == (16, 60, 3)
        (explanation,) = predictor.explain(X[:1])
        assert (explanation.firing[0].conditions, explanation.n_possible) == ((), 0)


def test_constant_and_unused_columns_never_matter():
    X, y = data(7)
    X = np.column_stack([X, np.full(len(X), 3.0)])
    predictor = RulePredictor(DecisionTreeClassifier(max_depth=3, random_state=0)).fit(X, y)
    used = set(predictor.estimator_.tree_.feature[predictor.estimator_.tree_.feature >= 0].tolist())
    assert 4 not in used
    candidates = predictor.candidates(X, np.zeros(5, bool))
    assert_array_equal(candidates, np.tile([j in used for j in range(5)], (len(X), 1)))


def test_training_rows_with_missing_cells_may_go_their_own_way_in_the_tree():
    """scikit-learn's trees send missing cells to a side of their own; here such a row says nothing of that column."""
    X, y = data(8, n=90)
    holes = with_holes(X, 8, 0.3)
    model = DecisionTreeClassifier(random_state=0).fit(holes, y)
    assert model.tree_.missing_go_to_left.any()
    predictor = RulePredictor(model).fit(holes, y)
    complete = ~np.isnan(holes).any(axis=1)
    assert_array_equal(predictor.predict_proba(holes[complete]), model.predict_proba(holes[complete]))
    assert_array_equal(predictor.predict_full(holes), model.predict_proba(holes))
    masks = np.random.default_rng(0).random((30, 4)) < 0.6
    assert_counted(predictor, counted_for(model, holes, y, "support"), holes[:30], masks)


def test_a_split_that_only_parts_missing_cells_from_the_others():
    x = np.r_[np.arange(20.0), np.full(20, np.nan)]
    X = np.column_stack([x, np.random.default_rng(0).normal(size=40)])
    y = np.r_[np.zeros(20, int), np.ones(20, int)]
    predictor = RulePredictor(DecisionTreeClassifier(max_depth=1, random_state=0)).fit(X, y)
    assert np.isposinf(predictor.estimator_.tree_.threshold[0])
    assert_array_equal(predictor.predict_proba(X[:20]), [[1.0, 0.0]] * 20)
    assert_array_equal(predictor.predict_proba(X[20:]), [[0.5, 0.5]] * 20)
    (explanation,) = predictor.explain(X[:1])
    assert explanation.firing[0].conditions == ("x0 is known",)


# Features that can still matter


def changed_by_a_dropped_feature(predictor, X, cells):
    """Triples (row, mask, column) whose column was dropped and yet changes an answer, alone or with others.

    Tried are all masks, all sets of further columns, and all `cells` (k, D) of the column.
    """
    d = X.shape[1]
    tried = []  # (row, mask, what is known then, column, cell)
    for mask in every_mask(d):
        dropped = ~mask & ~predictor.candidates(X, mask)
        for known in every_mask(d):
            if (mask <= known).all():
                pairs = np.argwhere(dropped & ~known)
                tried += [(r, mask, known, j, cell) for r, j in pairs for cell in cells[:, j]]
    rows = X[[r for r, *_ in tried]]
    columns = np.array([j for *_, j, _ in tried])
    known = np.array([known for _, _, known, _, _ in tried])
    before = predictor.predict_proba(rows, known)
    rows[np.arange(len(rows)), columns] = [cell for *_, cell in tried]
    known[np.arange(len(rows)), columns] = True
    differs = np.abs(predictor.predict_proba(rows, known) - before).max(axis=1) > 1e-9
    return [(tried[k][0], tried[k][1].tolist(), tried[k][3]) for k in np.flatnonzero(differs)], len(tried)


def test_no_feature_that_could_change_the_answer_is_dropped():
    X, y = data(11, n=50)
    cells = np.quantile(X, [0, 0.3, 0.5, 0.7, 1], axis=0)
    for name in MODELS:
        model = clone(MODELS[name]).fit(X, y)
        for aggregation in AGGREGATIONS:
            predictor = RulePredictor(model, aggregation=aggregation).fit(X, y)
            changed, n_tried = changed_by_a_dropped_feature(predictor, X[:20], cells)
            assert n_tried > 100
            assert not changed


def test_no_feature_behind_a_pipeline_is_dropped_in_error():
    X, y = data(12, n=60)
    pipeline = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3, random_state=0)).fit(X, y)
    predictor = RulePredictor(pipeline).fit(X, y)
    changed, n_tried = changed_by_a_dropped_feature(predictor, X[:10], np.quantile(X, [0, 0.3, 0.5, 0.7, 1], axis=0))
    assert n_tried > 100
    assert not changed
    alone = RulePredictor(DecisionTreeClassifier(max_depth=3, random_state=0)).fit(X, y)
    for mask in every_mask(4):
        assert_array_equal(predictor.candidates(X, mask), alone.candidates(X, mask))


def test_a_feature_of_a_living_rule_is_a_candidate_and_no_other():
    for name in ["tree", "forest", *FUZZY]:
        X, y = data(13, n=40)
        model = clone(MODELS[name]).fit(X, y)
        predictor = RulePredictor(model).fit(X, y)
        counted = counted_for(model, X, y, "support")
        for mask in every_mask(4):
            found = predictor.candidates(X[:8], mask)
            for r, row in enumerate(X[:8]):
                alive = [tests for one in counted for tests, _ in one.paths if degree(tests, row, mask, one.join) > 0]
                wanted = {column for tests in alive for column, _ in tests}
                assert set(np.flatnonzero(found[r])) == {j for j in wanted if not mask[j]}


def test_a_threshold_drops_more_and_never_others():
    for name in [*FUZZY, "tree"]:
        X, y = data(14)
        exact = RulePredictor(clone(MODELS[name])).fit(X, y)
        pruned = RulePredictor(clone(MODELS[name]), threshold=0.4).fit(X, y)
        dropped_more = 0
        for mask in every_mask(4):
            few, many = pruned.candidates(X, mask), exact.candidates(X, mask)
            assert (few <= many).all()
            dropped_more += (few < many).sum()
            assert_array_equal(pruned.predict_proba(X, mask), exact.predict_proba(X, mask))
        assert (dropped_more > 0) == (name != "tree")


# Many masks at once, and rows left out of their own answers


def test_a_grid_of_rows_and_masks_is_answered_as_one_by_one():
    X, y = data(15, n=30)
    for name in MODELS:
        model = clone(MODELS[name]).fit(X, y)
        for aggregation in AGGREGATIONS:
            predictor = RulePredictor(model, aggregation=aggregation).fit(X, y)
            for table, masks in ((X, every_mask(4)), (with_holes(X, 15), every_mask(4)[::5])):
                grid = predictor.predict_grid(table, masks)
                assert grid.shape == (len(masks), 30, 3)
                for m, mask in enumerate(masks):
                    assert_allclose(grid[m], predictor.predict_proba(table, mask), rtol=0, atol=1e-12)


def test_a_grid_needs_masks_of_the_right_shape():
    X, y = data()
    predictor = RulePredictor(clone(TREES["tree"])).fit(X, y)
    with pytest.raises(InvalidInput, match="masks must have shape"):
        predictor.predict_grid(X, np.ones((2, 3), bool))
    with pytest.raises(InvalidInput, match="masks must be boolean"):
        predictor.predict_grid(X, np.ones((2, 4)))


def a_rule_is_whole(counted, row, mask):
    """Whether a rule fires with all its conditions observed."""
    observed = mask & ~np.isnan(row)
    return any(
        degree(tests, row, observed, one.join) > 0 and all(observed[column] for column, _ in tests)
        for one in counted
        for tests, _ in one.paths
    )


def test_a_row_left_out_has_the_answer_of_a_predictor_without_it():
    for seed, name in itertools.product(SEEDS, ["tree", "forest", *FUZZY, "rule list"]):
        X, y = data(seed, n=30, whole=bool(seed % 2))
        model = clone(MODELS[name]).fit(X, y)
        table = with_holes(X, seed, 0.1) if seed % 3 == 0 else X
        r = int(np.random.default_rng(seed).integers(30))
        counted = counted_for(model, X, y, "")
        masks = [mask for mask in every_mask(4) if not a_rule_is_whole(counted, table[r], mask)]
        rest = np.delete(np.arange(30), r)
        row = np.repeat(table[[r]], len(masks), axis=0)  # the empty mask at least is among them
        for aggregation in AGGREGATIONS:
            predictor = RulePredictor(model, aggregation=aggregation).fit(table, y)
            without = RulePredictor(model, aggregation=aggregation).fit(table[rest], y[rest])
            found = predictor.proba(EncodedRows(row).masked(np.array(masks)), np.full(len(masks), r))
            assert_allclose(found, without.predict_proba(row, np.array(masks)), rtol=0, atol=1e-8)


def test_leaving_a_row_out_changes_its_answer():
    X, y = data(16)
    predictor = RulePredictor(clone(TREES["tree"])).fit(X, y)
    mask = np.array([True, False, False, False])
    rows = np.arange(len(X))
    left_out = predictor.proba(EncodedRows(X).masked(mask), rows)
    kept = predictor.predict_proba(X, mask)
    assert (left_out[rows, y] <= kept[rows, y] + 1e-12).all()
    assert (left_out[rows, y] < kept[rows, y]).any()


# Size and speed


def test_thousands_of_leaves_in_seconds():
    X, y = make_classification(6000, 12, n_informative=8, flip_y=0.4, random_state=0)
    predictor = RulePredictor(DecisionTreeClassifier(random_state=0)).fit(X, y)
    assert predictor.estimator_.get_n_leaves() > 1000
    masks = np.random.default_rng(0).random((200, 12)) < 0.3
    start = time.perf_counter()
    predictor.predict_proba(X[:200], masks)
    predictor.candidates(X[:200], masks)
    assert time.perf_counter() - start < 10
    assert_array_equal(predictor.predict_proba(X[:500]), predictor.estimator_.predict_proba(X[:500]))


def test_a_deep_tree_on_digits_stays_within_its_memory():
    X, y = load_digits(return_X_y=True)
    bound = 60_000
    predictor = RulePredictor(DecisionTreeClassifier(random_state=0), cache_bytes=bound).fit(X, y)
    roomy = RulePredictor(predictor.estimator_).fit(X, y)
    assert roomy.rule_sets_[0].n_subrules * 8 * 12 > bound  # all of them would not fit
    rng = np.random.default_rng(0)
    for _ in range(4):
        masks = rng.random((60, 64)) < rng.random()
        rows = X[rng.integers(len(X), size=60)]
        assert_array_equal(predictor.predict_proba(rows, masks), roomy.predict_proba(rows, masks))
        assert predictor.cache_info_["bytes"] <= bound == predictor.cache_info_["max_bytes"]
    assert roomy.cache_info_["bytes"] > predictor.cache_info_["bytes"] > 0


# What is refused


def test_models_without_rules_are_refused_with_a_way_out():
    for model in [
        LogisticRegression(),
        GradientBoostingClassifier(n_estimators=2),
        BaggingClassifier(n_estimators=2),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ]:
        X, y = data()
        with pytest.raises(InvalidInput, match=r'adaptation="rules" needs a decision tree.*got .*"conditional"'):
            RulePredictor(model).fit(X, y)


def test_options_that_are_refused():
    cases: list[Any] = [
        ({"aggregation": "mean"}, r"aggregation must be one of \('support', 'best'\); got 'mean'"),
        ({"aggregation": ["best"]}, "aggregation must be one of"),
        ({"threshold": 1.0}, r"threshold must be a number in \[0, 1\); got 1.0"),
        ({"threshold": -0.1}, "threshold must be"),
        ({"threshold": np.nan}, "threshold must be"),
        ({"threshold": "low"}, "threshold must be .*got 'low'"),
        ({"cache_bytes": -1}, "cache_bytes must be .*at least 0; got -1"),
        ({"cache_bytes": np.nan}, "cache_bytes must be"),
        ({"cache_bytes": "64MB"}, "cache_bytes must be .*got '64MB'"),
    ]
    for options, message in cases:
        X, y = data()
        with pytest.raises(InvalidInput, match=message):
            RulePredictor(clone(TREES["tree"]), **options).fit(X, y)


def test_a_fitted_predictor_can_be_pickled():
    for name in MODELS:
        X, y = data(17)
        predictor = RulePredictor(clone(MODELS[name])).fit(X, y)
        mask = np.array([True, False, True, False])
        again = pickle.loads(pickle.dumps(predictor))
        assert_array_equal(again.predict_proba(X, mask), predictor.predict_proba(X, mask))


# Through the front door


def table_data():
    X, y = data(18, n=90, n_classes=2)
    return pd.DataFrame(X, columns=["a", "b", "c", "d"]), np.array(["no", "yes"])[y]


def test_a_selector_acquires_by_rules():
    policies: list[Any] = ["greedy", "static", "random", DQN(n_episodes=30, hidden=8)]
    for policy in policies:
        X, y = table_data()
        tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
        selector = DynamicFeatureSelector(tree, adaptation="rules", policy=policy, epistemic=None, random_state=0)
        run = selector.fit(X, y).acquire(X, budget=2)
        assert run.proba.shape == (90, 3, 2)
        assert (run.predict() == y).mean() > 0.6
        predictor = selector.predictor_
        for step in range(run.order.shape[1]):
            before = predictor.candidates(X, run.mask_after(step))
            bought = np.flatnonzero(run.order[:, step] >= 0)
            assert before[bought, run.order[bought, step]].all()  # nothing is bought that cannot matter


def test_a_row_that_reached_its_leaf_buys_nothing_more():
    X, y = table_data()
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    selector = DynamicFeatureSelector(tree, adaptation="rules", epistemic=None, random_state=0).fit(X, y)
    run = selector.acquire(X)
    n_bought = (run.order >= 0).sum(axis=1)
    assert_array_equal(run.predict(), tree.predict(X))
    assert n_bought.max() <= len(set(tree.tree_.feature[tree.tree_.feature >= 0])) < 4
    assert n_bought.min() < n_bought.max()  # some rows reach a leaf sooner than others


def test_members_are_rule_predictors_of_their_own_trees():
    X, y = table_data()
    ensemble = AuxiliaryEnsemble(n_members=3, random_state=0)
    selector = DynamicFeatureSelector(
        DecisionTreeClassifier(max_depth=4, random_state=0),
        adaptation="rules",
        epistemic=ensemble,
        calibration=None,
        random_state=0,
    ).fit(X, y)
    known = X.assign(b=np.nan, c=np.nan)
    fitted = selector.epistemic_
    assert isinstance(fitted, AuxiliaryEnsemble)
    members = selector.beliefs_.believe(selector.schema_.encode(known)).members
    assert members is not None
    assert members.shape == (3, 90, 2)
    for found, member in zip(members, fitted._separate, strict=True):
        assert isinstance(member, RulePredictor)
        assert_array_equal(found, member.predict_proba(known))
        assert_array_equal(member.predict_full(X), member.estimator_.predict_proba(X))
    assert (selector.uncertainty(known).epistemic > 0).any()


def test_distance_goes_with_rules_too():
    X, y = table_data()
    selector = DynamicFeatureSelector(
        DecisionTreeClassifier(max_depth=4, random_state=0), adaptation="rules", epistemic="distance", random_state=0
    ).fit(X, y)
    found = selector.uncertainty(X)
    assert np.isfinite(found.epistemic).all()


def test_prices_and_groups_go_with_rules():
    X, y = table_data()
    selector = DynamicFeatureSelector(
        FrozenEstimator(DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)),
        adaptation="rules",
        groups={"panel": ["b", "c"]},
        costs=Prices({"a": 1, "panel": 3, "d": 0.5}),
        epistemic=None,
        calibration=None,
        random_state=0,
    ).fit(X, y)
    assert selector.features_ == ["a", "panel", "d"]
    run = selector.acquire(X, budget=4.5)
    assert (run.spent_after(run.order.shape[1]) <= 4.5).all()
    assert (run.order == 1).any()
    bought = run.mask_after(run.order.shape[1])
    expanded = selector.schema_.expand(bought)
    assert_array_equal(run.proba[:, -1], selector.predictor_.predict_proba(X, expanded))


def test_options_of_the_predictor_are_given_with_it():
    X, y = table_data()
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    adaptation = RulePredictor(None, aggregation="best", cache_bytes=10_000)
    selector = DynamicFeatureSelector(tree, adaptation=adaptation, epistemic=None, policy=Static()).fit(X, y)
    assert selector.predictor_.aggregation == "best"
    assert selector.predictor_.cache_info_["max_bytes"] == 10_000


def test_the_front_door_refuses_models_without_rules():
    X, y = table_data()
    with pytest.raises(InvalidInput, match=r'adaptation="rules" needs a decision tree.*got LogisticRegression'):
        DynamicFeatureSelector(LogisticRegression(), adaptation="rules").fit(X, y)
