"""The stateless call says what a session says after the same answers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from askwise import DynamicFeatureSelector, Prices
from askwise.errors import InvalidInput

NAMES = list("abcd")


def data(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=NAMES)
    return X, (X["a"] + X["b"] - 0.5 * X["c"] + 0.5 * rng.normal(size=n) > 0).to_numpy()


@pytest.fixture(scope="module")
def owner():
    prices = Prices({"a": 3, "b": 2, "c": 1, "d": 0}, shared=[(["a", "b"], 1)])
    quick: dict[str, Any] = {"epistemic": "distance", "calibration": None, "random_state": 0, "progress": False}
    made = DynamicFeatureSelector(LogisticRegression(), costs=prices, **quick).fit(*data())
    made.calibrate_stop(data(120, 1)[0], agreement=0.9)
    return made


def alike(one, other):
    """The same words and choices, numbers up to rounding: a session updates what a call computes at once."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float):
        return one == pytest.approx(other, rel=1e-9, abs=1e-12)
    return one == other


def test_it_equals_a_session(owner):
    """`benchmarks/stateless.py` draws 200 cases."""
    rng, X = np.random.default_rng(0), data(30, 2)[0]
    for k in range(30):
        names = [str(name) for name in rng.permutation(NAMES)]
        n_known, n_answered = rng.integers(0, 3), rng.integers(0, 3)
        known = {name: float(X[name].iloc[k]) for name in names[:n_known]}
        answers = {name: float(X[name].iloc[k]) for name in names[n_known : n_known + n_answered]}
        gone = names[n_known + n_answered :][: rng.integers(0, 2)]
        how: dict[str, Any] = {"stop": "calibrated"} if k % 2 else {"budget": 6.0}
        session = owner.start(known, **how)
        for name, value in answers.items():
            session.answer(name, value)
        for name in gone:
            session.unavailable(name)
        found = owner.next(known, answers, unavailable=gone, **how)
        assert alike(found, session.next())
        report = session.report()
        assert {name: found[name] for name in ("suggestion", "spent", "guarantee", "known")} == {
            name: report[name] for name in ("suggestion", "spent", "guarantee", "known")
        }
        assert json.loads(json.dumps(found))["advice"] == session.why()["advice"]


def test_bad_input_is_refused_as_a_session_does(owner):
    cases: list[tuple[dict[str, Any], str]] = [
        ({"answers": [1]}, "answers must be a dict"),
        ({"unavailable": "a"}, "must be a list"),
        ({"answers": {"z": 1}}, "there is no feature 'z'"),
        ({"known": {"a": 1}, "answers": {"a": 1}}, "known already"),
        ({"answers": {"a": 1}, "budget": 1}, "only 1 is left"),
    ]
    for wrong, said in cases:
        with pytest.raises(InvalidInput, match=said):
            owner.next(**wrong)


@pytest.mark.parametrize("given", ["no", 0, None])
def test_outcomes_is_a_flag(owner, given):
    with pytest.raises(InvalidInput, match="outcomes must be True or False"):
        owner.next(outcomes=given)
