"""
The needle is paid once
=======================

A blood test costs 20, of which 15 are for the needle. Once one has been taken, each other costs 5.
An order that knows this is another order.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from askwise import DynamicFeatureSelector, Prices
from askwise.displays import AcquisitionOrderDisplay

rng = np.random.default_rng(0)
n = 900
y = rng.integers(0, 2, n)
strength = {"iron": 0.8, "zinc": 0.8, "sugar": 0.8, "x-ray": 1.0, "ecg": 1.0, "pulse": 0.3}
X = pd.DataFrame({name: rng.normal(s * y, 1) for name, s in strength.items()})
model = LogisticRegression().fit(X[:400], y[:400])
each = {"iron": 20, "zinc": 20, "sugar": 20, "x-ray": 22, "ecg": 22, "pulse": 2}
needle = Prices(each, shared=[(["iron", "zinc", "sugar"], 15)])

# %%
# The same budget of 45, with and without the saving.

figure, axes = plt.subplots(1, 2, figsize=(11, 3), layout="constrained")
for ax, (name, prices) in zip(axes, {"each on its own": each, "the needle is shared": needle}.items(), strict=True):
    selector = DynamicFeatureSelector(model, costs=prices, epistemic=None, random_state=0).fit(X[:400], y[:400])
    run = selector.acquire(X[400:], budget=45)
    AcquisitionOrderDisplay.from_trajectory(run, ax=ax)
    right = (run.predict(-1) == y[400:]).mean()
    ax.set_title(f"{name}: {(run.order >= 0).sum(axis=1).mean():.1f} tests, {right:.0%} right")
plt.show()
