"""
When 90 % means nine times out of ten
=====================================

Predictions from incomplete rows are averages over completions, and they are calibrated on rows that
the model has not seen. Here with and without that step.
"""

# %%

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB

from askwise import DynamicFeatureSelector
from askwise.displays import ReliabilityDisplay

X, y = make_classification(1100, 10, n_informative=4, n_redundant=5, flip_y=0.08, class_sep=0.9, random_state=3)
model = GaussianNB().fit(X[:400], y[:400])  # counts redundant columns twice, so it is far too sure
raw = DynamicFeatureSelector(model, epistemic=None, policy="greedy", calibration=None, random_state=0)
calibrated = DynamicFeatureSelector(model, epistemic=None, policy="greedy", random_state=0)

# %%
# Both are asked for six of ten features; all predictions on the way are judged.

figure, axes = plt.subplots(figsize=(5.2, 4.8), layout="constrained")
for name, selector in {"raw": raw, "calibrated": calibrated}.items():
    selector.fit(X[:400], y[:400])
    ReliabilityDisplay.from_selector(selector, X[400:], y[400:], budget=6, name=name, ax=axes)
axes.set(xlim=(0.5, 1.01), ylim=(0.5, 1.01))
plt.show()

# %%
# How much the log loss gained, by the number of known features, and whether the step was kept:

print(calibrated.adaptation_report_.round(4))
