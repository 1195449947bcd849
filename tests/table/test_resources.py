"""More than one price: what tests take of money, time and other resources, and that no budget of any is exceeded."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from tests.commands import run

import askwise
from askwise import DynamicFeatureSelector, InvalidInput, Prices
from askwise.cli.price_list import price_list, read_price_list
from askwise.policy import DQN, Distilled, Greedy, Lookahead, Planned
from askwise.stopping import Confidence
from askwise.table.desk import Desk

NAMES = ["a", "b", "c", "d", "panel"]
GROUPS = {"panel": ["e", "f"]}
COSTS = {"a": 5.0, "b": 3.0, "c": 1.0, "d": 1.0, "panel": 4.0}
TIME = {"a": 10.0, "b": 4.0, "c": 1.0, "panel": 4.0}
SHARED = [(["a", "b"], {"money": 2.0, "time": 0.5}), (["b", "c", "panel"], 1.0)]
PRICES = Prices(COSTS, SHARED, TIME, harm={"b": 1.0, "panel": 2.0})
POLICIES: dict[str, Any] = {
    "greedy": "greedy",
    "per price": Greedy(price_rule="per price"),
    "planned": Planned(),
    "lookahead": Lookahead(),
    "static": "static",
    "random": "random",
    "distilled": Distilled(n_states=200),
    "rl": DQN(n_episodes=20),
    "errors": "greedy",
}


def data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 6)), columns=list("abcdef"))
    y = np.where(X["a"] + 0.8 * X["b"] - 0.6 * X["c"] + X["e"] + 0.4 * rng.normal(size=n) > 0, "ill", "well")
    return X, y


MODEL = LogisticRegression().fit(*data())


def selector(policy: Any = "greedy", **options: Any) -> Any:
    usual: dict[str, Any] = {"epistemic": None, "calibration": None, "random_state": 0, "progress": False}
    usual |= {"costs": PRICES, "groups": GROUPS, "policy": policy}
    return DynamicFeatureSelector(MODEL, **{**usual, **options}).fit(*data())


@cache
def usual() -> Any:
    return selector()


@pytest.fixture(scope="module")
def owners():
    """A fitted selector for each policy, with a weight for time in every other one."""
    weighed = Prices(COSTS, SHARED, TIME, harm={"b": 1.0, "panel": 2.0}, weights={"time": 0.3, "harm": 2.0})
    found = {}
    for k, (name, policy) in enumerate(POLICIES.items()):
        errors = {"error_costs": {"ill": 80, "well": 60}} if name == "errors" else {}
        found[name] = selector(policy, costs=weighed if k % 2 else PRICES, **errors)
    return found


def taken(prices: Prices, order: list[int], known: np.ndarray) -> np.ndarray:
    """(T, R) what each step takes, from the definition: each set-up part is saved by all but the first of its set."""
    mask, found = known.copy(), []
    for i in order:
        step = [float(part.costs[i]) for part in prices.parts]
        for r, part in enumerate(prices.parts):
            step[r] -= sum(saving for together, saving in part.shared if i in together and mask[together].any())
        mask[i] = True
        found.append(step)
    return np.array(found).reshape(-1, len(prices.resources))


limit = st.one_of(st.none(), st.floats(0, 15))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(policy=st.sampled_from(list(POLICIES)), money=limit, time=limit, harm=st.one_of(st.none(), st.floats(0, 3)))
def test_no_budget_of_any_resource_is_ever_exceeded(owners, policy, money, time, harm):
    owner, X = owners[policy], data(12, 1)[0]
    budget = {"money": money, "time": time, "harm": harm}
    most = np.array([np.inf if each is None else each for each in budget.values()])
    at_start = np.random.default_rng(0).random((len(X), 5)) < 0.15
    run = owner.acquire(X, budget, known=at_start)
    amounts = np.stack(list(run.amounts.values()), axis=2)
    assert list(run.amounts) == ["money", "time", "harm"]
    for r, order in enumerate(run.order):
        steps = order[order >= 0].tolist()
        expected = taken(owner.prices_, steps, at_start[r])
        assert_allclose(amounts[r, : len(steps)], expected, atol=1e-9)
        assert (expected.sum(axis=0) <= most * (1 + 1e-9) + 1e-12).all()
        if policy == "errors":
            continue  # it stops where nothing pays
        for i in set(range(5)) - set(steps) - set(np.flatnonzero(at_start[r])):  # nothing is left that would fit
            more = taken(owner.prices_, [*steps, i], at_start[r]).sum(axis=0)
            assert (more > most * (1 - 1e-9)).any() or not owner.policy_.never_declines


@pytest.mark.parametrize("policy", list(POLICIES))
def test_a_session_equals_the_batch(owners, policy):
    owner, X = owners[policy], data(4, 2)[0]
    budget = {"money": 9.0, "time": 11.0}
    run = owner.acquire(X, budget)
    assert_array_equal(owner.suggest(X * np.nan, budget), run.order[:, 0])
    if policy == "random":
        return  # a row's order is drawn by its number in the batch
    for r in range(len(X)):
        session, asked = owner.start(budget=budget), []
        while (suggestion := session.suggest()) is not None:
            assert suggestion.amounts == session.amounts[suggestion.feature]
            asked.append(suggestion.feature)
            session.answer(asked[-1], X.loc[r, ["e", "f"]].to_dict() if asked[-1] == "panel" else X.loc[r, asked[-1]])
        assert asked == [NAMES[i] for i in run.order[r] if i >= 0]
        report = json.loads(json.dumps(session.report()))
        for name, purse in report["resources"].items():
            assert purse["spent"] == pytest.approx(run.spent_after(-1, name)[r])
            assert purse["left"] == (pytest.approx(budget[name] - purse["spent"]) if name in budget else None)
        assert sum(step["amounts"]["time"] for step in report["trace"]) == pytest.approx(run.spent_after(-1, "time")[r])


def test_without_weights_and_budgets_other_resources_change_nothing():
    X, y = data(40, 3)
    plain = Prices(
        COSTS, [(names, saving["money"] if isinstance(saving, dict) else saving) for names, saving in SHARED]
    )
    for policy in ("greedy", "planned", "lookahead", "static"):
        one, other = selector(policy, costs=plain), selector(policy)
        for budget in (None, 7.0):
            before, after = one.acquire(X, budget), other.acquire(X, budget)
            assert_array_equal(before.order, after.order)
            assert_array_equal(before.costs, after.costs)
            assert_array_equal(before.proba, after.proba)
        assert_array_equal(one.ranking(X * np.nan), other.ranking(X * np.nan))
        table = other.evaluate(X, y, [3.0, 6.0])
        pd.testing.assert_frame_equal(table.drop(columns=["time", "harm"]), one.evaluate(X, y, [3.0, 6.0]))


def test_a_weight_ranks_by_what_an_hour_is_worth():
    X = data(3, 4)[0] * np.nan
    quick = selector(costs=Prices(COSTS, time={"a": 100.0}, weights={"time": 5.0}))
    plain = selector(costs=Prices(COSTS, time={"a": 100.0}))
    assert_allclose(quick.gains(X)[:, 0] * (5 + 5 * 100), plain.gains(X)[:, 0] * 5)
    assert_array_equal(quick.gains(X)[:, 1:], plain.gains(X)[:, 1:])
    slow = selector(costs=Prices({**COSTS, "d": 0.0}, time={"d": 1.0}, weights={"time": 1.0}))
    assert slow.start(stop=Confidence(0.5)).suggest() is None  # what takes time is not free, and not always asked
    assert selector(costs={**COSTS, "d": 0.0}).start(stop=Confidence(0.5)).suggest().feature == "d"
    ranking = quick.start().report()["ranking"]
    assert {entry["feature"]: entry["weighed"] for entry in ranking}["a"] == 505.0


def test_what_is_ordered_together_takes_the_longest_and_what_follows_adds_up():
    owner = usual()
    session = owner.start(budget={"money": 12, "time": 12})
    session.order_set(["a", "b"])
    assert session.resources["money"] == {"spent": 6.0, "left": 6.0}
    assert session.resources["time"] == {"spent": 0.0, "left": 12.0}
    session.answer("b", 0.1)
    assert session.resources["time"] == {"spent": 4.0, "left": 8.0}
    session.answer("c", 0.1)  # while the other is out
    assert session.resources["time"] == {"spent": 5.0, "left": 7.0}
    session.answer("a", 0.1)
    assert session.resources["time"] == {"spent": 10.0, "left": 2.0}
    with pytest.raises(InvalidInput, match=r"'panel' takes time: 4 and only 2 is left"):
        session.answer("panel", {"e": 1.0, "f": 0.0})
    session.undo()
    assert session.resources["time"] == {"spent": 5.0, "left": 7.0}
    with pytest.raises(InvalidInput, match=r"panel takes time: 8 and only 7 is left"):
        session.order("panel", hours=8)
    session.order("panel")  # beside the one that is out
    one_by_one = owner.start(budget={"time": 12})
    one_by_one.answer("a", 0.1)
    assert one_by_one.resources["time"]["spent"] == 10.0
    assert one_by_one.amounts["b"] == {"money": 1.0, "time": 3.5, "harm": 1.0}
    assert "b" not in {name for name, _, _ in one_by_one.suggest().ranking}
    assert "2 of the budget of time is left, and" in _with_nothing_left(one_by_one)


def _with_nothing_left(session: Any) -> str:
    for name in ("c", "d"):
        session.answer(name, 0.1) if name == "d" else session.unavailable(name)
    return session.why()["text"]


def test_a_set_within_limits_and_its_amounts():
    owner = usual()
    wide, narrow = owner.start().suggest_set(11), owner.start().suggest_set({"money": 11, "time": 4})
    assert "a" in wide.features
    assert "a" not in narrow.features
    for found in (wide, narrow):
        chosen = np.isin(NAMES, found.features)
        amounts = owner.prices_.together(np.zeros(5, dtype=bool), chosen)
        assert list(found.amounts.values()) == amounts.tolist()
        assert found.amounts["time"] == max(TIME.get(name, 0.0) for name in found.features)
        assert found.amounts["money"] == found.price <= 11
    session = owner.start(budget={"harm": 0.5})
    assert set(session.suggest_set(100).features) <= {"a", "c", "d"}
    assert set(owner.suggest_set(data(1, 5)[0] * np.nan, {"time": 0.5})[0].features) <= {"d"}


def test_measures_and_savings_by_resource():
    owner, (X, y) = usual(), data(60, 6)
    table = owner.evaluate(X, y, [{"money": 6, "time": 5}, 6, {"harm": 0}])
    assert_array_equal(table["budget"], [6, 6, np.inf])
    assert_array_equal(table["budget_time"], [5, np.inf, np.inf])
    assert_array_equal(table["budget_harm"], [np.inf, np.inf, 0])
    for k, budget in enumerate([{"money": 6, "time": 5}, 6, {"harm": 0}]):
        run = owner.acquire(X, budget)
        for name, column in {"money": "spent", "time": "time", "harm": "harm"}.items():
            assert table[column][k] == pytest.approx(run.spent_after(-1, name).mean())
    records = owner.evaluate(X, y, [{"money": 6, "time": 5}], missing="doubly_robust")
    assert records["time"][0] == pytest.approx(table["time"][0])
    assert owner.evaluate(X, y, [{"time": 5}], subgroups=[1, "1"] * 30)["subgroup"].tolist() == ["all cases", 1, "1"]
    frame = owner.acquire(X[:5], {"time": 5}).to_frame()
    assert frame.columns[3:7].tolist() == ["cost", "spent", "time", "harm"]
    assert (
        frame.groupby("case")["time"].last().tolist()
        == owner.acquire(X[:5], {"time": 5}).spent_after(-1, "time").tolist()
    )
    saved = owner.savings(X, [0.6], budget={"time": 11})
    assert (saved["time"].dropna() <= 11).all()
    assert list(saved.columns[-2:]) == ["time", "harm"]
    uniform = selector(costs=Prices(time={"a": 4.0, "b": 3.0}))  # one run cannot serve all budgets
    spent = uniform.evaluate(X, y, [{"money": 3, "time": 3}, 3])["time"]
    assert spent[0] <= 3 < spent[1] + 1e-9


def test_a_calibrated_stop_and_a_handover_hold_for_their_budget_only(tmp_path):
    budget = {"money": 9.0, "time": 12.0}
    owner, X = selector(budget=budget), data(300, 7)[0]
    stop = owner.calibrate_stop(X, agreement=0.6, per_class=False)
    assert "budget (money 9, time 12)" in stop.promise
    owner.calibrate_handover(*data(200, 8), accuracy=0.6)
    assert "budget (money 9, time 12)" in owner.handover_.promise
    run = owner.acquire(X[:20], stop="calibrated")
    assert (run.spent_after(-1, "time") <= 12).all()
    with pytest.raises(InvalidInput, match=r"calibrated for budget=money 9, time 12, not budget=9"):
        owner.acquire(X[:5], 9, stop="calibrated")
    owner.save(tmp_path / "saved")
    again = askwise.load(tmp_path / "saved")
    assert again.prices_.same_as(owner.prices_)
    assert again.budget == budget
    assert_array_equal(again.acquire(X[:20], stop="calibrated").order, run.order)
    assert again.start(stop="calibrated").report()["handover"] is not None
    chart = owner.flowchart(X, budget={"time": 5})
    assert "a" not in {question.feature for question in _questions(chart.root)}


def _questions(node: Any) -> Any:
    for _, child in getattr(node, "branches", ()):
        yield from _questions(child)
    if hasattr(node, "branches"):
        yield type("Asked", (), {"feature": NAMES[node.feature]})


def test_a_deadline_and_a_budget_of_time_are_both_kept():
    owner = usual()
    session = owner.start(budget={"time": 5}, deadline=12)
    assert "a" not in {name for name, _, _ in session.suggest().ranking}
    session.at(9)
    assert "b" not in {name for name, _, _ in session.suggest().ranking}  # back at 13
    assert session.resources["time"] == {"spent": 0.0, "left": 5.0}


def test_a_price_list_keeps_times_and_every_set_up(tmp_path):
    owner = usual()
    path = tmp_path / "prices.csv"
    path.write_text(price_list(owner.schema_, owner.prices_, Desk()))
    header = path.read_text().splitlines()[0].split(",")
    assert {"time", "harm", "setup_time", "setup_2", "setup_cost_2"} <= set(header)
    found = read_price_list(path, owner.schema_, ())[0]
    assert found.resolve(NAMES).same_as(owner.prices_)
    assert price_list(owner.schema_, found.resolve(NAMES), Desk()) == path.read_text()


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("curency", "has a column 'curency'"),
        ("setup_harm", "has a column 'setup_harm'"),
        ("accuracy", "cannot be called 'accuracy'"),
    ],
)
def test_a_price_list_with_a_column_that_is_no_resource_is_refused(tmp_path, head, said):
    owner, path = usual(), tmp_path / "prices.csv"
    path.write_text(f"feature,price,{head}\n" + "".join(f"{name},1,2\n" for name in NAMES))
    with pytest.raises(InvalidInput, match=said):
        read_price_list(path, owner.schema_, ())


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"hours": 1}, r"no resource 'hours' in the prices, which have 'money', 'time', 'harm'"),
        ({"time": -1}, "budget of time must be >= 0"),
        ({"time": np.nan}, "budget of time must be >= 0"),
        ({"time": True}, "budget of time must be a number >= 0"),
        ({"time": "3"}, "budget of time must be a number >= 0"),
        ({"money": [1.0, 2.0]}, "budget of money must be one number or"),
        ({"money": [True]}, "budget of money must be a number >= 0"),
    ],
)
def test_a_budget_that_is_none_is_refused_everywhere(budget, said):
    owner, (X, y) = usual(), data(12, 9)
    asks = [
        lambda: owner.acquire(X, budget),
        lambda: owner.suggest(X, budget),
        lambda: owner.start(budget=budget),
        lambda: owner.next(budget=budget),
        lambda: owner.savings(X, budget=budget),
        lambda: owner.flowchart(X, budget=budget),
        lambda: selector(budget=budget),
    ]
    for ask in asks:
        with pytest.raises(InvalidInput, match=said):
            ask()
    with pytest.raises(InvalidInput, match=r"budget|no resource"):
        owner.evaluate(X, y, [budget])
    with pytest.raises(InvalidInput, match=r"price|no resource"):
        owner.start().suggest_set(budget)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"weights": {"time": 1}}, "weights.*no resource 'time'"),
        ({"time": {"a": 1}, "weights": {"time": -1}}, "weight of 'time' must be"),
        ({"time": {"a": 1}, "weights": {"time": True}}, "weight of 'time' must be"),
        ({"weights": {"money": 1}}, "leave out 'money'"),
        ({"weights": [1]}, "weights must be a dict"),
        ({"harm": {"a": -1}}, "harm of 'a' must be a finite number"),
        ({"harm": {"a": True}}, "harm of 'a' must be a finite number"),
        ({"harm": {"q": 1}}, "no feature 'q'"),
        ({"accuracy": {"a": 1}}, "cannot be called 'accuracy'"),
        ({"shared": [(["a", "b"], {"time": 1})]}, "no resource 'time'"),
        ({"time": {"a": 1, "b": 3}, "shared": [(["a", "b"], {"time": 2})]}, "more than its time 1"),
    ],
)
def test_prices_that_are_none_are_refused(given, said):
    with pytest.raises(InvalidInput, match=said):
        Prices({"a": 1.0}, **given).resolve(["a", "b"])


def test_prices_saved_before_there_were_resources_are_read():
    old = Prices.__new__(Prices)
    old.costs, old.shared = np.array([2.0, 3.0]), [(np.array([0, 1]), 1.0)]
    assert old.resources == ["money"]
    assert old.weighed is old
    assert old.limits(4, 2).tolist() == [[4.0], [4.0]]
    assert [one < other for one, other in pairwise(old.now(np.array([[False, False], [True, False]]))[:, 1])] == [False]
    assert repr(old).startswith("Prices(array([2., 3.])")


def test_the_command_line_takes_budgets_and_weights_by_resource(tmp_path):
    X, y = data(90, 10)
    X[:60].assign(y=y[:60]).to_csv(tmp_path / "train.csv", index=False)
    X[60:].to_csv(tmp_path / "cases.csv", index=False)
    (tmp_path / "groups.toml").write_bytes(b'\xef\xbb\xbfpanel = ["e", "f"]\n')
    path = tmp_path / "prices.csv"
    path.write_text(price_list(usual().schema_, usual().prices_, Desk()))
    train, cases, model, out = (str(tmp_path / name) for name in ("train.csv", "cases.csv", "model", "out.csv"))
    options = ["--groups", str(tmp_path / "groups.toml"), "--prices", str(path), "-o", model, "--seed", "0"]
    fit = ["fit", train, "--target", "y", *options]
    run(*fit, "--budget", "money=9,time=12", "--weights", "time=0.2")
    assert askwise.load(model).prices_.weights == {"time": 0.2}
    run("acquire", model, cases, "-o", out)
    table = pd.read_csv(out)
    assert (table["time"] <= 12).all()
    assert (table["spent"] <= 9).all()
    found = json.loads(run("acquire", model, cases, "-o", out, "--budget", "time=4,harm=0", "--json").stdout)
    assert found["average"]["time"] == pytest.approx(pd.read_csv(out)["time"].mean())
    assert pd.read_csv(out)["harm"].max() == 0
    for bad, said in {"time=x": "neither a number", "time=-1": ">= 0", "hours=3": "no resource 'hours'"}.items():
        assert said in run("acquire", model, cases, "-o", out, "--budget", bad, code=2).output
    assert Path(out).exists()
