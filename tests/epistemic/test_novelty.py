"""Outside of what was seen: zero on the training rows, growing beyond them, and told wherever trust is told."""

import json
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from askwise import DynamicFeatureSelector, wrap
from askwise.epistemic import Novelty
from askwise.epistemic.novelty import _usual
from askwise.predict import ConditionalPredictor, ImputedPredictor
from askwise.table.rows import EncodedRows
from askwise.table.subsets import sample

LN2 = np.log(2)


def toss_a_coin(X):
    return np.full((len(X), 2), 0.5)


def novelty_of(X, kind=ConditionalPredictor, **options):
    predictor = kind(wrap(toss_a_coin, [0, 1]), **options).fit(X, np.arange(len(X)) % 2)
    return Novelty(predictor), predictor


def patients(n=400, seed=0):
    """Two columns that go together, a long tail, a constant, and a category."""
    rng = np.random.default_rng(seed)
    height = rng.normal(170, 10, n)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 90, n),
            "height": height,
            "arm": 0.45 * height + rng.normal(0, 0.5, n),
            "crp": np.exp(1.5 * rng.normal(size=n)),
            "site": 3.0,
            "blood": rng.choice(["A", "B", "AB", "0"], n, p=[0.4, 0.15, 0.05, 0.4]),
        }
    )


def tables():
    rng = np.random.default_rng(1)
    numbers = pd.DataFrame(rng.normal(size=(300, 8))).add_prefix("x")
    return {
        "patients": patients(),
        "with holes": numbers.where(rng.random(numbers.shape) < 0.5),
        "categories only": pd.DataFrame(rng.choice(list("abcd"), (300, 6), p=[0.6, 0.3, 0.09, 0.01])).add_prefix("c"),
        "one column": numbers[["x0"]],
        "one value": pd.DataFrame({"k": np.full(50, 2.0), "x": np.arange(50.0)}),
    }


def test_training_rows_are_within_what_was_seen_on_any_subset():
    rng = np.random.default_rng(0)
    for name, X in tables().items():
        # A pool that lacks most of the rows, too: to it they are new rows of the same kind.
        for kind, options in (
            (ConditionalPredictor, {}),
            (ConditionalPredictor, {"max_rows": 100}),
            (ImputedPredictor, {}),
        ):
            novelty, predictor = novelty_of(X, kind, **options)
            rows = predictor.training_rows_
            subsets = rows.masked(sample(len(rows), rows.values.shape[1], rng))
            case = f"{name}, {kind.__name__} {options}"
            assert (novelty.excess(rows) == 0).mean() >= 0.97, case
            assert (novelty.excess(subsets) == 0).mean() >= 0.97, case
            assert (novelty.outside(rows) == 0).all(), case


def test_new_rows_of_the_same_kind_are_seldom_far_outside():
    later = patients(400, seed=5)
    for kind in (ConditionalPredictor, ImputedPredictor):
        novelty, predictor = novelty_of(patients(), kind)
        excess = novelty.excess(predictor.schema_.encode(later))
        assert (excess == 0).mean() > 0.95
        assert (excess > 1).mean() < 0.02
    holed = tables()["with holes"]
    novelty, predictor = novelty_of(holed[:150])
    assert (novelty.excess(predictor.schema_.encode(holed[150:])) == 0).mean() > 0.93


def test_nothing_known_is_nothing_new():
    for name, X in tables().items():
        novelty, _ = novelty_of(X)
        nothing = EncodedRows(np.full((1, X.shape[1]), np.nan))
        assert novelty.excess(nothing).tolist() == [0.0], name
        assert novelty.describe(nothing) == [[]], name


def test_a_number_outside_its_range_is_new_and_is_described_with_the_range():
    X = patients()
    novelty, predictor = novelty_of(X)
    later = X.iloc[[0, 0, 0, 0]].assign(age=[300.0, -50.0, float(X["age"].max() + 3), np.nan])
    rows = predictor.schema_.encode(later)
    assert (novelty.excess(rows) > 0).tolist() == [True, True, False, False]
    seen = [int(X["age"].min()), int(X["age"].max())]
    found = novelty.describe(rows)
    assert found[0] == [{"feature": "age", "column": "age", "value": 300, "seen": seen}]
    assert found[1] == [{"feature": "age", "column": "age", "value": -50, "seen": seen}]
    assert found[2:] == [[], []]
    json.dumps(found)


def test_novelty_grows_with_the_distance_and_stays_a_number():
    X = patients()
    novelty, predictor = novelty_of(X)
    ages = [50.0, 100.0, 130.0, 300.0, 1e6, 1e160, 1e308]
    rows = predictor.schema_.encode(pd.concat([X.iloc[[0]]] * len(ages)).assign(age=ages, height=np.nan))
    excess = novelty.excess(rows)
    assert excess[:2].tolist() == [0.0, 0.0]
    assert (np.diff(excess[1:]) > 0).all()
    assert not np.isnan(excess).any()
    # One column a little outside is less than several of them far outside.
    further = rows.with_values(rows.values.copy())
    further.values[:, 3] = 1e9
    assert (novelty.excess(further) >= excess).all()
    extreme = further.with_values(np.where([True, True, True, True, True, False], -1e308, further.values))
    assert (novelty.excess(extreme) > 100).all()


def test_a_long_tail_has_no_sharp_end_and_a_constant_column_has_one():
    X = patients()
    novelty, predictor = novelty_of(X)
    largest = float(X["crp"].max())
    rows = predictor.schema_.encode(
        pd.concat([X.iloc[[0]]] * 4).assign(crp=[1.4 * largest, 1e9, 1.0, 1.0], site=[3.0, 3.0, 3.1, 30.0])
    )
    assert (novelty.outside(rows).sum(axis=1) > 0).tolist() == [False, True, False, True]
    # A rare 1 among zeros is no tail: 2 is outside.
    rare, around = novelty_of(pd.DataFrame({"flag": np.arange(200) % 50 == 0, "x": np.arange(200.0)}).astype(float))
    assert rare.outside(around.schema_.encode(pd.DataFrame({"flag": [2.0, 1.0], "x": [5.0, 5.0]})))[:, 0].tolist() == [
        0.75,
        0.0,
    ]


def test_a_case_far_from_every_training_row_is_new_though_each_of_its_cells_is_common():
    X = patients()
    for kind in (ConditionalPredictor, ImputedPredictor):
        novelty, predictor = novelty_of(X[["height", "arm"]], kind)
        tall, short = X["height"].quantile(0.98), X["arm"].quantile(0.02)
        rows = predictor.schema_.encode(
            pd.DataFrame({"height": [tall, tall, np.nan], "arm": [short, np.nan, short]}),
        )
        excess = novelty.excess(rows)
        assert excess[0] > 0.3, kind.__name__
        assert excess[1:].tolist() == [0.0, 0.0], kind.__name__
        assert novelty.describe(rows) == [[], [], []], kind.__name__


def test_an_unseen_category_is_new_and_changes_nothing_for_others():
    X = patients()
    novelty, predictor = novelty_of(X)
    before = novelty.excess(predictor.schema_.encode(X))
    rows = predictor.schema_.encode(X[:3].assign(blood=["?", "A", "C"]))
    assert (novelty.excess(rows) > 0).tolist() == [True, False, True]
    described = [row[0]["value"] if row else None for row in novelty.describe(rows)]
    assert described == ["?", None, "C"]
    assert novelty.describe(rows)[0][0]["seen"] == ["0", "A", "AB", "B"]
    np.testing.assert_array_equal(novelty.excess(predictor.schema_.encode(X)), before)


def test_distances_that_are_known_are_used_and_are_the_same():
    X = patients()
    novelty, predictor = novelty_of(X)
    rows = predictor.schema_.encode(patients(50, seed=3)).masked(np.array([True, False, True, True, False, True]))
    belief = predictor.believe(rows)
    np.testing.assert_array_equal(novelty.excess(rows, belief.distances), novelty.excess(rows))


def test_a_pool_of_one_row():
    X = patients(20)
    novelty, predictor = novelty_of(X, max_rows=1)
    excess = novelty.excess(predictor.training_rows_)
    assert np.isfinite(excess).all()


def test_it_is_made_quickly_for_large_and_for_wide_tables():
    rng = np.random.default_rng(0)
    for shape in ((5000, 30), (400, 1500)):
        X = rng.normal(size=shape)
        predictor = ConditionalPredictor(wrap(toss_a_coin, [0, 1])).fit(X, np.arange(len(X)) % 2)
        start = time.process_time()
        Novelty(predictor)
        assert time.process_time() - start < 5, shape  # a fraction of a second on an idle machine


# In the selector -----------------------------------------------------------------------------------------------------


def labels(X):
    return ((X["age"] > 55) ^ (X["blood"] == "B")).astype(int).to_numpy()


def model():
    return make_pipeline(OneHotEncoder(handle_unknown="ignore", min_frequency=5), LogisticRegression())


@pytest.fixture(scope="module")
def selector():
    X = patients(150)
    return DynamicFeatureSelector(model(), random_state=0, progress=False, policy="static").fit(X, labels(X))


def test_an_impossible_answer_raises_e_and_is_told_in_the_session(selector):
    session = selector.start({"height": 170.0})
    before = session.report()
    assert before["novelty"] == 0.0
    assert before["outside"] == []
    session.answer("age", 300)
    report = session.report()
    assert report["novelty"] > 0.5
    assert report["uncertainty"]["epistemic"] > LN2 * (1 - np.exp(-report["novelty"])) - 1e-9
    (found,) = report["outside"]
    assert (found["feature"], found["value"], len(found["seen"])) == ("age", 300, 2)
    assert [step["novelty"] for step in report["trace"]] == [0.0, report["novelty"]]
    json.dumps(report)
    session.undo()
    assert session.report()["outside"] == []


def test_novelty_joins_e_and_stands_beside_it_in_every_answer(selector):
    X = patients(150)
    usual, strange = X[:5], X[:5].assign(age=300)
    found, far = selector.uncertainty(usual), selector.uncertainty(strange)
    assert (found.novelty == 0).all()
    assert (far.novelty > 0.5).all()
    members_alone = selector.beliefs_.uncertainty(selector.beliefs_.believe(selector.schema_.encode(strange)))
    joined = members_alone.epistemic + LN2 * (1 - np.exp(-far.novelty))
    np.testing.assert_allclose(far.epistemic, joined, rtol=0, atol=1e-12)
    np.testing.assert_allclose(far.mutual_information, members_alone.mutual_information, rtol=0, atol=1e-12)
    frame = selector.acquire(strange).to_frame()
    bought = frame[frame["feature"] == "age"]
    assert len(bought) == 5
    assert (bought["novelty"] > 0.5).all()
    assert (frame[frame["step"] == 0]["novelty"] == 0).all()


def test_a_session_has_the_novelty_of_its_row_in_a_batch(selector):
    X = patients(150)
    strange = X[["age", "height", "blood"]].iloc[[0, 1, 2]].assign(age=[300, 40, 200])
    batch = selector.uncertainty(strange.reindex(columns=X.columns))
    for r in range(3):
        session = selector.start()
        for name in ("blood", "age", "height"):
            value = strange.iloc[r][name]
            session.answer(name, value.item() if hasattr(value, "item") else value)
        report = session.report()
        assert report["novelty"] == batch.novelty[r]
        np.testing.assert_allclose(report["uncertainty"]["epistemic"], batch.epistemic[r], rtol=0, atol=1e-9)


def test_without_members_e_stays_unknown_and_novelty_does_not():
    X = patients(100)
    alone = DynamicFeatureSelector(model(), epistemic=None, policy="random", random_state=0).fit(X, labels(X))
    found = alone.uncertainty(X[:3].assign(age=[30, 300, 50]))
    assert np.isnan(found.epistemic).all()
    assert (found.novelty > 0).tolist() == [False, True, False]
    report = alone.start({"age": 300}).report()
    assert report["uncertainty"]["epistemic"] is None
    assert isinstance(report["novelty"], float)
    assert report["novelty"] > 0


def test_usual_distances_are_those_of_rows_with_as_many_columns():
    """By hand: distances 2 and 3 over one and two columns; rows without a neighbour say nothing about theirs."""
    counts = np.array([0, 1, 1, 1, 2, 2, 2, 3, 3])
    squared = np.array([0.0, 4.0, 4.0, 4.0, 18.0, 18.0, 18.0, np.inf, np.inf])
    sizes, usual = _usual(counts, squared)
    assert sizes.tolist() == [1.0, 2.0]
    np.testing.assert_allclose(usual, [2.0, 3.0])
    sizes, usual = _usual(np.array([1, 1, 2]), np.array([0.01, 0.01, 50.0]))
    np.testing.assert_allclose(usual, [np.sqrt(2), 5.0])  # one category that differs is never unusual
    sizes, usual = _usual(np.array([1, 2]), np.array([np.inf, np.inf]))
    assert (sizes.tolist(), usual.tolist()) == ([1.0], [np.sqrt(2)])
