"""Speed as ratios measured in one run: stacked members, batched value targets, and the training of the Q-network.

python benchmarks/speed.py [--repeats 5]
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Self

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from askwise import DynamicFeatureSelector
from askwise.epistemic import AuxiliaryEnsemble, BeliefModel
from askwise.model.stacked import stack
from askwise.model.wrapped import FrozenModel
from askwise.policy import DQN
from askwise.policy.base import PolicyContext
from askwise.predict import ConditionalPredictor, ImputedPredictor, SubsetPredictor
from askwise.table.rows import EncodedRows
from askwise.table.subsets import sample
from askwise.value import HeldOutStates, value_targets


class TimedDQN(DQN):
    """Remembers how long its training took."""

    def fit(self, context: PolicyContext) -> Self:
        start = time.perf_counter()
        fitted = super().fit(context)
        self.seconds_ = time.perf_counter() - start
        return fitted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = MLPClassifier((100,), max_iter=200, random_state=0).fit(X, y)
    stacked_members(model, X, y, repeats)
    one_step(model, X, y, repeats)
    targets(model, X, y, repeats)
    q_network(model, X, y, repeats)


def stacked_members(model: MLPClassifier, X: np.ndarray, y: np.ndarray, repeats: int) -> None:
    predictor = ImputedPredictor(model).fit(X, y)
    members = AuxiliaryEnsemble(10, random_state=0).fit(predictor).estimators_
    models = [FrozenModel(member, predictor.schema_) for member in members]
    stacked = stack(models)

    def loop(rows: EncodedRows) -> np.ndarray:
        return np.hstack([member(rows) for member in models])

    for n in (1, 256):
        rows = EncodedRows(np.resize(X, (n, X.shape[1])))
        assert np.allclose(stacked(rows), loop(rows))
        ratio = ratio_of(partial(loop, rows), partial(stacked, rows), repeats, times=200 if n == 1 else 20)
        print(f"10 stacked members, {n:3d} rows: {ratio:6.1f} x as fast as a loop over members")


def one_step(network: MLPClassifier, X: np.ndarray, y: np.ndarray, repeats: int) -> None:
    """One step of a single case asks the model and five members about a hundred completed rows."""
    forest = RandomForestClassifier(100, random_state=0)
    for model in (LogisticRegression(), network, forest, HistGradientBoostingClassifier(random_state=0)):
        predictor = ImputedPredictor(model.fit(X, y)).fit(X, y)
        joint = AuxiliaryEnsemble(5, random_state=0).fit(predictor).joined(predictor).model_
        ratio = ratio_of(partial(joint, EncodedRows(X[:100])), partial(model.predict_proba, X[:1]), repeats, times=5)
        print(f"{type(model).__name__} and 5 members, 100 rows: {ratio:6.1f} x the time of the model on one row")


def targets(model: MLPClassifier, X: np.ndarray, y: np.ndarray, repeats: int) -> None:
    rng = np.random.default_rng(0)
    rows = np.arange(len(X))
    kinds: dict[str, SubsetPredictor] = {
        "mean": ImputedPredictor(model),
        "conditional": ConditionalPredictor(model, random_state=0),
    }
    for name, predictor in kinds.items():
        predictor.fit(X, y)
        held_out = HeldOutStates(EncodedRows(X), y, predictor.schema_, [BeliefModel(predictor.for_training())])
        mask = sample(len(rows), X.shape[1], rng)

        def one_by_one(held_out: HeldOutStates = held_out, mask: np.ndarray = mask) -> None:
            for r in rows:
                held_out.state(rows[[r]], mask[[r]])
                for i in np.flatnonzero(~mask[r]):
                    more = mask[[r]]
                    more[0, i] = True
                    held_out.state(rows[[r]], more)

        def batched(held_out: HeldOutStates = held_out, mask: np.ndarray = mask) -> None:
            value_targets(held_out, rows, mask)

        ratio = ratio_of(one_by_one, batched, max(1, repeats // 2))
        print(f"value targets, {name}: {ratio:6.1f} x as fast as one model call per row and candidate")


def q_network(model: MLPClassifier, X: np.ndarray, y: np.ndarray, repeats: int) -> None:
    def learn(n_episodes: int = 1000) -> float:
        policy = TimedDQN(n_episodes=n_episodes)
        trained = DynamicFeatureSelector(model, policy=policy, random_state=0).fit(X, y).policy_
        assert isinstance(trained, TimedDQN)
        return trained.seconds_

    learn(64)  # torch loads lazily
    fits, learning = [], []
    for _ in range(repeats):
        start = time.perf_counter()
        clone(model).fit(X, y)
        fits.append(time.perf_counter() - start)
        learning.append(learn())
    ratio = statistics.median(learning) / statistics.median(fits)
    print(f"Q-network on wine, 1,000 episodes of 13 steps: {ratio:6.1f} fits of the MLP(100) that it wraps")


def ratio_of(slow: Callable[[], object], fast: Callable[[], object], repeats: int, times: int = 1) -> float:
    """Median over alternating measurements of time(slow) / time(fast)."""
    ratios = []
    for _ in range(repeats):
        seconds = []
        for work in (slow, fast):
            start = time.perf_counter()
            for _ in range(times):
                work()
            seconds.append(time.perf_counter() - start)
        ratios.append(seconds[0] / seconds[1])
    return statistics.median(ratios)


if __name__ == "__main__":
    main()
