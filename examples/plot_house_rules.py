"""
Rules of the house
==================

An x-ray before any MRI, blood pressure in every case, never both scans, a biopsy only if the marker is high: with these
rules the policy chooses among what is allowed. What the rules cost can be read off.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from askwise import DynamicFeatureSelector
from askwise.constraints import excludes, mandatory, only_if, requires
from askwise.displays import AcquisitionOrderDisplay
from askwise.stopping import Confidence

rng = np.random.default_rng(0)
n = 900
y = rng.integers(0, 2, n)
strength = {"pressure": 0.4, "marker": 1.0, "x-ray": 0.7, "mri": 1.6, "ct": 1.4, "biopsy": 2.2}
X = pd.DataFrame({name: rng.normal(s * y, 1) for name, s in strength.items()})
model = LogisticRegression().fit(X[:400], y[:400])
costs = {"pressure": 1, "marker": 6, "x-ray": 8, "mri": 30, "ct": 22, "biopsy": 45}
rules = [mandatory("pressure"), requires("mri", "x-ray"), excludes("mri", "ct"), only_if("biopsy", "marker", "> 1.5")]

# %%
# The same cases and the same stop, without and with the rules.

figure, axes = plt.subplots(1, 2, figsize=(11, 3), layout="constrained")
for ax, (name, constraints) in zip(axes, {"no rules": None, "with rules": rules}.items(), strict=True):
    selector = DynamicFeatureSelector(model, costs=costs, constraints=constraints, epistemic=None, random_state=0)
    run = selector.fit(X[:400], y[:400]).acquire(X[400:], stop=Confidence(0.95))
    AcquisitionOrderDisplay.from_trajectory(run, ax=ax)
    right = (run.predict(-1) == y[400:]).mean()
    ax.set_title(f"{name}: {run.spent_after(-1).mean():.0f} spent, {right:.0%} right")
plt.show()

# %%
# Rules that contradict each other are refused by name.

from askwise import InvalidInput  # noqa: E402

try:
    DynamicFeatureSelector(model, constraints=[*rules, mandatory("mri"), mandatory("ct")]).fit(X[:400], y[:400])
except InvalidInput as error:
    print(error)
