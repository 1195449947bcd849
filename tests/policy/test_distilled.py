"""The distilled policy, and predictions that are computed when they are read."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from tests.made import patients

from askwise import DynamicFeatureSelector
from askwise.assessments import OnRequest, Recorded
from askwise.datasets import make_gaussian
from askwise.epistemic import BeliefModel
from askwise.errors import InvalidInput
from askwise.policy import Distilled, Greedy, Lookahead
from askwise.policy.imitation import ScoreNetwork, StateInputs, targets_of
from askwise.predict.conditional import ConditionalPredictor
from askwise.table.prices import Prices
from askwise.table.schema import read_table

N_FEATURES = 8


@pytest.fixture(scope="module")
def data():
    made = make_gaussian(1200, N_FEATURES, random_state=0)
    return made.X, np.asarray(made.y)


@pytest.fixture(scope="module")
def exact(data):
    X, y = data
    pool = ConditionalPredictor(None, max_rows=200, n_neighbors=40, random_state=0)
    model = LogisticRegression().fit(X[:800], y[:800])
    options: dict[str, Any] = {
        "adaptation": pool,
        "policy": "greedy",
        "calibration": None,
        "random_state": 0,
        "progress": False,
    }
    return DynamicFeatureSelector(model, **options).fit(X[:800], y[:800])


@pytest.fixture(scope="module")
def distilled(exact):
    return exact.with_policy(Distilled(Greedy(), n_states=1500, hidden=(32,), exact_share=0.1))


@pytest.fixture
def counted(monkeypatch):
    """How many rows the model was asked about."""
    rows: list[int] = []
    believe = BeliefModel.believe

    def counting(self, given, **options):
        rows.append(len(given))
        return believe(self, given, **options)

    monkeypatch.setattr(BeliefModel, "believe", counting)
    return rows


def test_it_is_as_accurate_as_the_exact_policy_and_says_so(data, exact, distilled):
    X, y = data[0][800:], data[1][800:]
    theirs, ours = exact.acquire(X, budget=3), distilled.acquire(X, budget=3)
    assert (ours.predict() == y).mean() > (theirs.predict() == y).mean() - 0.02
    shuffled = exact.with_policy("random").acquire(X, budget=3)
    assert (ours.predict() == y).mean() > (shuffled.predict() == y).mean() + 0.05
    report = json.loads(json.dumps(distilled.choices_))["policy"]
    assert report["name"] == "Distilled"
    assert report["exact"] == "Greedy"
    found = report["distilled"]
    assert found["agreement"] > 0.5
    assert found["regret"] < 0.15
    assert found["exact_share"] == pytest.approx(0.1, abs=0.01)
    for row in found["accuracy"]:
        assert abs(row["exact"] - row["distilled"]) < 0.1


def test_the_exact_policy_decides_at_the_start_and_where_margins_are_small(data, exact, distilled, counted):
    X = data[0][800:]
    assert_array_equal(distilled.suggest(X[:1] * np.nan), exact.suggest(X[:1] * np.nan))
    order = distilled.acquire(X, budget=4).order
    n_exact = sum(counted)
    assert 0 < n_exact < 0.25 * 3 * len(X)  # of the three steps after the first
    always, never = (distilled.with_policy(distilled.policy) for _ in range(2))
    always.policy_.margin_, never.policy_.margin_ = np.inf, -np.inf
    assert_array_equal(always.acquire(X[:50], budget=4).order, exact.acquire(X[:50], budget=4).order)
    counted.clear()
    unaided = never.acquire(X, budget=4).order
    assert not counted
    assert (unaided == order).mean() > 0.7


def test_predictions_are_computed_when_they_are_read_and_equal_those_of_every_step(data, exact, distilled, counted):
    X = data[0][800:840]
    for name in ("static", "random"):
        lazy = exact.with_policy(name)
        counted.clear()
        run = lazy.acquire(X, budget=4)
        assert isinstance(run.said, OnRequest), name
        assert not counted, name
        final = run.predict()
        assert sum(counted) == len(X), name
        eager = lazy.with_policy(name)
        eager.policy_.reads_belief = True
        recorded = eager.acquire(X, budget=4)
        assert isinstance(recorded.said, Recorded)
        pd.testing.assert_frame_equal(run.to_frame(), recorded.to_frame())
        assert_array_equal(final, recorded.predict())
        assert_array_equal(run.predict(2), recorded.predict(2))
    run = distilled.acquire(X, budget=4)
    for t in (0, 2, 4):
        rows = distilled._encode(X).masked(distilled.schema_.expand(run.mask_after(t)))
        assert_allclose(run.proba[:, t], distilled.beliefs_.proba(rows), atol=1e-12)


def test_blocks_and_short_runs_are_joined_whatever_the_memory_and_the_threads(data, exact):
    X = data[0][800:830]
    static = exact.with_policy("static")
    budget = np.where(np.arange(30) < 10, 1, 5)
    whole = static.acquire(X, budget=budget)
    parts = static.with_policy("static")
    parts.memory_limit = 512 * 10 / parts.beliefs_.rows_at_once
    assert len(parts._blocks(30)) == 3
    threads = static.with_policy("static")
    threads.n_jobs = 2
    assert len(threads._blocks(30, 2)) == 2
    for other in (parts, threads):
        run = other.acquire(X, budget=budget)
        pd.testing.assert_frame_equal(whole.to_frame(), run.to_frame())
        assert_array_equal(whole.predict(3), run.predict(3))
        assert_array_equal(whole.order, run.order)
    with pytest.raises(InvalidInput, match="memory_limit must be a number > 0"):
        static.with_policy("static").set_params(memory_limit=0).with_policy("static")


def test_threads_acquire_what_one_acquires(data, exact):
    X = data[0][800:860]
    alone = exact.acquire(X, budget=3)
    threads = exact.with_policy("greedy")
    threads.n_jobs = 2
    together = threads.acquire(X, budget=3)
    assert_array_equal(alone.order, together.order)
    assert_allclose(alone.proba, together.proba, atol=1e-12)


def test_a_session_chooses_without_beliefs_and_reports_them(data, exact, distilled, counted):
    row = data[0].iloc[900]
    quick = distilled.with_policy(distilled.policy)
    quick.policy_.margin_ = -np.inf
    counted.clear()
    session = quick.start(budget=3)
    while (suggestion := session.suggest()) is not None:
        session.answer(suggestion.feature, float(row[suggestion.feature]))
    assert not counted
    report = session.report()
    assert len(counted) == 4
    known = {name: report["known"][name] for name in report["known"]}
    same = exact.start(known=known).report()
    assert report["probabilities"] == pytest.approx(same["probabilities"])
    assert [step["event"] for step in report["trace"]] == ["start", "answer", "answer", "answer"]
    session.undo()
    assert session.report()["trace"] == report["trace"][:3]
    assert "from" in repr(session)


def test_a_stop_calibrated_for_one_policy_is_refused_for_the_other(data, exact, distilled):
    X = data[0][800:]
    stop = distilled.calibrate_stop(X, agreement=0.8)
    assert distilled.acquire(X[:5], stop="calibrated").n_steps <= N_FEATURES
    with pytest.raises(InvalidInput, match="another policy"):
        exact.acquire(X[:5], stop=stop)
    with pytest.raises(InvalidInput, match="another policy"):
        distilled.start(stop=exact.calibrate_stop(X, agreement=0.8))


def test_another_risk_weight_and_bad_parameters_are_refused(data, distilled):
    X, y = data[0][:60], data[1][:60]
    weight = distilled.risk_weight
    distilled.risk_weight = 0.7
    with pytest.raises(InvalidInput, match=r"fitted for risk_weight=0\.1, not 0\.7"):
        distilled.acquire(X[:3], budget=2)
    distilled.risk_weight = weight
    for policy, said in (
        (Distilled(n_states=0), "n_states"),
        (Distilled(exact_share=2), "exact_share"),
        (
            Distilled("greedy"),  # type: ignore[arg-type]
            "exact must be another Policy",
        ),
        (Distilled(Distilled()), "exact must be another Policy"),
    ):
        with pytest.raises(InvalidInput, match=said):
            DynamicFeatureSelector(LogisticRegression(), policy=policy, progress=False).fit(X, y)


def test_small_tables_with_categories_missing_cells_and_prices():
    X, y = patients(150, 0)
    model = HistGradientBoostingClassifier(max_iter=10, categorical_features="from_dtype")
    table = X.assign(city=X["city"].astype("category"))
    small = Distilled(n_states=200, hidden=(16,))
    made = DynamicFeatureSelector(
        model, policy=small, costs={"age": 3.0, "visits": 0.0}, random_state=0, progress=False
    )
    made.fit(table, y)
    run = made.acquire(table, budget=4)
    assert (run.order[:, 0] == 1).all()  # free features come first
    assert (run.costs.sum(axis=1) <= 4).all()
    assert type(made.policy_.exact_) is Greedy
    assert made.policy_.report_["regret"] < 0.5
    saving = DynamicFeatureSelector(LogisticRegression(), policy=small, error_costs={0: 5.0, 1: 9.0}, progress=False)
    numbers = table[["visits"]].assign(a=np.arange(150) % 7, b=y + 0.1)
    assert saving.fit(numbers, y).choices_["policy"]["exact"] == "ExpectedSaving"


def test_a_teacher_that_looks_ahead_sees_the_budget(data):
    X, y = data[0][:150], data[1][:150]
    policy = Distilled(Lookahead(), n_states=150, hidden=(8,))
    made = DynamicFeatureSelector(LogisticRegression(), policy=policy, calibration=None, progress=False).fit(X, y)
    assert made.policy_.reads_budget
    known = X[:1].assign(**dict.fromkeys(X.columns[1:], np.nan))
    schema, rows = read_table(X)
    rows = made._encode(known)
    poor, rich = (made.policy_.inputs_(rows, np.array([left])) for left in (1.0, np.inf))
    assert (poor != rich).sum() == 1
    assert schema.features == made.features_


def test_inputs_of_the_network():
    X = pd.DataFrame({"x": [1.0, 3.0, np.nan], "c": ["u", "v", "u"], "z": [0.0, 0.0, 0.0]})
    schema, rows = read_table(X)
    inputs = StateInputs(rows, schema, Prices(None).resolve(schema.features), reads_budget=False)
    found = inputs(rows, np.full(3, np.inf))
    # known x, c, z; x and z scaled; c is u, c is v
    assert_allclose(found, [[1, 1, 1, -1, 0, 1, 0], [1, 1, 1, 1, 0, 0, 1], [0, 1, 1, 0, 0, 1, 0]])
    new = schema.encode(pd.DataFrame({"x": [1e9], "c": ["never seen"], "z": [np.nan]}))
    assert_allclose(inputs(new, np.full(1, np.inf)), [[1, 1, 0, 5, 0, 0, 0]])


def test_the_network_learns_scores_and_their_scale():
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(600, 4)).astype(np.float32)
    scores = np.column_stack([2 + inputs[:, 0], 2 - inputs[:, 0], np.full(600, -np.inf), 0 * inputs[:, 0]])
    network = ScoreNetwork(4, 4, (32,), rng)
    network.train(inputs, scores, 60, rng)
    found, margin = network.scores(inputs, np.isfinite(scores))
    assert (np.where(np.isfinite(scores), found, -np.inf).argmax(axis=1) == scores.argmax(axis=1)).mean() > 0.95
    assert np.abs(found.max(axis=1) - scores.max(axis=1)).mean() < 0.3
    assert np.corrcoef(margin, np.abs(inputs[:, 0]))[0, 1] > 0.8
    assert_allclose(targets_of(scores).share.sum(axis=1), 1)
    only = network.scores(inputs[:1], np.array([[True, False, False, False]]))[1]
    assert only[0] == np.inf
