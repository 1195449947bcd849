"""The loop that buys: money, availability, order, and the record of it all."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

from askwise import DynamicFeatureSelector, InvalidInput, Prices
from askwise.acquisition import RunMemory, nothing_known
from askwise.constraints import first
from askwise.epistemic import BeliefModel
from askwise.errors import AskwiseError
from askwise.policy import Policy
from askwise.predict import ImputedPredictor, wrap
from askwise.stopping import Stopping

FEATURES = ["a", "b", "c", "d"]


class Fixed(Policy):
    """The same scores for every row; notes what it is shown."""

    def __init__(self, ranking):
        self.ranking = ranking

    def fit(self, context):
        self.shown_ = []
        return self

    def scores(self, state):
        self.shown_.append((state.ids, state.rows.values.copy(), state.mask.copy(), state.left.copy()))
        return np.tile(np.asarray(self.ranking, dtype=float), (len(state.mask), 1))


def sign_of_sum(X):
    positive = 1 / (1 + np.exp(-np.asarray(X, dtype=float).sum(axis=1)))
    return np.column_stack([1 - positive, positive])


def table(n=6, seed=0, columns=FEATURES):
    return pd.DataFrame(np.random.default_rng(seed).normal(size=(n, len(columns))), columns=columns)


def selector(scores=(4, 3, 2, 1), policy=None, **options):
    X = table(40, seed=1)
    policy = Fixed(scores) if policy is None else policy
    options = {"adaptation": "mean", "policy": policy, "progress": False, "random_state": 0, **options}
    return DynamicFeatureSelector(sign_of_sum, **options).fit(X, np.arange(40) % 2)


def names(run):
    """Features bought, row by row, as words."""
    return ["".join(run.features[i] for i in row if i >= 0) for row in run.order]


def test_features_are_bought_by_score_while_the_money_lasts():
    run = selector([1, 4, 2, 3]).acquire(table(2), budget=3)
    assert names(run) == ["bdc", "bdc"]
    assert run.costs.tolist() == [[1, 1, 1]] * 2


def test_without_a_budget_everything_is_bought():
    assert names(selector([1, 4, 2, 3]).acquire(table(2))) == ["bdca"] * 2


def test_the_selectors_own_budget_is_the_default():
    owner = selector(budget=2)
    assert names(owner.acquire(table(1))) == ["ab"]
    assert names(owner.acquire(table(1), budget=1)) == ["a"]
    assert names(owner.acquire(table(1), budget=np.inf)) == ["abcd"]


def test_what_is_too_dear_is_passed_over_for_the_best_that_is_affordable():
    run = selector([4, 3, 2, 1], costs=[5, 2, 2, 1]).acquire(table(1), budget=3)
    assert names(run) == ["bd"]
    assert run.costs.tolist() == [[2, 1]]


def test_each_row_has_its_own_budget():
    run = selector(costs=[1, 1, 2, 2]).acquire(table(4), budget=[0, 1, 3, 10])
    assert names(run) == ["", "a", "ab", "abcd"]
    assert run.order.tolist()[1] == [0, -1, -1, -1]
    assert run.spent_after(-1).tolist() == [0, 1, 2, 6]


def test_a_feature_that_one_row_cannot_have():
    available = np.ones((3, 4), dtype=bool)
    available[1, 0] = False
    run = selector().acquire(table(3), budget=2, available=available)
    assert names(run) == ["ab", "bc", "ab"]
    assert names(selector().acquire(table(3), budget=2, available=[False, True, True, True])) == ["bc"] * 3


def test_missing_cells_cannot_be_had():
    X = table(3)
    X.loc[1, "a"] = np.nan
    X.loc[2] = np.nan
    run = selector().acquire(X, budget=2)
    assert names(run) == ["ab", "bc", ""]
    assert_array_equal(run.proba[2], np.tile(run.proba[2, 0], (3, 1)))


def test_free_features_come_first_as_steps_of_price_zero():
    run = selector([4, 3, 2, 1], costs={"c": 0, "d": 0}).acquire(table(2), budget=1)
    assert names(run) == ["cda", "cda"]
    assert run.costs.tolist() == [[0, 0, 1]] * 2


def test_free_features_are_had_with_no_money_and_whatever_their_score():
    run = selector([4, 3, 2, -np.inf], costs={"d": 0}).acquire(table(2), budget=0)
    assert names(run) == ["d", "d"]
    assert run.spent_after(-1).tolist() == [0, 0]


def test_a_free_feature_that_a_row_lacks_is_not_had():
    X = table(2)
    X.loc[0, "d"] = np.nan
    assert names(selector(costs={"d": 0}).acquire(X, budget=1)) == ["a", "da"]


def test_no_money_no_purchase():
    run = selector().acquire(table(3), budget=0)
    assert run.n_steps == 0
    assert run.order.shape == run.costs.shape == (3, 0)
    assert run.proba.shape == (3, 1, 2)
    assert run.uncertainty.total.shape == (3, 1)
    assert run.mask_after(0).tolist() == [[False] * 4] * 3
    assert run.spent_after(-1).tolist() == [0, 0, 0]
    assert len(run.to_frame()) == 3


def test_a_row_that_can_afford_nothing_beside_rows_that_can():
    run = selector(costs=[2, 2, 2, 2]).acquire(table(3), budget=[4, 1.99, 2])
    assert names(run) == ["ab", "", "a"]
    assert_array_equal(run.proba[1], np.tile(run.proba[1, 0], (run.n_steps + 1, 1)))


def test_ten_times_a_tenth_buys_what_costs_one():
    tenths = sum([0.1] * 10)
    assert tenths < 1
    assert names(selector(costs={"a": 1}).acquire(table(1), budget=tenths)) == ["a"]


def test_one_buys_ten_times_a_tenth():
    columns = [f"c{i}" for i in range(12)]
    X = table(40, seed=1, columns=columns)
    buyer = DynamicFeatureSelector(
        sign_of_sum, costs=np.full(12, 0.1), adaptation="mean", policy=Fixed(np.zeros(12)), progress=False
    ).fit(X, np.arange(40) % 2)
    run = buyer.acquire(X[:1], budget=1)
    assert run.order.tolist() == [list(range(10))]
    assert_allclose(run.spent_after(-1), 1)


def test_slack_is_no_present():
    assert names(selector(costs={"a": 1}).acquire(table(1), budget=1 - 1e-6)) == [""]


def test_shared_set_up_costs_are_charged_once_along_the_way():
    prices = Prices({"a": 7.27, "b": 5.20, "c": 5.20, "d": 1}, shared=[(["a", "b", "c"], 2.10)])
    run = selector([4, 2, 3, 1], costs=prices).acquire(table(1))
    assert names(run) == ["acbd"]
    # The needle is paid with a; c and b are 2.10 cheaper.
    assert_allclose(run.costs, [[7.27, 3.10, 3.10, 1.00]])
    assert_allclose(run.spent_after(-1), 14.47)


def test_shared_savings_make_things_affordable():
    prices = Prices({"a": 4, "b": 5}, shared=[(["a", "b"], 4)])
    run = selector([1, 9, 0, 0], costs=prices).acquire(table(1), budget=5)
    assert names(run) == ["ba"]  # b for 5 leaves nothing, and a is free after it
    assert run.costs.tolist() == [[5, 0]]
    run = selector([9, 5, 0, 0], costs=prices).acquire(table(1), budget=5)
    assert names(run) == ["ab"]
    assert run.costs.tolist() == [[4, 1]]


def test_what_becomes_free_is_taken_next():
    prices = Prices([4, 4, 1, 1], shared=[(["a", "b"], 4)])
    run = selector([4, 1, 3, 2], costs=prices).acquire(table(1))
    assert names(run) == ["abcd"]
    assert run.costs.tolist() == [[4, 0, 1, 1]]


def test_what_is_known_is_not_charged_and_triggers_savings():
    prices = Prices([4, 3, 1, 1], shared=[(["a", "b"], 2)])
    known = np.zeros((2, 4), dtype=bool)
    known[0, 0] = True
    run = selector([4, 3, 2, 1], costs=prices).acquire(table(2), budget=4, known=known)
    assert names(run) == ["bcd", "a"]
    assert run.costs.tolist() == [[1, 1, 1], [4, 0, 0]]
    assert_array_equal(run.start, known)
    assert_array_equal(run.mask_after(0), known)


def test_what_is_known_is_in_the_first_prediction():
    X = table(2)
    owner = selector()
    run = owner.acquire(X, budget=0, known=[True, False, False, False])
    only_a = X.assign(b=np.nan, c=np.nan, d=np.nan)
    assert_array_equal(run.proba[:, 0], owner.predict_proba(only_a))


def test_ties_go_to_the_lowest_index():
    assert names(selector([1, 2, 2, 2]).acquire(table(1))) == ["bcda"]
    assert names(selector([0, 0, 0, 0]).acquire(table(1))) == ["abcd"]


def test_minus_infinity_is_never_bought():
    run = selector([-np.inf, 1, -np.inf, -5]).acquire(table(2))
    assert names(run) == ["bd", "bd"]
    assert selector([-np.inf] * 4).acquire(table(2)).n_steps == 0


def test_plus_infinity_is_bought_first():
    assert names(selector([1, np.inf, 2, 3]).acquire(table(1), budget=1)) == ["b"]


def test_scores_that_are_refused():
    for scores, problem in (([np.nan, 1, 1, 1], "NaN"), ([1, 2], r"shape \(2, 2\)"), ([1] * 5, r"shape \(2, 5\)")):
        with pytest.raises(AskwiseError, match=rf"Fixed.scores must return numbers of shape \(2, 4\).*got {problem}"):
            selector(scores).acquire(table(2))


class PerRow(Policy):
    """Buys the features of each row in an order that its first known value decides, to make rows part ways."""

    def scores(self, state):
        first = state.rows.values[:, [0]]
        sign = np.where(np.nan_to_num(first) > 0, 1.0, -1.0)
        return np.hstack([np.full_like(first, 9.0), sign * np.array([[3.0, 2.0, 1.0]])])


def test_rows_part_ways():
    X = table(2)
    X["a"] = [1.0, -1.0]
    run = selector(policy=PerRow()).acquire(X)
    assert names(run) == ["abcd", "adcb"]


class Enough(Stopping):
    """Stops row r after r purchases."""

    def stops(self, state):
        return state.mask.sum(axis=1) >= state.ids


def test_rows_stop_one_by_one_and_are_carried_forward():
    X = table(5)
    owner = selector()
    run = owner.acquire(X, stop=Enough())
    assert names(run) == ["", "a", "ab", "abc", "abcd"]
    assert run.order.shape == (5, 4)
    full = owner.acquire(X)
    for r in range(5):
        assert_array_equal(run.order[r], [*range(r), *[-1] * (4 - r)])
        assert_array_equal(run.costs[r], [1] * r + [0] * (4 - r))
        assert_allclose(run.proba[r, : r + 1], full.proba[r, : r + 1], rtol=0, atol=1e-12)
        assert_array_equal(run.proba[r, r:], np.tile(run.proba[r, r], (5 - r, 1)))
        assert_array_equal(run.uncertainty.total[r, r:], np.tile(run.uncertainty.total[r, r], 5 - r))


def test_a_row_that_has_stopped_stays_stopped():
    class Once(Stopping):
        """Wants to stop row 0 at the very start, and never again."""

        def __init__(self):
            self.asked = 0

        def stops(self, state):
            self.asked += 1
            return (np.arange(len(state.mask)) == 0) & (self.asked == 1)

    assert names(selector().acquire(table(2), stop=Once())) == ["", "abcd"]


def test_a_policy_sees_what_is_known_and_nothing_else():
    X = table(3)
    X.loc[2, "b"] = np.nan
    owner = selector([1, 4, 2, 3], costs=[1, 2, 1, 1])
    run = owner.acquire(X, budget=[9, 2, 9], known=np.array([[False] * 4] * 3))
    assert len(owner.policy_.shown_) == run.n_steps
    for t, (ids, seen, mask, left) in enumerate(owner.policy_.shown_):
        assert ids.tolist() == np.flatnonzero(run.order[:, t] >= 0).tolist()  # only rows that can buy are scored
        assert_array_equal(mask, run.mask_after(t)[ids])
        assert_array_equal(np.isnan(seen), ~mask)
        assert_array_equal(seen[mask], X.to_numpy()[ids][mask])
        assert_allclose(left, (np.array([9, 2, 9]) - run.spent_after(t))[ids])


def test_a_policy_is_not_asked_before_what_is_free_is_had():
    owner = selector([1, 2, 3, 4], costs={"a": 0})
    owner.acquire(table(2), budget=1)
    assert_array_equal(np.isnan(owner.policy_.shown_[0][1]), [[False, True, True, True]] * 2)


def test_what_is_not_available_is_not_seen_where_it_is_free():
    owner = selector([1, 2, 3, 4], costs={"a": 0})
    owner.acquire(table(2), budget=1, available=[False, True, True, True])
    assert np.isnan(owner.policy_.shown_[0][1]).all()


@pytest.mark.parametrize("declines", [True, False])
def test_the_only_feature_left_is_scored_where_a_policy_may_decline_it(declines):
    owner = selector([1, 2, 3, 4])
    owner.policy_.never_declines = not declines
    owner.acquire(table(2), available=[True, False, False, False])
    assert len(owner.policy_.shown_) == declines


def test_groups_are_bought_as_one_and_their_missing_parts_stay_hidden():
    X = table(3)
    X.loc[1, "a"] = np.nan
    X.loc[2, ["a", "c"]] = np.nan
    owner = selector([3, 2, 1], groups={"panel": ["a", "c"]})
    assert owner.features_ == ["panel", "b", "d"]
    run = owner.acquire(X, budget=1)
    assert [row[0] for row in run.order] == [0, 0, 1]  # nobody has any of the panel in the last row
    assert run.costs[:, 0].tolist() == [1, 1, 1]
    half = X.loc[[1]].assign(a=np.nan, b=np.nan, d=np.nan)
    assert_array_equal(run.proba[[1], 1], owner.predict_proba(half))


def test_what_cannot_matter_to_the_predictor_is_not_bought():
    class OnlyEven(ImputedPredictor):
        def open_columns(self, rows):
            return super().open_columns(rows) & np.array([True, False, True, False])

    run = selector(adaptation=OnlyEven(None), costs={"b": 0}).acquire(table(2))
    assert names(run) == ["ac", "ac"]


def test_predictions_along_the_way_are_those_of_the_predictor():
    X = table(5)
    owner = selector([1, 4, 2, 3])
    run = owner.acquire(X, budget=[0, 1, 2, 3, 4])
    for t in range(run.n_steps + 1):
        seen = X.where(run.mask_after(t))
        assert_allclose(run.proba[:, t], owner.predict_proba(seen), rtol=0, atol=1e-12)
        assert_array_equal(run.predict(t), owner.predict(seen))
        assert_allclose(run.uncertainty.total[:, t], owner.uncertainty(seen).total, rtol=0, atol=1e-12)
    assert_array_equal(run.predict(), run.predict(run.n_steps))


def ragged_run():
    return selector(costs=[0, 1, 2, 4]).acquire(table(4), budget=[0, 3, 10, 1])


def test_masks_and_money_follow_from_the_record():
    run = ragged_run()
    assert names(run) == ["a", "abc", "abcd", "ab"]
    for t in range(run.n_steps + 1):
        by_hand = run.start.copy()
        for r in range(4):
            for i in run.order[r, :t]:
                if i >= 0:
                    by_hand[r, i] = True
        assert_array_equal(run.mask_after(t), by_hand)
        assert_allclose(run.spent_after(t), run.costs[:, :t].sum(axis=1))
    assert_array_equal(run.mask_after(-1), run.mask_after(run.n_steps))
    assert run.spent_after(-1).tolist() == [0, 3, 7, 1]


def test_asking_a_run_changes_nothing():
    run = ragged_run()
    run.mask_after(0)[:] = True
    assert not run.start.any()


def test_steps_that_do_not_exist():
    run = ragged_run()
    for t in (5, 99, -2):
        for ask in (run.mask_after, run.spent_after, run.predict):
            with pytest.raises(InvalidInput, match=rf"from 0 to 4 \(-1 = the end\); got {t}"):
                ask(t)


def test_each_case_is_known_after_as_many_purchases_as_are_asked_for():
    run = ragged_run()
    known = run.known_after(np.array([1, 0, 3, 2]))
    expected = [run.mask_after(t)[r] for r, t in enumerate([1, 0, 3, 2])]
    assert_array_equal(known, expected)


def test_the_tidy_table_says_the_same_as_the_arrays():
    run = ragged_run()
    frame = run.to_frame()
    assert frame.columns[:6].tolist() == ["case", "step", "feature", "cost", "spent", "prediction"]
    assert frame["case"].value_counts().sort_index().tolist() == [2, 4, 5, 3]  # step 0 and one per purchase
    for row in frame.itertuples():
        t, r = row.step, row.case
        assert pd.isna(row.feature) if t == 0 else (row.feature == run.features[run.order[r, t - 1]])
        assert row.cost == (0 if t == 0 else run.costs[r, t - 1])
        assert row.spent == run.spent_after(t)[r]
        assert row.prediction == run.predict(t)[r]
        assert [row.proba_0, row.proba_1] == run.proba[r, t].tolist()
        assert row.total == run.uncertainty.total[r, t]
    assert frame["epistemic"].isna().all() == np.isnan(run.uncertainty.epistemic).all()


def test_the_truth_is_not_changed():
    X = table(3)
    before = X.copy()
    known, available = np.zeros((3, 4), bool), np.ones((3, 4), bool)
    budget = np.array([1.0, 2.0, 3.0])
    selector().acquire(X, budget=budget, known=known, available=available)
    assert_frame_equal(X, before)
    assert not known.any()
    assert available.all()
    assert budget.tolist() == [1, 2, 3]


def state(n=2, left=5.0, costs=(1, 2, 3, 4)):
    predictor = ImputedPredictor(wrap(sign_of_sum, [0, 1])).fit(table(40, seed=1), np.arange(40) % 2)
    schema = predictor.schema_
    made = nothing_known(
        schema, Prices(costs).resolve(schema.features), BeliefModel(predictor), schema.encode(table(n))
    )
    made.left = np.full(n, left)
    return made


def test_receiving_takes_the_cells_of_what_is_bought_and_its_price():
    now = state()
    truth = table(2).to_numpy()
    paid = now.receive(np.array([2, -1]), truth)
    assert paid.tolist() == [[3], [0]]
    assert now.left.tolist() == [2, 5]
    assert_array_equal(now.rows.values, [[np.nan, np.nan, truth[0, 2], np.nan], [np.nan] * 4])
    assert_array_equal(now.rows.observed, now.mask)


def test_a_copy_is_independent():
    now = state()
    before = now.copy()
    belief = before.belief.proba.copy()
    now.receive(np.array([0, 3]), np.ones((2, 4)))
    now.available[:] = False
    assert not np.allclose(now.belief.proba, belief)
    assert not before.mask.any()
    assert np.isnan(before.rows.values).all()
    assert before.left.tolist() == [5, 5]
    assert before.available.all()
    assert_array_equal(before.belief.proba, belief)


def test_money_never_falls_below_nothing():
    now = state(1, left=1 - 1e-10)
    now.receive(np.array([0]), np.ones((1, 4)))
    assert now.left.tolist() == [0]


def test_a_part_shares_what_is_believed_with_its_whole():
    """Rows are believed once, whether the state or a part of it asks first."""
    asked = []

    class Counting(BeliefModel):
        def believe(self, rows, **options):
            asked.append(rows.values.copy())
            return super().believe(rows, **options)

    now = state(3)
    now.beliefs = Counting(now.beliefs.predictor)
    assert_array_equal(now.part(np.array([True, False, True])).belief.proba, now.belief.proba[[0, 2]])
    now.receive(np.array([1, -1, 2]), table(3).to_numpy())
    part = now.part(np.array([False, True, True]))
    assert_array_equal(part.belief.proba, now.belief.proba[1:])
    assert_array_equal(now.belief.proba, now.beliefs.predictor.proba(now.rows))
    # At first all three; then the one that changed and was asked about, then the other that changed.
    assert [len(rows) for rows in asked] == [3, 1, 1]


def test_a_trajectory_prints_as_one_line():
    said = "<Trajectory: 2 cases, up to 3 purchases; to_frame() has a row per step>"
    assert repr(selector().acquire(table(2), budget=3)) == said


def test_cases_keep_the_index_of_the_table():
    X = table(3).set_axis(["p7", "p2", "p5"])
    chosen = selector()
    assert chosen.acquire(X, budget=1).to_frame()["case"].tolist() == ["p7", "p7", "p2", "p2", "p5", "p5"]
    assert chosen.acquire(X.reset_index(drop=True), budget=0).to_frame()["case"].tolist() == [0, 1, 2]


def test_questions_about_the_same_cases_share_one_run():
    rows, labels = table(30, seed=2), np.arange(30) % 2
    found, apart = (selector([1, 4, 2, 3]) for _ in range(2))
    price = found.savings(rows)
    n_shown = len(found.policy_.shown_)
    stop = found.calibrate_stop(rows, labels, agreement=0.7, confidence=0.6)
    measures = found.evaluate(rows, labels, budgets=[1, 3])
    assert len(found.policy_.shown_) == n_shown
    assert_frame_equal(measures, apart.evaluate(rows, labels, budgets=[1, 3]))  # no longer run is there to share
    assert stop.threshold == apart.calibrate_stop(rows, labels, agreement=0.7, confidence=0.6).threshold
    assert_frame_equal(price, apart.savings(rows))


def test_cases_run_again_if_anything_has_changed():
    rows, labels = table(30, seed=2), np.arange(30) % 2
    found = selector([1, 4, 2, 3])
    found.evaluate(rows, labels, budgets=[2])
    for change in (
        lambda: rows.iloc[::-1],
        lambda: rows + 1,
        lambda: found.set_params(risk_weight=0.5) and rows,
        lambda: found.policy_.set_params(ranking=[4, 1, 2, 3]) and rows,
    ):
        n_shown = len(found.policy_.shown_)
        given = change()
        again = found.evaluate(given, labels, budgets=[2])
        assert len(found.policy_.shown_) > n_shown
        other = selector([1, 4, 2, 3], risk_weight=found.risk_weight)
        other.policy_.set_params(ranking=found.policy_.ranking)
        assert_frame_equal(again, other.evaluate(given, labels, budgets=[2]))


def test_cases_run_again_after_a_change_in_place():
    X, y = load_iris(return_X_y=True)
    X, y = X[::3], y[::3]
    model = GaussianNB().fit(X, y)
    found = DynamicFeatureSelector(
        model, constraints=[first("x1")], costs=[1, 2, 3, 4], calibration=None, random_state=0
    ).fit(X, y)

    def change_rules():
        assert found.schema_.rules is not None
        found.schema_.rules.first[:] = [True, False, False, False]

    def change_model_array():
        model.theta_[:] = model.theta_[::-1].copy()

    before = found.evaluate(X, y, budgets=[2])
    for change in (change_rules, change_model_array, lambda: model.fit(X, (y + 1) % 3)):
        change()
        after = found.evaluate(X, y, budgets=[2])
        found._runs._kept = []
        assert_frame_equal(after, found.evaluate(X, y, budgets=[2]))
        assert not after.equals(before)
        before = after


def test_what_cannot_be_compared_runs_every_time():
    X, y = load_iris(return_X_y=True)
    model = GaussianNB().fit(X, y)
    box = wrap(lambda given: model.predict_proba(given), classes=[0, 1, 2])
    found = DynamicFeatureSelector(box, epistemic=None, calibration=None, random_state=0).fit(X[::3], y[::3])
    found.evaluate(X[:9], y[:9], budgets=[2])
    assert not found._runs._kept


def test_runs_are_not_kept_elsewhere_and_few_of_them():
    found = selector()
    for seed in range(RunMemory.MOST_RUNS + 2):
        found.savings(table(5, seed=seed))
    assert len(found._runs._kept) == RunMemory.MOST_RUNS
    assert pickle.loads(pickle.dumps(found))._runs._kept == []
    assert found.with_policy("random")._runs is found._runs
