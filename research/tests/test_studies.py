"""The studies of uncertainty, subsets and policies: formulas by hand, protocol, determinism, names."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from askwise.epistemic import AuxiliaryEnsemble
from askwise.errors import InvalidInput
from askwise.evaluation import final_states
from askwise.policy import Greedy, Random
from askwise.predict import ImputedPredictor, LocalPredictor, ReparametrizedPredictor
from askwise.reference_models import make_model
from askwise.selector import DynamicFeatureSelector
from askwise.uncertainty import epistemic_divergence, kl_divergence, smoothed
from askwise.value import ValueEstimator
from askwise_bench.baselines import StaticCMI
from askwise_bench.grid.tasks import Limits, Task, make_task
from askwise_bench.studies import policies as policy_studies
from askwise_bench.studies import subsets as subset_studies
from askwise_bench.studies import uncertainty as uncertainty_studies
from askwise_bench.studies.uncertainty import with_only

SELECTOR_STUDIES = [
    uncertainty_studies.selective,
    uncertainty_studies.shift,
    uncertainty_studies.scatter,
    subset_studies.bias,
    subset_studies.risk_gap,
    policy_studies.risk_weights,
    policy_studies.unavailable,
]
SMALL: dict[str, Any] = {"epistemic": AuxiliaryEnsemble(3, random_state=0), "random_state": 0, "progress": False}
STUDIES_WITHOUT_MEMBERS = [uncertainty_studies.selective, uncertainty_studies.shift, policy_studies.unavailable]


class ByHand:
    """The last features lower the discrepancy most, the first ones the epistemic uncertainty, and twice as much."""

    def reductions(self, state, risk=True):
        n, m = state.mask.shape
        rising = np.linspace(0.0, 1.0, m)
        return np.tile(rising, (n, 1)), np.tile(2 * rising[::-1], (n, 1))


@pytest.fixture(scope="module", autouse=True)
def small():
    """Fewer of everything, as many as it takes to see what is done."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uncertainty_studies, "SIGMAS", (0.0, 2.0))
        patch.setattr(subset_studies, "SUBSETS_PER_SIZE", 3)
        patch.setattr(subset_studies, "BIAS_SHARES", (0.3,))
        patch.setattr(subset_studies, "BIAS_SUBSETS_PER_SIZE", 2)
        patch.setattr(policy_studies, "LAMBDA_SHARES", (0.2, 0.6))
        patch.setattr(policy_studies, "UNAVAILABLE_SHARES", (0.0, 0.5))
        yield


@pytest.fixture(scope="module")
def task():
    return make_task("wine", "uniform", 3, Limits(1000, 1000))


def tree_selector(task, **options):
    model = DecisionTreeClassifier(min_samples_leaf=2, random_state=0).fit(task.X_train, task.y_train)
    options = {**SMALL, "adaptation": "mean", "policy": Greedy(ByHand()), **options}
    return DynamicFeatureSelector(model, **options).fit(task.X_train, task.y_train)


@pytest.fixture(scope="module")
def selector(task):
    return tree_selector(task)


@pytest.fixture(scope="module")
def baseline(task):
    return StaticCMI(random_state=0).fit(task.X_train, task.y_train)


@pytest.fixture(scope="module")
def mixed_task():
    """Text, integers, missing cells, a group and prices that differ."""
    rng = np.random.default_rng(0)
    n = 160
    y = rng.integers(0, 2, n)
    X = pd.DataFrame(
        {
            "a": y + rng.normal(size=n),
            "b": 2 * y + rng.normal(size=n),
            "count": rng.integers(0, 5, n) + y,
            "kind": np.where(rng.random(n) < 0.3 + 0.4 * y, "red", "blue"),
            "flag": rng.random(n) < 0.5,
            "c": rng.normal(size=n),
        }
    )
    X.loc[rng.random(n) < 0.2, "b"] = np.nan
    groups = {"panel": ["a", "c"]}
    return Task("mixed", "variable", 5, X[:120], y[:120], X[120:], y[120:], np.array([3.0, 1.0, 2.0, 1.0, 4.0]), groups)


@pytest.fixture(scope="module")
def mixed_selector(mixed_task):
    model = make_model("tree", 0).fit(mixed_task.X_train, mixed_task.y_train)
    selector = DynamicFeatureSelector(
        model,
        costs=mixed_task.costs,
        groups=mixed_task.groups,
        adaptation="mean",
        policy=Greedy(ByHand()),
        **SMALL,
    )
    return selector.fit(mixed_task.X_train, mixed_task.y_train)


def values_of(rows, metric, **at):
    """A metric by budget, at the parameters `at`."""
    return {row.budget: row.value for row in measured(rows, metric, **at)}


def measured(rows, metric, **at):
    return [row for row in rows if row.metric == metric and all(getattr(row, k) == v for k, v in at.items())]


def value_of(rows, metric, **at):
    (row,) = measured(rows, metric, **at)
    return row.value


@pytest.fixture(scope="module")
def mixed_rows(mixed_task, mixed_selector):
    return {study: list(study(mixed_task, mixed_selector)) for study in SELECTOR_STUDIES}


def test_a_study_says_the_same_twice_with_finite_numbers(mixed_task, mixed_selector, mixed_rows):
    subset_studies._LOCAL_ANSWERS.clear()
    for study in SELECTOR_STUDIES:
        rows = list(study(mixed_task, mixed_selector))
        assert rows == mixed_rows[study], study
        assert rows
        assert all(np.isfinite(row.value) for row in rows)


def test_no_two_measurements_have_one_name(mixed_rows):
    for study, rows in mixed_rows.items():
        named = [replace(row, value=0.0) for row in rows]
        assert len(named) == len(set(named)), study


def test_a_method_without_members_is_measured_by_the_rest(task):
    method = tree_selector(task, epistemic=None)
    for study in STUDIES_WITHOUT_MEMBERS:
        rows = list(study(task, method))
        assert rows
        assert all(np.isfinite(row.value) for row in rows)
        assert not {"epistemic", "variance"} & {name for row in rows for name in (row.metric, row.measure)}


def test_studies_leave_the_method_as_it_is(task, selector):
    before = selector.acquire(task.X_test, 4).proba
    members, weight = selector.epistemic_, selector.risk_weight
    for study in SELECTOR_STUDIES:
        list(study(task, selector))
    np.testing.assert_array_equal(selector.acquire(task.X_test, 4).proba, before)
    assert selector.epistemic_ is members
    assert selector.risk_weight == weight


def test_rejection_by_hand():
    correct = np.array([True, True, True, False, False])
    found = uncertainty_studies.selective_metrics(correct, np.array([0.1, 0.2, 0.5, 0.4, 0.9]))
    # Kept in this order: right, right, wrong, right, wrong.
    assert found["aurc"] == pytest.approx((0 + 0 + 1 / 3 + 1 / 4 + 2 / 5) / 5)
    assert found["excess_aurc"] == pytest.approx(found["aurc"] - (1 / 4 + 2 / 5) / 5)
    assert found["auroc"] == pytest.approx(roc_auc_score(~correct, [0.1, 0.2, 0.5, 0.4, 0.9]))
    assert found["risk_at_80"] == pytest.approx(1 / 4)
    assert found["risk_at_90"] == pytest.approx(2 / 5)


def test_selective_judges_the_six_measures_of_the_paper_and_e(task, selector):
    rows = list(uncertainty_studies.selective(task, selector))
    judged = {row.measure for row in rows}
    of_the_paper = {"aleatoric", "mutual_information", "total", "variance", "confidence_gap", "random"}
    assert judged == of_the_paper | {"epistemic"}
    accuracies = {b: 1 - v for b, v in values_of(rows, "aurc", measure="random").items()}
    for name in judged:
        assert values_of(rows, "kept_accuracy", measure=name, rejected=0) == pytest.approx(accuracies)
    by_rejected = [sum(values_of(rows, "kept_accuracy", measure="total", rejected=r).values()) for r in (0, 50, 90)]
    assert by_rejected == sorted(by_rejected)
    assert {row.rejected for row in rows if row.metric == "kept_accuracy"} == set(range(0, 100, 10))


def test_selective_agrees_with_scikit_learn(task, selector):
    budget = uncertainty_studies.budgets_at(selector, uncertainty_studies.SELECTIVE_SHARES)[1]
    run = selector.acquire(task.X_test, budget)
    wrong = run.predict() != task.y_test
    rows = list(uncertainty_studies.selective(task, selector))
    for name in ("total", "aleatoric", "mutual_information", "variance", "confidence_gap"):
        expected = roc_auc_score(wrong, getattr(run.uncertainty, name)[:, -1])
        assert values_of(rows, "auroc", measure=name)[budget] == pytest.approx(expected)


def test_outcomes_are_those_of_evaluate(mixed_task, mixed_selector):
    budgets = [2.0, 5.0, 11.0]
    expected = mixed_selector.evaluate(mixed_task.X_test, mixed_task.y_test, budgets)["accuracy"].tolist()
    found = [o.correct.mean() for o in uncertainty_studies.outcomes(mixed_task, mixed_selector, budgets)]
    assert found == pytest.approx(expected)


def test_one_run_serves_all_budgets_when_prices_are_equal(task, selector):
    together = list(uncertainty_studies.outcomes(task, selector, [2.0, 5.0]))
    for outcome in together:
        (alone,) = uncertainty_studies.outcomes(task, selector, [outcome.budget])
        np.testing.assert_array_equal(outcome.proba, alone.proba)
    for end, budget in zip(final_states(selector, task.X_test, [2.0, 5.0]), (2.0, 5.0), strict=True):
        assert (end.mask.sum(axis=1) == budget).all()
        assert (end.spent == budget).all()


def test_only_known_features_are_left(mixed_task, mixed_selector):
    subset = np.array([feature in ("panel", "kind") for feature in mixed_selector.features_])
    left = uncertainty_studies.with_only(mixed_selector, mixed_task.X_test, subset)
    pd.testing.assert_frame_equal(left[["a", "kind", "c"]], mixed_task.X_test[["a", "kind", "c"]])
    assert left[["b", "count", "flag"]].isna().all(axis=None)


def test_e_is_finite_where_a_tree_rules_a_class_out(task, selector):
    proba, found = uncertainty_studies.assessed(task, selector, task.X_test)
    members = selector.beliefs_.believe(selector.schema_.encode(task.X_test)).members
    prior = np.bincount(task.y_train) / len(task.y_train)
    assert np.isinf(epistemic_divergence(members, proba)).any()
    np.testing.assert_allclose(found.epistemic, epistemic_divergence(members, smoothed(proba, prior)))
    np.testing.assert_allclose(found.confidence_gap, 1 - proba.max(axis=1))


def test_the_shift_is_noise_on_half_of_the_numeric_columns(mixed_task):
    clean, wide = mixed_task.X_test, uncertainty_studies.shifted(mixed_task, 2.0)
    assert list(wide.columns) == list(clean.columns)
    changed = [name for name in clean if not wide[name].equals(clean[name].astype(wide[name].dtype))]
    assert len(changed) == 2, "half of a, b, count and c"
    assert set(changed) <= {"a", "b", "count", "c"}
    assert (wide.isna() == clean.isna()).all(axis=None)
    narrow = uncertainty_studies.shifted(mixed_task, 0.5)
    for name in changed:
        np.testing.assert_allclose(wide[name] - clean[name], 4 * (narrow[name] - clean[name]))
        scale = np.std(mixed_task.X_train[name].dropna())
        assert np.std((wide[name] - clean[name]) / scale) == pytest.approx(2, rel=0.4)
    pd.testing.assert_frame_equal(uncertainty_studies.shifted(mixed_task, 0.0), clean, check_dtype=False)


def test_shift_begins_without_noise_and_hurts(task, selector):
    rows = list(uncertainty_studies.shift(task, selector))
    clean, noisy = (values_of(rows, "accuracy", sigma=sigma) for sigma in (0, 2))
    expected = selector.evaluate(task.X_test, task.y_test, list(clean))["accuracy"].tolist()
    assert list(clean.values()) == pytest.approx(expected)
    assert sum(noisy.values()) < sum(clean.values()) - 0.1


def test_noise_needs_a_numeric_column(mixed_task):
    words = mixed_task.X_test[["kind"]]
    bare = Task("words", "uniform", 0, words, mixed_task.y_test, words, mixed_task.y_test, None, None)
    with pytest.raises(InvalidInput, match="no numeric column"):
        uncertainty_studies.shifted(bare, 0.1)


def test_scatter_is_bounded_and_its_correlation_is_that_of_its_points(task, selector, monkeypatch):
    rows = list(uncertainty_studies.scatter(task, selector))
    budget = uncertainty_studies.budgets_at(selector, uncertainty_studies.TARGETED_SHARES)[1]
    points = [[row.value for row in measured(rows, name, budget=budget)] for name in ("aleatoric", "epistemic")]
    assert [row.case for row in measured(rows, "aleatoric", budget=budget)] == list(range(len(task.y_test)))
    assert value_of(rows, "pearson", budget=budget) == pytest.approx(np.corrcoef(points)[0, 1])
    monkeypatch.setattr(uncertainty_studies, "MOST_CASES", 4)
    few = list(uncertainty_studies.scatter(task, selector))
    assert len(measured(few, "aleatoric")) == 2 * 4
    assert values_of(few, "pearson") == values_of(rows, "pearson"), "over all cases"


def test_correlations_by_hand():
    found = uncertainty_studies.correlations(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.0, 3.0, 10.0]))
    assert found["spearman"] == pytest.approx(1)
    assert found["pearson"] == pytest.approx(14 / np.sqrt(5 * 50))
    assert uncertainty_studies.correlations(np.ones(4), np.arange(4.0)) == {}


def test_subsets_are_different_and_of_their_size():
    drawn = subset_studies.draw_subsets(13, 4, 25, seed=0)
    assert drawn.shape == (25, 13)
    assert (drawn.sum(axis=1) == 4).all()
    assert len(np.unique(drawn, axis=0)) == 25
    assert (drawn != subset_studies.draw_subsets(13, 4, 25, seed=1)).any()
    np.testing.assert_array_equal(drawn[:5], subset_studies.draw_subsets(13, 4, 5, seed=0))
    assert len(subset_studies.draw_subsets(5, 2, 25, seed=0)) == 10, "all there are"


def test_local_answers_are_those_of_the_local_predictor(task, selector):
    local = LocalPredictor(selector.estimator_).fit(task.X_train, task.y_train)
    subset = subset_studies.draw_subsets(13, 4, 1, seed=0)[0]
    found = subset_studies.local_answers(task, selector, subset)
    np.testing.assert_allclose(found, local.predict_proba(task.X_test.to_numpy(), subset))


def test_local_models_of_a_group_have_all_its_columns(mixed_task, mixed_selector):
    subset = np.array([feature in ("panel", "kind") for feature in mixed_selector.features_])
    model = clone(mixed_selector.estimator_).fit(mixed_task.X_train[["a", "kind", "c"]], mixed_task.y_train)
    expected = model.predict_proba(mixed_task.X_test[["a", "kind", "c"]])
    np.testing.assert_allclose(subset_studies.local_answers(mixed_task, mixed_selector, subset), expected)


def test_bias_by_hand(task, selector):
    found = list(subset_studies.bias(task, selector))
    X, prior = task.X_test.to_numpy(), np.bincount(task.y_train) / len(task.y_train)
    local = LocalPredictor(selector.estimator_).fit(task.X_train, task.y_train)
    to_local, to_full, from_full = [], [], []
    for subset in subset_studies.draw_subsets(13, 4, 2, task.seed):
        ours = selector.predict_proba(with_only(selector, task.X_test, subset))
        full = selector.estimator_.predict_proba(task.X_test)
        to_local.append(kl_divergence(ours, smoothed(local.predict_proba(X, subset), prior)).mean())
        to_full.append(kl_divergence(ours, smoothed(full, prior)).mean())
        from_full.append(kl_divergence(full, smoothed(ours, prior)).mean())
    assert value_of(found, "kl_ref", subset=1, subset_size=4) == pytest.approx(to_local[1])
    assert value_of(found, "mean_kl_ref") == pytest.approx(np.mean(to_local))
    assert value_of(found, "mean_kl_full") == pytest.approx(np.mean(to_full))
    assert value_of(found, "mean_reverse_kl_full") == pytest.approx(np.mean(from_full))
    assert value_of(found, "kl_ratio") == pytest.approx(np.mean(to_local) / np.mean(to_full))


def test_the_reference_of_a_baseline_is_the_mlp_of_the_paper(task, baseline):
    found = list(subset_studies.bias(task, baseline))
    X, prior = task.X_test.to_numpy(), np.bincount(task.y_train) / len(task.y_train)
    subset = subset_studies.draw_subsets(13, 4, 2, task.seed)[0]
    with pytest.warns(ConvergenceWarning):
        model = make_model("mlp", task.seed).fit(task.X_train.loc[:, subset], task.y_train)
    reference = smoothed(model.predict_proba(task.X_test.loc[:, subset]), prior)
    expected = kl_divergence(baseline.predictor_.predict_proba(X, subset), reference).mean()
    assert value_of(found, "kl_ref", subset=0) == pytest.approx(expected)


def test_the_risk_gap_of_the_local_model_is_zero(task):
    model = make_pipeline(StandardScaler(), LogisticRegression())
    selector = DynamicFeatureSelector(
        model,
        adaptation=LocalPredictor(None),
        epistemic="distance",
        policy="random",
        calibration=None,
        random_state=0,
        progress=False,
    ).fit(task.X_train, task.y_train)
    rows = list(subset_studies.risk_gap(task, selector))
    deltas = [row.value for row in measured(rows, "delta")]
    assert len(deltas) == 2 * 2 * subset_studies.SUBSETS_PER_SIZE
    np.testing.assert_allclose(deltas, 0, atol=1e-12)


def test_risk_gap_by_hand(task, selector):
    found = list(subset_studies.risk_gap(task, selector))
    local = LocalPredictor(selector.estimator_).fit(task.X_train, task.y_train)
    X, gaps, variances = task.X_test.to_numpy(), [], []
    for subset in np.concatenate([subset_studies.draw_subsets(13, size, 3, task.seed) for size in (4, 9)]):
        ours, theirs = (one.predict(X, subset) for one in (selector.predictor_, local))
        gaps.append((ours != task.y_test).mean() - (theirs != task.y_test).mean())
        variances.append(selector.uncertainty(task.X_test.where(np.tile(subset, (len(X), 1)))).variance.mean())
    assert value_of(found, "delta", loss="error", subset=5, subset_size=9) == pytest.approx(gaps[5])
    assert value_of(found, "variance", subset=5) == pytest.approx(variances[5])
    assert value_of(found, "mean_delta", loss="error") == pytest.approx(np.mean(gaps))
    correlation = value_of(found, "pearson", loss="error", measure="variance")
    assert correlation == pytest.approx(np.corrcoef(gaps, variances)[0, 1])


def test_gaps_are_compared_by_hand():
    imputed, adapted = np.array([0.4, 0.3, 0.2, 0.3]), np.array([0.3, 0.2, 0.2, 0.4])
    found = subset_studies.compare_gaps(imputed, adapted, np.array([0.2, 0.3, 0.1, 0.2]))
    assert found["mean_delta_imputed"] == pytest.approx(0.1)
    assert found["mean_delta_adapted"] == pytest.approx(0.075)
    assert found["mean_abs_delta_adapted"] == pytest.approx(0.125)
    assert found["wins"] == pytest.approx(1 / 4), "the second is now further below the local model"
    assert (found["lower_error"], found["equal_error"], found["higher_error"]) == (1 / 2, 1 / 4, 1 / 4)
    alike = subset_studies.compare_gaps(imputed, imputed, adapted)
    assert alike["wilcoxon_p_error"] == alike["wilcoxon_p_abs_delta"] == 1


def test_many_lower_errors_are_significant():
    rng = np.random.default_rng(0)
    local, noise = rng.random(50), rng.random(50)
    found = subset_studies.compare_gaps(local + 0.2 + noise, local + 0.1 + noise, local)
    assert found["wins"] == 1
    assert found["wilcoxon_p_abs_delta"] < 1e-6
    assert subset_studies.compare_gaps(local + noise, local + noise[::-1], local)["wilcoxon_p_error"] > 0.05


def test_reparam_compares_both_predictors_around_one_model(task):
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(task.X_train, task.y_train)
    adaptation = ReparametrizedPredictor(None, "last-layer", epochs=4, learning_rate=0.01, random_state=0)
    selector = DynamicFeatureSelector(
        model, adaptation=adaptation, epistemic=None, policy="random", random_state=0, progress=False
    ).fit(task.X_train, task.y_train)
    found = list(subset_studies.reparametrization(task, selector))
    subset = subset_studies.draw_subsets(13, 4, 3, task.seed)[1]
    imputed = ImputedPredictor(model).fit(task.X_train, task.y_train)
    for name, predictor in (("imputed", imputed), ("adapted", selector.predictor_)):
        error = (predictor.predict(task.X_test.to_numpy(), subset) != task.y_test).mean()
        assert value_of(found, f"error_{name}", subset=1) == pytest.approx(error)
    errors = {name: [row.value for row in measured(found, f"error_{name}")] for name in ("imputed", "local")}
    assert len(errors["local"]) == 6
    expected = np.mean(errors["imputed"]) - np.mean(errors["local"])
    assert value_of(found, "mean_delta_imputed") == pytest.approx(expected)


def test_lambda_changes_what_is_bought(task):
    selector = tree_selector(task)
    rows = list(policy_studies.risk_weights(task, selector))
    assert {row.risk_weight for row in rows} == set(policy_studies.RISK_WEIGHTS)
    for weight, first in ((-1.0, 12), (1.0, 0)):
        assert (selector.set_params(risk_weight=weight).acquire(task.X_test, 1).order == first).all()
        expected = selector.evaluate(task.X_test, task.y_test, [2.6])["accuracy"][0]
        assert values_of(rows, "accuracy", risk_weight=weight)[2.6] == pytest.approx(expected)
    assert values_of(rows, "accuracy", risk_weight=1) != values_of(rows, "accuracy", risk_weight=-1)


def test_a_share_of_each_row_is_gone_and_stays_gone(mixed_task, mixed_selector):
    half, most = (policy_studies.without(mixed_task, mixed_selector, share) for share in (0.4, 0.8))
    present = mixed_task.X_test.notna()
    gone = (half.isna() & present).to_numpy()
    assert (gone[:, 0] == gone[:, 5]).all(), "columns of a group go together"
    features = mixed_selector.schema_.any_column((half.isna() | ~present).to_numpy())
    assert (features.sum(axis=1) >= 2).all()
    complete = present.all(axis=1).to_numpy()
    assert (features[complete].sum(axis=1) == 2).all(), "0.4 of 5"
    assert (half.isna() <= most.isna()).all(axis=None)
    pd.testing.assert_frame_equal(policy_studies.without(mixed_task, mixed_selector, 0.0), mixed_task.X_test)


def test_unavailable_buys_what_is_left(task, selector):
    rows = list(policy_studies.unavailable(task, selector))
    all_there = values_of(rows, "accuracy", unavailable_share=0)
    expected = selector.evaluate(task.X_test, task.y_test, list(all_there))["accuracy"].tolist()
    assert list(all_there.values()) == pytest.approx(expected)
    gone = policy_studies.without(task, selector, 0.5).isna().to_numpy()
    run = selector.acquire(task.X_test, 10, available=~gone)
    accuracy = (run.predict() == task.y_test).mean()
    assert values_of(rows, "accuracy", unavailable_share=0.5)[10] == pytest.approx(accuracy)


def test_what_is_gone_is_not_what_a_random_order_buys_last(task, selector):
    """Both are drawn from one seed: the draws must not be the same."""
    gone = policy_studies.without(task, selector, 0.5).isna().to_numpy()
    order = selector.with_policy(Random(task.seed)).ranking(task.X_test.where(np.zeros(gone.shape, dtype=bool)))
    assert abs(np.corrcoef(gone.ravel(), order.ravel())[0, 1]) < 0.15


def test_l1_weights_trains_a_network_for_each_weight(task, selector, monkeypatch):
    trained = []

    def small(l1, random_state):
        trained.append(l1)
        return ValueEstimator(l1=l1, random_state=random_state, n_states=40, epochs=2)

    monkeypatch.setattr(policy_studies, "ValueEstimator", small)
    rows = list(policy_studies.l1_weights(task, selector))
    assert trained == list(policy_studies.L1_WEIGHTS)
    small_one = selector.with_policy(Greedy(ValueEstimator(l1=0.1, random_state=task.seed, n_states=40, epochs=2)))
    expected = small_one.evaluate(task.X_test, task.y_test)["accuracy"].tolist()
    assert list(values_of(rows, "accuracy", l1=0.1).values()) == pytest.approx(expected)


def test_a_study_refuses_a_method_that_it_is_not_for(task, baseline, selector):
    for study in (uncertainty_studies.scatter, subset_studies.risk_gap):
        with pytest.raises(InvalidInput, match="members"):
            list(study(task, baseline))
    for study in (policy_studies.risk_weights, policy_studies.l1_weights):
        with pytest.raises(InvalidInput, match="greedy"):
            list(study(task, baseline))
        with pytest.raises(InvalidInput, match="greedy"):
            list(study(task, selector.with_policy(Random(0))))
    with pytest.raises(InvalidInput, match="reparametrized"):
        list(subset_studies.reparametrization(task, selector))
