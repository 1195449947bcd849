"""Is the first feature that the greedy policy chooses the best one? On joint distributions that are known exactly.

    python benchmarks/known_joints.py            # 60 joints, 10,000 rows each, about a minute

Each joint is drawn at random: 4 to 8 discrete features with 2 to 12 values each, dependent in pairs, and 2 to 4 classes
whose log odds add up over the features, with an interaction of two of them. The wrapped model is the exact p(y | x), so
that by Eq. 8 the value of a feature is I(y; x_i), which is enumerated. Printed is how much of the best feature's value
the chosen one has, for features that are categories and for the same features as numbers.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax

from askwise import DynamicFeatureSelector
from askwise.policy import Greedy

ENOUGH = 0.98
MOST_CELLS = 200_000


@dataclass(frozen=True)
class Joint:
    """p(x) and p(y | x) of discrete features, as arrays with one axis per feature; the last axis has the classes."""

    p_x: np.ndarray
    p_y: np.ndarray

    @classmethod
    def drawn(cls, seed: int) -> Joint:
        rng = np.random.default_rng(seed)
        sizes = rng.integers(2, 13, size=rng.integers(4, 9))
        while np.prod(sizes) > MOST_CELLS:
            sizes[sizes.argmax()] //= 2
        n_classes = int(rng.integers(2, 5))
        cells = np.indices(sizes.tolist()).reshape(len(sizes), -1)
        log_p = sum(rng.normal(0, 0.5, size)[cells[j]] for j, size in enumerate(sizes))
        for j in range(len(sizes) - 1):
            log_p = log_p + rng.normal(0, 0.5, (sizes[j], sizes[j + 1]))[cells[j], cells[j + 1]]
        scales = rng.uniform(0, 1.5, len(sizes))
        logits = sum(rng.normal(0, scales[j], (size, n_classes))[cells[j]] for j, size in enumerate(sizes))
        first, second = rng.choice(len(sizes), 2, replace=False)
        logits = logits + rng.normal(0, 1, (sizes[first], sizes[second], n_classes))[cells[first], cells[second]]
        return cls(softmax(log_p).reshape(sizes), softmax(logits, axis=1).reshape(*sizes, n_classes))

    def rows(self, n: int, seed: int) -> np.ndarray:
        """(n, M) values of the features."""
        drawn = np.random.default_rng(seed).choice(self.p_x.size, n, p=self.p_x.ravel())
        return np.column_stack(np.unravel_index(drawn, self.p_x.shape))

    def values(self) -> np.ndarray:
        """(M,) I(y; x_i) in nats, which is Eq. 8 for the exact model when nothing is known."""
        joint = self.p_x[..., None] * self.p_y
        features = range(self.p_x.ndim)
        before = joint.sum(axis=tuple(features))
        both = [joint.sum(axis=tuple(j for j in features if j != i)) for i in features]
        return np.array([(p * np.log(p / p.sum(axis=1, keepdims=True) / before)).sum() for p in both])


def share_of_best(joint: Joint, n_rows: int, seed: int, as_numbers: bool) -> float:
    """The exact value of the first choice as a share of the best feature's."""
    codes, n_classes = joint.rows(n_rows, seed), joint.p_y.shape[-1]
    names = [f"x{j}" for j in range(codes.shape[1])]
    X = pd.DataFrame(codes if as_numbers else np.char.mod("v%02d", codes), columns=names)
    exact = joint.p_y[tuple(codes.T)]
    y = (exact.cumsum(axis=1) < np.random.default_rng(seed + 1).random((n_rows, 1))).sum(axis=1)

    def model(rows: pd.DataFrame) -> Any:
        cells = [rows[name] if as_numbers else rows[name].astype(str).str[1:] for name in names]
        return joint.p_y[tuple(np.asarray(cell, dtype=int) for cell in cells)]

    model.classes_ = np.arange(n_classes)  # type: ignore[attr-defined]
    selector = DynamicFeatureSelector(
        model, policy=Greedy(), epistemic=None, calibration=None, random_state=seed, progress=False
    )
    chosen = selector.fit(X, np.minimum(y, n_classes - 1)).suggest(X[:1].where(X[:1].isna()))[0]
    values = joint.values()
    return float(values[chosen] / values.max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joints", type=int, default=60)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first joint")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds = range(options.first, options.first + options.joints)
    for kind in ("categories", "numbers"):
        shares = [share_of_best(Joint.drawn(seed), options.rows, seed, kind == "numbers") for seed in seeds]
        enough = sum(share >= ENOUGH for share in shares)
        print(
            f"{kind:10}: at least {ENOUGH:.0%} of the best value in {enough} of {len(shares)} joints; "
            f"mean {np.mean(shares):.4f}, least {min(shares):.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
