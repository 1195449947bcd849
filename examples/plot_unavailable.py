"""
The scanner is down
===================

Tests that cannot be done are skipped at no cost, and the plan changes. What remains known of the
decision?
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from askwise import DynamicFeatureSelector
from askwise.datasets import load
from askwise.displays import AcquisitionOrderDisplay

heart = load("heart")
X, y, new, truth = heart.X[:180], heart.y[:180], heart.X[180:], heart.y[180:]
model = HistGradientBoostingClassifier(max_iter=40, random_state=0).fit(X, y)
selector = DynamicFeatureSelector(model, costs=heart.prices, epistemic=None, random_state=0).fit(X, y)

# %%
# ``available`` says what can be had: here neither the thallium scan nor fluoroscopy.

working = ~np.isin(selector.features_, ["thal", "ca"])
figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained", sharex=True)
for ax, available in zip(axes, [None, working], strict=True):
    run = selector.acquire(new, budget=120, available=available)
    AcquisitionOrderDisplay.from_trajectory(run, ax=ax)
    name = "all tests" if available is None else "no scanner"
    final = run.said.after(run.n_steps).decision_is_final.mean()
    right = (run.predict(-1) == truth).mean()
    ax.set_title(f"{name}: {right:.0%} right, decision final {final:.0%}")
plt.show()
