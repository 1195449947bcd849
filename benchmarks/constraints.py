"""Rules of the house under test: 200 drawn sets of rules, each with every policy and two baselines.

    python benchmarks/constraints.py                 # none broken, contradictions refused, nothing lost without a bind
    python benchmarks/constraints.py --sets 20

Each set is read by `tests/house_rules.py` as well, rule by rule and without the masks of askwise, on every purchase of
every case, with budgets, stops, features known at the start and missing cells. Of a set that is refused, 3,000 random
walks over all that its rules allow, with random values, must meet what the refusal says: that a feature is never
asked, that something mandatory is not, or that what is to come first cannot.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from askwise import DynamicFeatureSelector, InvalidInput
from askwise.constraints import Rule, at_most, only_if, requires
from askwise.policy import DQN, Distilled
from askwise.stopping import Confidence
from askwise_bench.baselines import StaticBest, StaticCMI

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.house_rules import barred, broken, drawn_rules

NAMES = list("abcdef")
COSTS = {"a": 2.0, "b": 1.0, "c": 3.0, "d": 1.0, "e": 0.0, "f": 2.0}
N_WALKS = 3000
POLICIES: dict[str, Any] = {
    **{name: name for name in ("greedy", "planned", "lookahead", "static", "random")},
    "distilled": Distilled(n_states=150, hidden=(8,), exact_share=0.3),
    "rl": DQN(n_episodes=40),
}
BASELINES = {"StaticCMI": StaticCMI, "StaticBest": StaticBest}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=200)
    sets = parser.parse_args().sets
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    drawn = [drawn_rules(NAMES, rng) for _ in range(sets)]
    fitted: dict[str, Any] = {name: selector(None, policy) for name, policy in POLICIES.items()}
    fitted |= {name: baseline(kind, None) for name, kind in BASELINES.items()}
    refused: list[tuple[list[Rule], str]] = []
    ran = dict.fromkeys([*POLICIES, *BASELINES], 0)
    broke = dict.fromkeys(ran, 0)
    for k, rules in enumerate(drawn):
        try:
            house = selector(rules, "static").schema_.rules
        except InvalidInput as error:
            refused.append((rules, str(error)))
            continue
        for name in ran:
            refit = k % len(ran) == list(ran).index(name)  # each policy also learns under rules, in turn
            made = fitted[name]
            if refit:
                made = baseline(BASELINES[name], rules) if name in BASELINES else selector(rules, POLICIES[name])
            made.schema_.rules = house
            broke[name] += len(found := violations(made, rules, k, rng))
            ran[name] += 1
            if found:
                print(name, rules, found[:3], flush=True)
    confirmed = sum(is_contradiction(rules, said, np.random.default_rng(0)) for rules, said in refused)
    print(f"{len(refused)} of {sets} sets contradict themselves and are refused; walks confirm {confirmed} of these")
    for name, n in ran.items():
        print(f"{name:12} {n} sets, {broke[name]} rules broken")
    for made in fitted.values():
        made.schema_.rules = None
    same = {name: unchanged(fitted[name], policy) for name, policy in POLICIES.items()}
    print("identical choices where no rule binds:", ", ".join(f"{name} {share:.0%}" for name, share in same.items()))


def rows(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 6)), columns=NAMES)
    return X, (X["a"] + 0.8 * X["b"] - 0.6 * X["c"] + 0.4 * rng.normal(size=n) > 0).to_numpy()


def selector(rules: list[Rule] | None, policy: Any) -> DynamicFeatureSelector:
    X, y = rows(150, 0)
    model = LogisticRegression().fit(X, y)
    quick: dict[str, Any] = {"epistemic": None, "calibration": None, "random_state": 0, "progress": False}
    return DynamicFeatureSelector(model, costs=COSTS, constraints=rules, policy=policy, **quick).fit(X, y)


def baseline(kind: Any, rules: list[Rule] | None) -> Any:
    return kind(costs=COSTS, constraints=rules, random_state=0).fit(*rows(150, 0))


def violations(made: Any, rules: list[Rule], k: int, rng: np.random.Generator) -> list[str]:
    X = rows(12, 1 + k)[0]
    X = X.mask(rng.random(X.shape) < 0.1)
    at_start, budget = rng.random(X.shape) < 0.1, [None, 4.0, 6.0][k % 3]
    run = made.acquire(X, budget, known=at_start, stop=Confidence(0.8) if k % 2 else None)
    found = []
    for r in range(len(X)):
        truth = {name: float(X[name].iloc[r]) for name in NAMES}
        known = {name for name, there in zip(NAMES, at_start[r], strict=True) if there and not np.isnan(truth[name])}
        order = [NAMES[i] for i in run.order[r] if i >= 0]
        found += broken(rules, order, truth, known, COSTS, np.inf if budget is None else budget)
    return found


def is_contradiction(rules: list[Rule], said: str, rng: np.random.Generator) -> bool:
    """Whether walks over all that the rules allow never do what the refusal says is impossible."""
    names = re.findall(r"'(\w)'", said.split(" See ")[0])
    needed = {rule.features[0] for rule in rules if rule.kind == "mandatory"}
    needed |= {r.features[1] for r in rules if r.kind in ("requires", "only_if") and r.features[0] in needed}
    firsts = {rule.features[0] for rule in rules if rule.kind == "first"}
    for _ in range(N_WALKS):
        truth, order = dict(zip(NAMES, rng.normal(0, 2, 6), strict=True)), []
        known: dict[str, float] = {}
        while open_ := [name for name in NAMES if name not in known and not barred(rules, name, known)]:
            early = [name for name in open_ if name in firsts]
            order.append(str(rng.choice(early or open_)))
            known[order[-1]] = truth[order[-1]]
        if "mandatory" in said.split(" See ")[0]:
            if needed <= known.keys():
                return False
        elif "come first" in said:
            if names[0] in order and not set(order[: order.index(names[0])]) - firsts:
                return False
        elif names[0] in order:
            return False
    return True


def unchanged(plain: DynamicFeatureSelector, policy: Any) -> float:
    """The share of cases with the same choices and predictions under rules that forbid nothing that is chosen."""
    loose = [at_most(6, of=NAMES)]
    if policy != POLICIES["rl"]:  # which explores orders that are never chosen; e is free, and comes first
        loose += [only_if("c", "e", "> -99"), requires("f", "e")]
    X, ruled = rows(200, 7)[0], selector(loose, policy)
    one, other = plain.acquire(X, budget=5), ruled.acquire(X, budget=5)
    if one.order.shape != other.order.shape:
        return 0.0
    return float(((one.order == other.order).all(axis=1) & (one.proba == other.proba).all(axis=(1, 2))).mean())


if __name__ == "__main__":
    main()
