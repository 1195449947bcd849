"""
Uncertainty that rises with an answer
=====================================

A disease has a prevalence of 0.1 %. Before anything is known, "healthy" is nearly certain. A first
test comes back positive: the right thing to do is to become *less* sure. This is the rare disease
of the paper's Section 2.3.
"""

# %%
# The tests are wrong once in twenty times. What they tell can be computed by hand.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from askwise import DynamicFeatureSelector, wrap
from askwise.displays import TrajectoryDisplay

rng = np.random.default_rng(0)
n = 60_000
ill = rng.random(n) < 0.001
tests = {f"test {k}": np.where(rng.random(n) < 0.95, ill, ~ill).astype(float) for k in (1, 2, 3)}
X = pd.DataFrame(tests)


def diagnose(rows):
    """Bayes' rule with everything known."""
    positive = np.asarray(rows, dtype=float).sum(axis=1)
    odds = 0.001 / 0.999 * 19.0**positive * (1 / 19.0) ** (3 - positive)
    return np.column_stack([1 / (1 + odds), odds / (1 + odds)])


# %%
# A sample in which the ill are all kept, and one in ten of the others, would be wrong by that much:
# the rows given to ``fit`` must be those of the world.

part = np.arange(0, n, 6)
labels = np.where(ill, "ill", "healthy")
model = wrap(diagnose, classes=["healthy", "ill"])
selector = DynamicFeatureSelector(model, epistemic=None, policy="greedy", random_state=0).fit(
    X.iloc[part], labels[part]
)

case = selector.start()
for name in X.columns:
    case.answer(name, 1.0)
entropy = [step["uncertainty"]["total"] for step in case.report()["trace"]]
print("entropy:", np.round(entropy, 4))

# %%
# Each positive answer raises the uncertainty, until the third one turns the decision. A policy that
# only wants low entropy would rather not have asked.

TrajectoryDisplay.from_session(case)
plt.show()
