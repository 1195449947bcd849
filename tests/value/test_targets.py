"""What each further feature really brought to training rows that are met as if they were new."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

import askwise.value.targets
from askwise.epistemic import AuxiliaryEnsemble, BeliefModel, EpistemicEstimator, FeatureDistance
from askwise.predict import ConditionalPredictor, ImputedPredictor, wrap
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema
from askwise.uncertainty import epistemic_divergence, kl_divergence, smoothed
from askwise.value import HeldOutStates, held_out_states, value_targets


def by_the_second_column(X):
    positive = np.where(np.asarray(X, dtype=float)[:, 1] > 0, 0.9, 0.1)
    return np.column_stack([1 - positive, positive])


def alternating(n=60):
    """The row next to each in the first column has the other label, and no two rows are alike."""
    X = np.column_stack([np.arange(n, dtype=float), np.where(np.arange(n) % 2, 1.0, -1.0)])
    return X, (X[:, 1] > 0).astype(int)


def rehearsal_of(predictor, y, groups=None, epistemic=None, fold=None):
    schema = Schema(predictor.schema_.columns, predictor.schema_.framed, groups)
    return HeldOutStates(predictor.training_rows_, y, schema, [BeliefModel(predictor, epistemic)], fold)


def test_a_row_is_left_out_of_its_own_answer():
    """The nearest row is the row itself, and the next one says the opposite: taken in, u would be 0."""
    X, y = alternating()
    predictor = ConditionalPredictor(wrap(by_the_second_column, [0, 1]), n_neighbors=1, random_state=0).fit(X, y)
    held_out = rehearsal_of(predictor, y)
    rows = np.arange(60)
    first_only = np.tile([True, False], (60, 1))
    found, epistemic = held_out.state(rows, first_only)
    expected = kl_divergence([0.9, 0.1], smoothed([0.1, 0.9], [0.5, 0.5]))
    assert_allclose(found, np.full(60, expected), rtol=1e-9)
    assert_array_equal(epistemic, np.zeros(60))
    taken_in = predictor.predict_proba(X, first_only)
    assert_allclose(taken_in, held_out.full, atol=1e-12)


def test_a_row_that_is_met_several_times_is_left_out_each_time():
    X, y = alternating()
    predictor = ConditionalPredictor(wrap(by_the_second_column, [0, 1]), n_neighbors=1, random_state=0).fit(X, y)
    held_out = rehearsal_of(predictor, y)
    rows = np.array([7, 3, 7, 50, 3])
    mask = np.array([[True, False], [True, False], [True, True], [False, False], [True, False]])
    together = held_out.state(rows, mask)[0]
    alone = [held_out.state(rows[[r]], mask[[r]])[0][0] for r in range(5)]
    assert_allclose(together, alone, rtol=0, atol=1e-12)
    assert together[0] > 1
    assert together[2] < 0.01  # everything known: the model's own answer


def test_with_everything_known_only_the_smoothing_is_left():
    X, y = alternating()
    predictor = ImputedPredictor(wrap(by_the_second_column, [0, 1])).fit(X, y)
    held_out = rehearsal_of(predictor, y)
    found = held_out.state(np.arange(60), np.ones((60, 2), dtype=bool))[0]
    assert_allclose(found, kl_divergence(held_out.full, smoothed(held_out.full, [0.5, 0.5])), rtol=1e-9)


def constant(p):
    return wrap(lambda X: np.tile([p, 1 - p], (len(X), 1)), [0, 1])


def test_each_row_is_answered_by_the_predictor_of_its_fold():
    X, y = alternating(12)
    shares = [0.2, 0.5, 0.9]
    predictors = [ImputedPredictor(constant(p)).fit(X, y) for p in shares]
    fold = np.array([2, 0, 1] * 4)
    beliefs = [BeliefModel(predictor) for predictor in predictors]
    held_out = HeldOutStates(EncodedRows(X), y, predictors[0].schema_, beliefs, fold)
    assert_allclose(held_out.full[:, 0], np.array(shares)[fold])
    rows = np.array([5, 0, 1, 2, 2, 11])
    found = held_out.state(rows, np.zeros((6, 2), dtype=bool))[0]
    answers = np.column_stack([np.array(shares)[fold[rows]], 1 - np.array(shares)[fold[rows]]])
    assert_allclose(found, kl_divergence(answers, smoothed(answers, [0.5, 0.5])), rtol=1e-9)
    assert len(np.unique(found.round(9))) > 1


def test_a_predictor_of_a_fold_never_saw_the_row_and_leaves_none_out(monkeypatch):
    X, y = alternating(12)
    predictor = ConditionalPredictor(constant(0.3), n_neighbors=2, random_state=0).fit(X, y)
    asked = []
    own = ConditionalPredictor._complete

    def spy(self, rows, distances, leave_out):
        asked.append(leave_out)
        return own(self, rows, distances, leave_out)

    monkeypatch.setattr(ConditionalPredictor, "_complete", spy)
    rows, mask = np.array([3, 8]), np.zeros((2, 2), dtype=bool)
    rehearsal_of(predictor, y, fold=np.zeros(12, dtype=int)).state(rows, mask)
    assert asked == [None]
    rehearsal_of(predictor, y).state(rows, mask)
    assert_array_equal(asked[1], rows)


def real_table(n=70, holes=True):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    y = (X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=n) > 0).astype(int)
    if holes:
        X[rng.random(X.shape) < 0.15] = np.nan
    return X, y


def everything(epistemic="ensemble", groups=None):
    """A held_out with groups, missing cells and members."""
    X, y = real_table()
    model = LogisticRegression().fit(*real_table(holes=False))
    predictor = ConditionalPredictor(model, n_neighbors=7, random_state=0).fit(X, y)
    makers: dict[str, EpistemicEstimator] = {
        "ensemble": AuxiliaryEnsemble(2, random_state=0),
        "distance": FeatureDistance(random_state=0),
    }
    around = None if epistemic is None else makers[epistemic].fit(predictor)
    return rehearsal_of(predictor, y, {"pair": [1, 3]} if groups is None else groups, around)


def some_states(held_out, n=25, seed=1):
    rng = np.random.default_rng(seed)
    rows = rng.integers(len(held_out.rows), size=n)
    mask = rng.random((n, held_out.available.shape[1])) < 0.4
    return rows, mask & held_out.available[rows]


def test_the_state_is_the_divergence_to_the_full_prediction_and_that_of_the_members():
    held_out = everything()
    rows, mask = some_states(held_out)
    discrepancy, epistemic = held_out.state(rows, mask)
    beliefs = held_out.beliefs[0]
    for r, row in enumerate(rows):
        whole = held_out.rows.take([row])
        known = whole.masked(held_out.schema.expand(mask[[r]]))
        proba = beliefs.predictor.proba(known, np.array([row]))
        full = beliefs.predictor.full_proba(whole)
        assert_allclose(discrepancy[r], kl_divergence(full, smoothed(proba, held_out.prior))[0], rtol=1e-6, atol=1e-12)
        belief = beliefs.believe(known, leave_out=np.array([row]))
        expected = beliefs.uncertainty(belief, smooth_with=held_out.prior).epistemic[0]
        assert_allclose(epistemic[r], expected, rtol=1e-6, atol=1e-12)
    assert_allclose(held_out.prior, np.bincount(real_table()[1]) / 70)


def test_the_epistemic_part_leaves_the_row_out_too():
    held_out = everything()
    around, predictor = held_out.beliefs[0].epistemic, held_out.beliefs[0].predictor
    assert isinstance(around, AuxiliaryEnsemble)
    mask = np.zeros((70, 4), dtype=bool)
    mask[:, :2] = True
    rows = np.arange(70)
    mask &= held_out.available
    found = held_out.state(rows, mask)[1]
    known = held_out.rows.masked(held_out.schema.expand(mask))
    members = []
    for model in around.estimators_:
        own = predictor.with_model(predictor.model_.__class__(model, predictor.schema_))
        members.append(own.proba(known, rows))
    primary = smoothed(predictor.proba(known, rows), held_out.prior)
    assert_allclose(found, epistemic_divergence(members, primary), rtol=1e-6, atol=1e-12)


def test_targets_equal_a_loop_over_rows_and_features():
    for epistemic in ("ensemble", "distance", None):
        held_out = everything(epistemic)
        rows, mask = some_states(held_out, n=12)
        found = value_targets(held_out, rows, mask)
        for r, row in enumerate(rows):
            before = held_out.state(np.array([row]), mask[[r]])
            for i in range(mask.shape[1]):
                if mask[r, i] or not held_out.available[row, i]:
                    assert np.isnan([found[0][r, i], found[1][r, i]]).all()
                    continue
                more = mask[[r]].copy()
                more[0, i] = True
                after = held_out.state(np.array([row]), more)
                assert_allclose(found[0][r, i], before[0][0] - after[0][0], rtol=0, atol=1e-9, err_msg=epistemic)
                assert_allclose(found[1][r, i], before[1][0] - after[1][0], rtol=0, atol=1e-9, err_msg=epistemic)
        assert np.isnan(found[0]).any()
        assert not np.isnan(found[0]).all()
        if epistemic is None:
            assert_array_equal(found[1][~np.isnan(found[1])], 0.0)
        else:
            assert np.nanstd(found[1]) > 1e-6


def test_only_the_candidates_are_asked_about():
    held_out = everything()
    rows, mask = some_states(held_out)
    candidates = np.random.default_rng(2).random(mask.shape) < 0.5
    everyone, some = value_targets(held_out, rows, mask), value_targets(held_out, rows, mask, candidates)
    for full, part in zip(everyone, some, strict=True):
        assert_allclose(part[candidates], full[candidates], rtol=0, atol=1e-9)
        assert np.isnan(part[~candidates]).all()
    assert np.isnan(value_targets(held_out, rows, mask, np.zeros(mask.shape, dtype=bool))[0]).all()


def test_pairs_go_to_the_model_in_batches_of_bounded_size(monkeypatch):
    held_out = everything()
    rows, mask = some_states(held_out)
    expected = value_targets(held_out, rows, mask)
    monkeypatch.setattr(askwise.value.targets, "PAIRS_AT_ONCE", 7)
    sizes = []
    state = held_out.state

    def spy(rows, mask, risk=True):
        sizes.append(len(rows))
        return state(rows, mask, risk)

    monkeypatch.setattr(held_out, "state", spy)
    found = value_targets(held_out, rows, mask)
    assert sum(sizes) > len(rows)  # the states themselves, then every pair of a state and a feature
    assert len(sizes) > 5
    assert max(sizes) == 7
    for ours, theirs in zip(found, expected, strict=True):
        assert_allclose(ours, theirs, rtol=0, atol=1e-9)


def test_along_a_path_targets_add_up_to_what_was_gained_in_all():
    """The reductions telescope: u(nothing) - u(everything), whatever the order."""
    held_out = everything()
    rows = np.flatnonzero(held_out.available.all(axis=1))[:10]
    nothing = np.zeros((len(rows), 4), dtype=bool)
    first, last = held_out.state(rows, nothing), held_out.state(rows, ~nothing)
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        mask, total = nothing.copy(), np.zeros((2, len(rows)))
        for i in order:
            total += np.stack(value_targets(held_out, rows, mask))[:, :, i]
            mask[:, i] = True
        assert_allclose(total, np.stack(first) - np.stack(last), rtol=0, atol=1e-9)


def test_what_tells_the_answer_reduces_the_discrepancy_and_what_misleads_raises_it():
    """Known: nothing. The model reads two columns; one agrees with the full prediction, the other contradicts it."""

    def model(X):
        cells = np.asarray(X, dtype=float)
        positive = 1 / (1 + np.exp(-(2.0 * cells[:, 0] + 1.0 * cells[:, 1])))
        return np.column_stack([1 - positive, positive])

    X = np.array([[1.0, -1.0, 5.0], [-1.0, 1.0, -5.0]] * 10)
    predictor = ImputedPredictor(wrap(model, [0, 1])).fit(X, np.array([1, 0] * 10))
    held_out = rehearsal_of(predictor, np.array([1, 0] * 10))
    found = value_targets(held_out, np.arange(2), np.zeros((2, 3), dtype=bool))[0]
    assert (found[:, 0] > 0.01).all()
    assert (found[:, 1] < -0.1).all()
    assert_allclose(found[:, 2], 0, atol=1e-12)


# Rehearsing a model that can be refitted


def test_a_model_used_as_it_is_is_rehearsed_with_itself():
    X, y = real_table(holes=False)
    predictor = ConditionalPredictor(LogisticRegression().fit(X, y), random_state=0).fit(X, y)
    held_out = held_out_states(BeliefModel(predictor), predictor.schema_)
    assert held_out.fold is None
    assert len(held_out.beliefs) == 1
    cheaper = held_out.beliefs[0].predictor
    assert isinstance(cheaper, ConditionalPredictor)
    assert cheaper.model_ is predictor.model_
    assert cheaper.neighbors_.n_neighbors < predictor.neighbors_.n_neighbors


def refitting(X, y, seen=None):
    def refit(rows):
        rest = np.setdiff1d(np.arange(len(y)), rows)
        if seen is not None:
            seen.append(rows)
        predictor = ConditionalPredictor(LogisticRegression(), random_state=0).fit(X[rest], y[rest])
        return BeliefModel(predictor, AuxiliaryEnsemble(2, random_state=0).fit(predictor))

    return refit


def test_a_model_that_can_be_refitted_is_rehearsed_in_folds_of_every_class():
    X, y = real_table(holes=False)
    whole = ConditionalPredictor(LogisticRegression(), random_state=0).fit(X, y)
    seen: list[np.ndarray] = []
    held_out = held_out_states(BeliefModel(whole), whole.schema_, refitting(X, y, seen), random_state=0)
    assert held_out.fold is not None
    assert_array_equal(np.sort(np.concatenate(seen)), np.arange(70))
    for k, held in enumerate(seen):
        assert_array_equal(np.flatnonzero(held_out.fold == k), held)
        assert set(y[held]) == {0, 1}
        rest = np.setdiff1d(np.arange(70), held)
        model = LogisticRegression().fit(X[rest], y[rest])
        assert_allclose(held_out.full[held], model.predict_proba(X[held]), rtol=0, atol=1e-12)
    again = held_out_states(BeliefModel(whole), whole.schema_, refitting(X, y), random_state=0)
    assert_array_equal(again.fold, held_out.fold)


def test_a_class_that_is_too_rare_for_folds_is_rehearsed_without():
    X, y = real_table(holes=False)
    y = y.copy()
    y[:2] = 2
    whole = ConditionalPredictor(LogisticRegression(), random_state=0).fit(X, y)
    seen: list[np.ndarray] = []
    held_out = held_out_states(BeliefModel(whole), whole.schema_, refitting(X, y, seen))
    assert held_out.fold is None
    assert not seen
