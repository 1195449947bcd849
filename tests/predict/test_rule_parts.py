"""The parts under a rule predictor: the cache of counts, what fires, what is counted, how rules are joined."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.tree import DecisionTreeClassifier

from askwise.predict import RulePredictor
from askwise.predict.rules import evidence as evidence_module
from askwise.predict.rules import reduction as reduced_module
from askwise.predict.rules.aggregation import AGGREGATIONS, by_best, by_support
from askwise.predict.rules.conditions import Interval, OneOf, Rule, RuleSet, Term
from askwise.predict.rules.evidence import CrispEvidence, FuzzyEvidence, SubRuleCache
from askwise.predict.rules.firing import CrispFiring, FuzzyFiring
from askwise.predict.rules.reduction import ReducedRules

quick = settings(max_examples=3, deadline=None)


def random_condition(rng, fuzzy=False):
    if fuzzy:
        return Term(tuple(np.sort(rng.integers(-1, 6, 4).astype(float))), "so")
    if rng.random() < 0.3:
        return OneOf(frozenset(rng.integers(0, 5, 2).astype(float).tolist()))
    low, high = np.sort(rng.integers(-1, 6, 2).astype(float))
    return Interval(-np.inf if rng.random() < 0.3 else low, np.inf if rng.random() < 0.3 else high)


def random_rules(rng, n_rules=70, d=4, fuzzy=False, **options):
    """More rules than a word has bits, on zero to all of the columns."""
    rules = []
    for _ in range(n_rules):
        columns = np.flatnonzero(rng.random(d) < 0.5)
        rules.append(Rule({int(j): random_condition(rng, fuzzy) for j in columns}, rng.dirichlet(np.ones(3))))
    return RuleSet(rules, fuzzy=fuzzy, **options)


def random_rows(rng, n=50, d=4):
    """Cells at, between and beyond all bounds; some missing."""
    rows = rng.integers(-4, 14, size=(n, d)) / 2
    return np.where(rng.random((n, d)) < 0.15, np.nan, rows)


def cell_degree(condition, cell):
    """How far one cell satisfies a condition, written anew."""
    if np.isnan(cell):
        return 0.0
    if isinstance(condition, Interval):
        return float(condition.low < cell <= condition.high)
    if isinstance(condition, OneOf):
        return float(cell in condition.values)
    a, b, c, d = condition.trapezium
    rise = float(cell > a) if a == b else min(max((cell - a) / (b - a), 0), 1)
    fall = float(cell > c) if c == d else min(max((cell - c) / (d - c), 0), 1)
    return rise - fall


def rule_degree(rules, rule, row, observed):
    degrees = [cell_degree(condition, row[j]) for j, condition in rule.conditions.items() if observed[j]]
    if rules.t_norm == "minimum":
        return min(degrees, default=1.0)
    return float(np.prod(degrees))


@quick
@given(seed=st.integers(0, 9999))
def test_degrees_and_counts_are_those_of_single_cells(seed):
    for kind in ["crisp", "product", "minimum"]:
        rng = np.random.default_rng(seed)
        fuzzy = kind != "crisp"
        rules = random_rules(rng, fuzzy=fuzzy, t_norm=kind if fuzzy else "product")
        rows, y = random_rows(rng), rng.integers(0, 3, 50)
        reduced = ReducedRules(rules, rows, y, 3, 10**6)
        masks = rng.random((3, 4)) < 0.5
        for mask, found in zip(masks, reduced.reduce(masks), strict=True):
            seen = mask & ~np.isnan(rows[:5])
            degrees = reduced.degrees(rows[:5], seen)
            for number, rule in enumerate(rules.rules):
                expected = [
                    rule_degree(rules, rule, row, observed) for row, observed in zip(rows[:5], seen, strict=True)
                ]
                assert_allclose(degrees[:, number], expected, rtol=0, atol=1e-12)
                kept = [j for j in rule.conditions if mask[j]]
                assert found.kept[number] == bool(kept)
                assert found.whole[number] == (len(kept) == len(rule.conditions))
                if kept:
                    memberships = np.array([rule_degree(rules, rule, row, mask) for row in rows])
                    counts = [memberships[y == c].sum() for c in range(3)]
                    assert_allclose(found.counts[number], counts, rtol=0, atol=1e-9)


def test_the_bounds_of_conditions_belong_where_they_should():
    cells = np.array([-1e300, 0.9, 1.0, 1.1, 2.0, 2.1, np.inf, np.nan])
    conditions: list[Any] = [Interval(1.0, 2.0), Interval(high=1.0), Interval(low=2.0), OneOf(frozenset([1.0, 2.0]))]
    firing = CrispFiring([[(np.array([k]), condition) for k, condition in enumerate(conditions)]], 4)
    found = firing(8, firing.look_up(cells[:, None]), np.ones(1, bool))
    assert_array_equal(found[:7].T, np.array([condition.membership(cells[:7]) for condition in conditions]))
    assert_array_equal(found[:7, 0], [0, 0, 0, 1, 1, 0, 0])
    assert all(condition.membership(cells)[7] == 0 for condition in conditions)
    hidden = firing(8, firing.look_up(cells[:, None]), np.zeros((8, 1), bool))
    assert (hidden == 1).all()


def test_fuzzy_degrees_are_joined_by_the_t_norm():
    high = Term((0.0, 10.0, np.inf, np.inf), "high")
    conditions = [[(np.array([0]), high)], [(np.array([0, 1]), high)]]
    cells = np.array([[5.0, 2.0]])
    for t_norm, expected in (("product", [0.1, 0.2]), ("minimum", [0.2, 0.2])):
        firing = FuzzyFiring(conditions, 2, t_norm)
        assert_allclose(firing(1, firing.look_up(cells), np.ones(2, bool)), [expected])
        assert_allclose(firing(1, firing.look_up(cells), np.array([True, False])), [[0.5, 1.0]])


def test_counting_in_small_parts_gives_the_same(monkeypatch):
    for kind in [CrispEvidence, FuzzyEvidence]:
        rng = np.random.default_rng(0)
        rows, y = random_rows(rng, n=300), rng.integers(0, 3, 300)
        conditions = [(int(j), random_condition(rng)) for j in np.repeat(np.arange(4), 3)]
        numbers = np.where(rng.random((40, 4)) < 0.4, -1, np.arange(4) * 3 + rng.integers(0, 3, (40, 4)))
        options = ("product",) if kind is FuzzyEvidence else ()
        at_once = kind(conditions, rows, y, 3, *options)(numbers)
        monkeypatch.setattr(evidence_module, "WORDS_AT_ONCE", 20)
        assert_array_equal(kind(conditions, rows, y, 3, *options)(numbers), at_once)
        everyone = kind(conditions, rows, y, 3, *options)(np.full((1, 4), -1))
        assert_array_equal(everyone[0], np.bincount(y))


def test_a_class_without_rows_is_counted_as_none():
    counts = CrispEvidence([(0, Interval(high=0.5))], np.zeros((70, 1)), np.full(70, 2), 4)(np.array([[0], [-1]]))
    assert_array_equal(counts, [[0, 0, 70, 0], [0, 0, 70, 0]])


# The cache


class Counter:
    """Counts by a rule of thumb, and remembers what it was asked."""

    def __init__(self):
        self.asked = []

    def for_signatures(self, signatures):
        def count(missing):
            self.asked += signatures[missing].tolist()
            return np.column_stack([signatures[missing], signatures[missing] * 2]).astype(float)

        return count


def ask(cache, counter, *numbers):
    signatures = np.array(sorted(numbers), dtype=np.uint64)
    found = cache.get(signatures, counter.for_signatures(signatures))
    assert_array_equal(found, np.column_stack([signatures, signatures * 2]))
    return found


def test_what_was_counted_is_found_again():
    cache, counter = SubRuleCache(2, 10_000), Counter()
    ask(cache, counter, 5, 9)
    ask(cache, counter, 3, 5, 11)
    ask(cache, counter, 3, 5, 9, 11)
    assert sorted(counter.asked) == [3, 5, 9, 11]
    assert len(cache) == 4
    assert cache.nbytes == 4 * 8 * 4


def test_the_least_recently_used_are_forgotten_first():
    cache, counter = SubRuleCache(2, 3 * 8 * 4), Counter()
    ask(cache, counter, 1)
    ask(cache, counter, 2)
    ask(cache, counter, 3)
    ask(cache, counter, 1)
    ask(cache, counter, 4)  # no room: 2 goes
    counter.asked.clear()
    ask(cache, counter, 1, 3, 4)
    assert counter.asked == []
    ask(cache, counter, 2)
    assert counter.asked == [2]
    assert len(cache) == 3


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sets(st.integers(1, 30), min_size=1, max_size=8), max_size=20), st.integers(0, 400))
def test_a_cache_of_any_size_gives_the_right_counts_and_keeps_its_bound(questions, max_bytes):
    cache, counter = SubRuleCache(2, max_bytes), Counter()
    for numbers in questions:
        ask(cache, counter, *numbers)
        assert cache.nbytes <= max_bytes


def crisp_predictor(**options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5))
    y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
    return RulePredictor(DecisionTreeClassifier(max_depth=4, random_state=0), **options).fit(X, y), X


def test_counts_are_filled_as_they_are_asked():
    predictor, X = crisp_predictor()
    assert predictor.cache_info_["entries"] == 0
    predictor.predict_proba(X[:1], np.array([True, False, False, False, False]))
    few = predictor.cache_info_["entries"]
    predictor.predict_proba(X, np.array([True, True, False, False, False]))
    assert 0 < few < predictor.cache_info_["entries"] < predictor.rule_sets_[0].n_subrules


def test_equal_sub_rules_of_different_rules_are_one_entry():
    predictor, _ = crisp_predictor()
    predictor._reduced[0].reduce(np.array(list(np.ndindex(2, 2, 2, 2, 2)), dtype=bool))
    rules = predictor.rule_sets_[0].rules
    different = {
        frozenset((j, rule.conditions[j]) for k, j in enumerate(rule.conditions) if bits >> k & 1)
        for rule in rules
        for bits in range(1, 2 ** len(rule.conditions))
    }
    assert predictor.cache_info_["entries"] == len(different)
    assert len(different) < predictor.rule_sets_[0].n_subrules - len(rules)  # some are shared


def test_tiny_caches_give_the_same_answers():
    for cache_bytes in [0, 1, 100, 1000]:
        tiny, X = crisp_predictor(cache_bytes=cache_bytes)
        roomy, _ = crisp_predictor()
        masks = np.random.default_rng(1).random((120, 5)) < 0.5
        for _ in range(3):
            assert_array_equal(tiny.predict_proba(X, masks), roomy.predict_proba(X, masks))
            assert tiny.cache_info_["bytes"] <= cache_bytes


def test_rows_in_small_parts_give_the_same_answers(monkeypatch):
    predictor, X = crisp_predictor()
    masks = np.random.default_rng(1).random((120, 5)) < 0.5
    whole, grid = predictor.predict_proba(X, masks), predictor.predict_grid(X, masks[:7])
    monkeypatch.setattr(reduced_module, "CELLS_AT_ONCE", 50)
    assert_allclose(predictor.predict_proba(X, masks), whole, rtol=0, atol=1e-12)
    assert_allclose(predictor.predict_grid(X, masks[:7]), grid, rtol=0, atol=1e-12)


# Joining what the rules say


def by_hand():
    """Two rules on a first and a second column, six rows: 4 of class 0 and 2 of class 1."""
    rules = RuleSet(
        [
            Rule({0: Interval(low=0.0), 1: Interval(low=0.0)}, np.array([0.9, 0.1])),
            Rule({0: Interval(low=0.0), 1: Interval(high=0.0)}, np.array([0.2, 0.8])),
            Rule({0: Interval(high=0.0), 1: Interval(low=0.0)}, np.array([0.5, 0.5])),
        ]
    )
    rows = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    return ReducedRules(rules, rows, np.array([0, 0, 0, 1, 0, 1]), 2, 10**6), rows


def joined(aggregation, rules, row, mask, own=None):
    seen = np.array([mask])
    combine = AGGREGATIONS[aggregation]
    own = None if own is None else np.array([own])
    return rules.answer(np.array([row]), seen, lambda *given: combine(rules, *given), own)[0]


def test_support_is_the_weight_of_a_rule():
    rules, _ = by_hand()
    # The first column is positive: two rules say 3 of 4 rows are class 0. The second: 3 rows of class 0 in each of two.
    assert_allclose(joined("support", rules, [1.0, np.nan], [True, False]), [0.75, 0.25])
    assert_allclose(joined("support", rules, [np.nan, 1.0], [False, True]), [1.0, 0.0])
    assert_allclose(joined("support", rules, [np.nan, -1.0], [False, True]), [1 / 3, 2 / 3])
    assert_allclose(joined("support", rules, [1.0, 1.0], [True, True]), [0.9, 0.1])


def test_no_rule_left_means_the_prior_and_a_default_only_once_that_is_certain():
    rules, _ = by_hand()
    assert_allclose(joined("support", rules, [-1.0, -1.0], [True, True]), [4 / 6, 2 / 6])
    with_default = RuleSet(rules.rules.rules, default=np.array([0.0, 1.0]))
    again = ReducedRules(with_default, by_hand()[1], np.array([0, 0, 0, 1, 0, 1]), 2, 0)
    for aggregation in AGGREGATIONS:
        assert_allclose(joined(aggregation, again, [-1.0, -1.0], [True, True]), [0.0, 1.0])
        assert_allclose(joined(aggregation, again, [np.nan, np.nan], [False, False]), [4 / 6, 2 / 6])


def test_the_best_rule_is_the_most_confident_one_then_the_best_supported():
    rules = RuleSet(
        [
            Rule({0: Interval(low=0.0), 2: Interval(low=0.0)}),
            Rule({1: Interval(low=0.0), 2: Interval(low=0.0)}),
            Rule({1: Interval(low=-9.0), 2: Interval(low=1.0)}),
        ]
    )
    rows = np.array([[1.0, 1, 0], [-1, 1, 0], [-1, 1, 0], [-1, -1, 0], [-1, -1, 0]])
    reduced = ReducedRules(rules, rows, np.array([0, 1, 1, 0, 0]), 2, 10**6)
    both = [True, True, False]
    # The first says class 0 for sure, the second 2 of 3 class 1, the third 3 of 5 class 0.
    assert_allclose(joined("best", reduced, [1.0, 1.0, np.nan], both), [1.0, 0.0])
    assert_allclose(joined("best", reduced, [-1.0, 1.0, np.nan], both), [1 / 3, 2 / 3])
    assert_allclose(joined("support", reduced, [-1.0, 1.0, np.nan], both), [4 / 8, 4 / 8])
    assert by_best is not by_support


def test_of_equally_good_rules_the_better_supported_answers():
    rules = RuleSet([Rule({0: Interval(low=0.0), 2: Interval()}), Rule({1: Interval(low=0.0), 2: Interval()})])
    rows = np.array([[1.0, -1, 0], [-1, 1, 0], [-1, 1, 0]])
    reduced = ReducedRules(rules, rows, np.array([0, 1, 1]), 2, 10**6)
    assert_allclose(joined("best", reduced, [1.0, 1.0, np.nan], [True, True, False]), [0.0, 1.0])


def test_a_row_is_left_out_of_its_own_counts():
    for aggregation in AGGREGATIONS:
        rules, rows = by_hand()
        # Without row 3, of class 1, all rows with a positive first column are of class 0.
        assert_allclose(joined(aggregation, rules, rows[3], [True, False], own=1), [1.0, 0.0])
        assert_allclose(joined(aggregation, rules, rows[3], [False, False], own=1), [4 / 5, 1 / 5])


def test_in_a_list_what_follows_a_rule_that_answers_is_never_reached():
    rules = RuleSet(
        [
            Rule({0: Interval(low=0.0)}, np.array([1.0, 0.0])),
            Rule({1: Interval(low=0.0)}, np.array([0.0, 1.0])),
            Rule({2: Interval(low=0.0)}, np.array([0.5, 0.5])),
        ],
        ordered=True,
    )
    rows = np.ones((4, 3))
    reduced = ReducedRules(rules, rows, np.array([0, 1, 1, 1]), 2, 10**6)
    seen = np.array([[True, True, True], [False, True, True], [False, False, True], [False, False, False]])
    assert_array_equal(reduced.degrees(rows, seen), [[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1]])
    beaten = np.array([[-1.0, 1.0, 1.0]])
    assert_array_equal(reduced.degrees(beaten, np.ones((1, 3), bool)), [[0, 1, 0]])


def test_a_rule_without_a_value_is_worth_what_its_rows_say():
    rules = RuleSet([Rule({0: Interval(low=0.0)}), Rule({0: Interval(high=-9.0)})])
    reduced = ReducedRules(rules, np.array([[1.0], [1.0], [-1.0], [1.0]]), np.array([0, 1, 1, 1]), 2, 0)
    assert_allclose(reduced.values, [[1 / 3, 2 / 3], [1 / 4, 3 / 4]])  # no row: the prior
