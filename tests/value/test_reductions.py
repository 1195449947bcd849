"""The training-free value against Eq. 8 by enumeration, and its bounds of memory."""

import tracemalloc

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose

from askwise import Prices
from askwise.acquisition import Acquisition
from askwise.epistemic import BeliefModel, FeatureDistance
from askwise.predict import ConditionalPredictor, wrap
from askwise.table.rows import EncodedRows
from askwise.table.schema import read_table
from askwise.value import NeighborValue, neighbors
from askwise.value.outcomes import Outcomes
from askwise.value.reductions import expected_reductions

SIZES = ((16, 2, 5, 3), (24, 6, 2, 2), (30, 3, 4, 2), (6, 4, 3, 10))


def drawn_joint(seed):
    """p(x) of four discrete features, p(y | x) with an interaction of two of them: arrays (..., ) and (..., C)."""
    rng = np.random.default_rng(seed)
    sizes, n_classes = SIZES[seed % len(SIZES)], 2 + seed % 3
    p_x = rng.dirichlet(np.full(np.prod(sizes), 2.0)).reshape(sizes)
    cells = np.indices(sizes).reshape(4, -1)
    logits = sum(
        rng.normal(0, scale, (size, n_classes))[cells[j]]
        for j, (size, scale) in enumerate(zip(sizes, rng.permutation([1.8, 1.0, 0.5, 0.0]), strict=True))
    )
    logits += rng.normal(0, 1.2, (sizes[0], sizes[1], n_classes))[cells[0], cells[1]]
    p_y = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return p_x, p_y.reshape(*sizes, n_classes)


def enumerated(p_x, p_y, known):
    """Eq. 8 for the exact model, which is I(y; x_i | x_S): {unknown feature: nats}."""
    at = tuple(known.get(j, slice(None)) for j in range(4))
    joint = p_x[at][..., None] / p_x[at].sum() * p_y[at]
    before, unknown = joint.reshape(-1, p_y.shape[-1]).sum(axis=0), [j for j in range(4) if j not in known]
    exact = {}
    for position, j in enumerate(unknown):
        both = joint.sum(axis=tuple(a for a in range(len(unknown)) if a != position))
        exact[j] = (both * np.log(both / both.sum(axis=1, keepdims=True) / before)).sum()
    return exact


def as_table(codes, as_numbers):
    columns = {
        f"x{j}": codes[:, j].astype(float) if as_numbers else np.char.mod("v%02d", codes[:, j]) for j in range(4)
    }
    return pd.DataFrame(columns)


def valued(predictor, epistemic=None):
    return NeighborValue(BeliefModel(predictor, epistemic), predictor.schema_)


def nothing(n_columns, n=1):
    return EncodedRows(np.full((n, n_columns), np.nan))


def state_of(value, rows):
    """Cases of which `rows` is known, with money for everything else."""
    mask = value.schema.any_column(rows.observed)
    prices = Prices(np.ones(mask.shape[1])).resolve(value.schema.features)
    return Acquisition(value.schema, prices, value.beliefs, rows, mask, np.ones_like(mask), np.full(len(rows), np.inf))


def fitted(seed, n, as_numbers, n_neighbors=100):
    """The value around the exact model of a joint, and the codes of the rows it was fitted on."""
    p_x, p_y = drawn_joint(seed)
    rng = np.random.default_rng([seed, n])
    codes = np.column_stack(np.unravel_index(rng.choice(p_x.size, n, p=p_x.ravel()), p_x.shape))

    def model(X):
        cells = [column if as_numbers else column.astype(str).str[1:] for _, column in X.items()]
        return p_y[tuple(np.nan_to_num(np.asarray(column, dtype=float)).astype(int) for column in cells)]

    n_classes = p_y.shape[-1]
    predictor = ConditionalPredictor(wrap(model, list(range(n_classes))), n_neighbors=n_neighbors, random_state=0)
    predictor.fit(as_table(codes, as_numbers), np.arange(n) % n_classes)
    return valued(predictor), codes


def errors(seed, n, as_numbers, known=(), n_neighbors=100):
    """Absolute errors in nats for the first rows' unknown features."""
    value, codes = fitted(seed, n, as_numbers, n_neighbors)
    rows = np.arange(6 if known else 1)
    mask = np.zeros((len(rows), 4), dtype=bool)
    mask[:, list(known)] = True
    seen = value.predictor.training_rows_.take(rows).masked(mask)
    found = value.reductions(state_of(value, seen))[0]
    p_x, p_y = drawn_joint(seed)
    exact = [enumerated(p_x, p_y, {j: codes[r, j] for j in known}) for r in rows]
    return np.array([abs(found[r, j] - nats) for r in rows for j, nats in exact[r].items()])


def test_the_value_agrees_with_eq_8_on_known_joints():
    """Within .3 nats / sqrt(K) on average and four times that for every feature, for categories and for numbers."""
    for as_numbers in (False, True):
        for known, k in (((), 1000), ((1,), 400), ((1, 2), 200)):
            found = np.concatenate([errors(seed, 4000, as_numbers, known, k) for seed in range(4)])
            assert found.mean() < 0.3 / np.sqrt(k), (as_numbers, known)
            assert found.max() < 1.2 / np.sqrt(k), (as_numbers, known)


def test_the_error_falls_with_the_number_of_rows():
    for as_numbers in (False, True):
        by_rows = [np.mean([errors(seed, n, as_numbers).mean() for seed in range(8)]) for n in (100, 300, 1000)]
        assert by_rows[0] > by_rows[1] > by_rows[2]
        assert by_rows[2] < by_rows[0] / 2


def decided_by_the_first(n_values, n_each):
    """A column of many values that decides the class, and one of two that agrees with it in 95 % of the rows."""
    many = np.repeat(np.arange(n_values), n_each)
    y = many % 2
    copy = np.where(np.arange(len(y)) % 20 == 0, 1 - y, y)
    return many, copy, y


def model_of_the_first(X):
    first = np.asarray(X)[:, 0]
    return np.eye(2)[np.array([int(str(cell).lstrip("v").split(".")[0]) % 2 for cell in first])]


def test_a_feature_of_many_values_that_settles_the_class_comes_first():
    for n_values, n_each in ((16, 60), (40, 50)):
        many, copy, y = decided_by_the_first(n_values, n_each)
        letters = pd.DataFrame({"many": np.char.mod("v%d", many), "copy": np.char.mod("v%d", copy)})
        for table in (letters, np.column_stack([many, copy]).astype(float)):
            predictor = ConditionalPredictor(wrap(model_of_the_first, [0, 1]), random_state=0).fit(table, y)
            value = valued(predictor)
            found = value.reductions(state_of(value, nothing(2)))[0][0]
            assert found.argmax() == 0
            assert_allclose(found[0], np.log(2), rtol=0.02)


def test_a_group_whose_many_combinations_settle_the_class_is_worth_all_of_it():
    many, copy, y = decided_by_the_first(20, 60)
    table = np.column_stack([many, many // 4, copy]).astype(float)
    predictor = ConditionalPredictor(wrap(model_of_the_first, [0, 1]), random_state=0).fit(table, y)
    value = NeighborValue(BeliefModel(predictor), read_table(table, {"pair": [0, 1]})[0])
    found = value.reductions(state_of(value, nothing(3)))[0][0]
    assert_allclose(found[0], np.log(2), rtol=0.02)


def one_level(outcome):
    """The outcomes of a feature without coarse ones, from the outcome of each row."""
    return Outcomes.joined([(outcome, np.zeros(outcome.max() + 1, dtype=int))])


def by_hand(outcome, answers):
    """Reductions of u by one feature from equally weighted completions with these answers."""
    n = len(answers)
    index, weights, wanted = np.arange(n)[None], np.full((1, n), 1 / n), np.ones((1, 1), dtype=bool)
    proba = np.asarray(answers)[None]
    return expected_reductions(index, weights, proba, one_level(outcome), wanted, n_classes=2)[0].item()


def test_outcomes_that_differ_by_chance_alone_are_worth_little():
    """Thirty values that tell nothing, in 100 completions: plug-in information would say .04 nats and more."""
    rng = np.random.default_rng(0)
    chance = [by_hand(rng.integers(30, size=100), np.column_stack([p := rng.random(100), 1 - p])) for _ in range(50)]
    assert np.mean(chance) < 0.01
    once_each = by_hand(np.arange(100), np.column_stack([p := rng.random(100), 1 - p]))
    assert once_each < 0.01


def test_the_members_part_stays_finite_where_an_outcome_rules_a_class_out():
    n = 100
    outcome = np.arange(n) % 2
    primary, member = np.eye(2)[outcome], np.full((n, 2), 0.5)
    index, weights, wanted = np.arange(n)[None], np.full((1, n), 1 / n), np.ones((1, 1), dtype=bool)
    proba = np.hstack([primary, member])[None]
    discrepancy, epistemic = expected_reductions(index, weights, proba, one_level(outcome), wanted, n_classes=2)
    assert_allclose(discrepancy, np.log(2), rtol=0.01)
    assert np.isfinite(epistemic).all()
    assert (epistemic < 0).all()  # member and model agreed before and no longer do


def test_cases_and_features_are_evaluated_together_as_each_alone_and_only_where_they_are_wanted():
    rng = np.random.default_rng(0)
    features = [(rng.integers(n, size=80), rng.integers(coarse, size=n)) for n, coarse in ((20, 4), (6, 1), (1, 1))]
    index, weights = rng.integers(80, size=(5, 30)), rng.dirichlet(np.full(30, 0.5), size=5)
    weights[:, -9:] = 0.0  # too far away: what only occurs in these does not occur
    proba = rng.dirichlet(np.ones(3), size=(5, 30, 3)).reshape(5, 30, 9)
    wanted = rng.random((5, 3)) < 0.7
    together = expected_reductions(index, weights, proba, Outcomes.joined(features), wanted, n_classes=3)
    for r, i in np.ndindex(wanted.shape):
        case = index[[r], :-9], weights[[r], :-9], proba[[r], :-9]
        alone = expected_reductions(*case, Outcomes.joined([features[i]]), np.array([[True]]), n_classes=3)
        for part, expected in zip(together, alone, strict=True):
            assert_allclose(part[r, i], expected.item() if wanted[r, i] else 0.0, rtol=1e-9, atol=1e-12)
    assert np.abs(together[1][wanted]).max() > 1e-3


def test_a_query_asks_the_model_nothing_new_about_a_case_of_which_nothing_is_known():
    asked = []

    def model(X):
        asked.append(len(X))
        return model_of_the_first(X)

    many, copy, y = decided_by_the_first(4, 50)
    table = np.column_stack([many, copy]).astype(float)
    predictor = ConditionalPredictor(wrap(model, [0, 1]), random_state=0).fit(table, y)
    value = valued(predictor)
    before = len(asked)
    value.reductions(state_of(value, nothing(2, n=3)))
    assert len(asked) == before


def by_distance(n_columns, n=200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_columns))
    slope = np.where(np.arange(n_columns) < 5, 2.0, 0.05)

    def model(Z):
        positive = 1 / (1 + np.exp(-np.asarray(Z) @ slope))
        return np.column_stack([1 - positive, positive])

    y = (X @ slope > 0).astype(int)
    predictor = ConditionalPredictor(wrap(model, [0, 1]), n_neighbors=30, random_state=0).fit(X, y)
    value = valued(predictor, FeatureDistance(random_state=0).fit(predictor))
    return value, state_of(value, EncodedRows(X[:40]).masked(np.arange(n_columns) == 0))


def test_e_without_members_is_tried_for_the_best_features_only_and_never_lifts_the_others(monkeypatch):
    value, state = by_distance(60)
    mask = state.mask
    discrepancy, some = value.reductions(state)
    monkeypatch.setattr(neighbors, "MOST_TRIED", 60)
    every = value.reductions(state)[1]
    for r in range(len(mask)):
        best = np.argsort(np.where(mask[r], np.inf, -discrepancy[r]), kind="stable")[:32]
        others = np.setdiff1d(np.arange(60), best)
        assert_allclose(some[r, best], every[r, best], atol=1e-9)
        assert_allclose(some[r, others], some[r, best].mean(), atol=1e-9)
        for weight in (-1.0, 0.1, 1.0):
            assert np.where(mask[r], -np.inf, discrepancy[r] + weight * some[r]).argmax() in best


def test_the_memory_of_e_without_members_is_bounded():
    """40 rows of 800 columns: trying every feature at once would take 1 GB."""
    value, state = by_distance(800)
    tracemalloc.start()
    value.reductions(state)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6


def test_coarse_bins_of_a_number_grow_as_the_cube_root_of_the_completions():
    X = np.random.default_rng(0).normal(size=(4000, 1))
    schema, _ = read_table(X)
    found = [len(Outcomes.of_features(X, schema, n, random_state=0).feature) for n in (64, 512, 4096)]
    assert found == [6, 12, 24]


def test_cases_that_have_not_begun_do_not_change_the_gains_of_others():
    value, state = by_distance(12)
    begun = np.arange(len(state.rows)) % 3 > 0
    mixed = state_of(value, state.rows.masked(state.rows.observed & begun[:, None]))
    for found, alone in zip(
        value.reductions(mixed), value.reductions(state_of(value, state.rows.take(begun))), strict=True
    ):
        assert_allclose(found[begun], alone, atol=1e-9)
