"""Each state is believed once, whoever asks: completed once, by model and members together, and in blocks."""

import json
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import askwise.predict.conditional
from askwise import DynamicFeatureSelector, Prices
from askwise.epistemic import AuxiliaryEnsemble
from askwise.evaluation import final_states
from askwise.policy import Greedy
from askwise.predict import ConditionalPredictor
from askwise.stopping import Confidence

FEATURES = ["age", "iron", "scan", "pulse"]


def data(n=80):
    """Few different values, so that cases meet the same states."""
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 3, size=(n, 4)).astype(float), columns=FEATURES)
    return X, (2 * X["scan"] + X["iron"] + 0.5 * X["age"] > 3).astype(int).to_numpy()


def selector(model=None, **options):
    options = {
        "adaptation": ConditionalPredictor(None, n_neighbors=12, random_state=0),
        "epistemic": AuxiliaryEnsemble(2, random_state=0),
        "risk_weight": 0.5,
        "random_state": 0,
        "progress": False,
        **options,
    }
    return DynamicFeatureSelector(LogisticRegression() if model is None else model, **options).fit(*data())


@pytest.fixture(scope="module")
def fitted():
    return selector()


@pytest.fixture
def completed(monkeypatch):
    """The rows that are completed from now on, in order."""
    seen: list[bytes] = []
    own = ConditionalPredictor._complete

    def spy(self, rows, distances, leave_out):
        seen.extend(row.tobytes() for row in rows.values)
        return own(self, rows, distances, leave_out)

    monkeypatch.setattr(ConditionalPredictor, "_complete", spy)
    return seen


def states_met(run, X):
    """The different states that the cases of an acquisition went through."""
    met = set()
    for t in range(run.n_steps + 1):
        met |= {row.tobytes() for row in np.where(run.mask_after(t), X.to_numpy(), np.nan)}
    return met


def test_an_acquisition_completes_each_state_once(completed):
    X, _ = data()
    cases: dict[str, dict[str, Any]] = {
        "members and a risk weight": {},
        "no risk weight": {"risk_weight": 0.0},
        "no members": {"epistemic": None},
        "another policy": {"policy": "static"},
        "distance": {"epistemic": "distance"},
    }
    for name, options in cases.items():
        owner = selector(**options)
        for stop in (None, Confidence(0.9)):
            completed.clear()
            run = owner.acquire(X[:30], budget=3, stop=stop)
            assert run.proba.shape[:2] == (30, run.n_steps + 1)  # of a static order, computed now that it is read
            met = states_met(run, X[:30])
            assert len(met) < 30 * run.n_steps  # some are met by several cases
            assert len(completed) == len(set(completed)), f"{name}: a state was completed twice"
            assert set(completed) == met, name


def test_a_session_completes_each_state_once(fitted, completed):
    session = fitted.start(budget=4)
    states = 1
    assert len(completed) == states
    for _ in range(3):
        suggestion = session.suggest()
        session.report()
        repr(session)
        session.suggest()
        assert len(completed) == states
        session.answer(suggestion.feature, 1.0)
        states += 1
        json.dumps(session.report())
        assert len(completed) == states
    session.unavailable(session.suggest().feature)
    session.report()
    assert len(completed) == states, "what is unavailable changes nothing that is believed"
    session.undo()
    session.undo()
    session.report()
    assert len(completed) == states, "what is undone was believed before"


def test_a_session_with_rules_completes_each_state_once_and_explains_it(completed):
    """The predictor works by rules; completions serve the value of a feature alone."""
    owner = selector(DecisionTreeClassifier(max_depth=3, random_state=0), adaptation="rules")
    completed.clear()
    session = owner.start(budget=4)
    for states in (1, 2):
        assert session.report()["rules"]
        session.answer(session.suggest().feature, 1.0)
        session.report()
        session.report()
        assert len(completed) == states


class Watching(LogisticRegression):
    """Notes the tables that it is asked about."""

    def predict_proba(self, X):
        self.__dict__.setdefault("asked_", []).append(np.array(X))
        return super().predict_proba(X)


def test_model_and_members_are_asked_about_the_same_completed_rows():
    X, y = data()
    model, *members = (Watching(C=c).fit(X, y) for c in (1.0, 0.1, 0.01))
    owner = selector(model, epistemic=AuxiliaryEnsemble(estimators=members))
    for watching in (model, *members):
        watching.asked_ = []
    owner.acquire(X[:10], budget=2)
    owner.start({"scan": 1.0}).suggest()
    assert len(model.asked_) >= 4
    for member in members:
        assert len(member.asked_) == len(model.asked_)
        for ours, theirs in zip(member.asked_, model.asked_, strict=True):
            assert_array_equal(ours, theirs)


def test_rows_that_are_alike_are_worked_out_once(fitted, completed):
    X, _ = data()
    twice = pd.concat([X[:7].drop_duplicates()] * 3)
    found = fitted.uncertainty(twice)
    assert len(completed) == len(twice) // 3
    alone = fitted.uncertainty(twice[: len(twice) // 3])
    assert_allclose(found.epistemic, np.tile(alone.epistemic, 3), rtol=0, atol=1e-12)


def test_a_changed_risk_weight_is_that_of_the_next_session(fitted):
    owner = selector(risk_weight=0.0)

    def ranking(session):
        session.answer("age", 1.0)
        return session.suggest().ranking

    expected, opened = ranking(owner.start()), owner.start()
    owner.set_params(risk_weight=50.0)
    assert ranking(opened) == expected
    assert ranking(owner.start()) != expected
    owner.set_params(risk_weight=0.0)
    assert ranking(owner.start()) == expected


def test_asking_writes_nothing_to_the_policy(fitted):
    X, y = data()
    for policy in (Greedy(), Greedy(risk_weight=0.3), "static", "random"):
        owner = fitted.with_policy(policy)
        before = joblib.hash(owner.policy_.__dict__)
        owner.suggest(X.where(X > 0), budget=2)
        owner.start(budget=2).suggest()
        owner.gains(X[:5])
        owner.acquire(X[:5], budget=2)
        owner.evaluate(X[:5], y[:5], budgets=[1, 2])
        assert joblib.hash(owner.policy_.__dict__) == before, policy


def test_a_policy_with_a_risk_weight_of_its_own_is_evaluated_as_it_buys():
    """With members, although the selector itself has no use for them."""
    X, _ = data()
    owner = selector(
        DecisionTreeClassifier(max_depth=4, random_state=0), risk_weight=0.0, policy=Greedy(risk_weight=8.0)
    )
    for policy in (None, Greedy(risk_weight=0.0)):
        buyer = owner if policy is None else owner.with_policy(policy)
        end = final_states(buyer, X, [2])[0]
        assert_array_equal(end.mask, buyer.acquire(X, budget=2).mask_after(-1))
    assert not np.array_equal(final_states(owner, X, [2])[0].mask, end.mask)


def everything(owner, X, y):
    """All that can be asked about many rows, as arrays."""
    known = X.where(np.random.default_rng(1).random(X.shape) < 0.5)
    run = owner.acquire(X, budget=[*range(4)] * (len(X) // 4), stop=Confidence(0.97))
    return {
        "predict_proba": owner.predict_proba(known),
        "suggest": owner.suggest(known, budget=2),
        "gains": owner.gains(known),
        **{f"uncertainty, {name}": values for name, values in owner.uncertainty(known).as_dict().items()},
        "order": run.order,
        "costs": run.costs,
        "proba": run.proba,
        "start": run.start,
        **{f"run, {name}": values for name, values in run.uncertainty.as_dict().items()},
        "evaluate": owner.evaluate(X, y, budgets=[1, 2, 3]).to_numpy(),
    }


def test_blocks_of_rows_give_what_one_block_gives(fitted, monkeypatch):
    X, y = data()
    X, y = X[:40], y[:40]
    priced = selector(costs=Prices([2, 1, 1, 1], shared=[([0, 1], 1)]))
    for owner, policies in ((fitted, ("greedy", "random")), (priced, ("greedy", "static", "random"))):
        for policy in policies:
            buyer = owner.with_policy(policy)
            expected = everything(buyer, X, y)
            with monkeypatch.context() as patched:
                patched.setattr(askwise.predict.conditional, "CELLS_KEPT", 80 * 7)
                assert buyer.beliefs_.rows_at_once == 7
                found = everything(buyer, X, y)
            for name, values in found.items():
                message = f"{policy}: {name}"
                assert_allclose(values, expected[name], rtol=0, atol=1e-9, err_msg=message)
