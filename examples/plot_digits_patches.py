"""
Digits patch by patch
=====================

A classifier that knows whole digits may look at a few of sixteen patches. A patch is a group of
four pixels; nothing is retrained.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from askwise import DynamicFeatureSelector

X, y = load_digits(return_X_y=True)
model = LogisticRegression(max_iter=300).fit(X[:800], y[:800])
patches = {
    f"patch {row + 1}.{column + 1}": [8 * (2 * row + i) + 2 * column + j for i in (0, 1) for j in (0, 1)]
    for row in range(4)
    for column in range(4)
}
selector = DynamicFeatureSelector(
    model, groups=patches, epistemic=None, policy="greedy", calibration=None, random_state=0
).fit(X[:800], y[:800])

# %%
# Two digits begin alike, and each is then looked at where it matters.

shown = [1001, 1013, 1030]
run = selector.acquire(X[shown], budget=8)
figure, axes = plt.subplots(len(shown), 9, figsize=(11, 4.2), layout="constrained")
for case, row in enumerate(axes):
    for step, ax in enumerate(row):
        known = np.full(64, np.nan)
        for patch in run.order[case, :step]:
            columns = patches[run.features[patch]]
            known[columns] = X[shown[case], columns]
        ax.imshow(known.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        ax.set_facecolor("#dbe4f6")
        proba = run.proba[case, step]
        guess = run.classes[proba.argmax()]
        color = "#2b8059" if guess == y[shown[case]] else "#c2475b"
        ax.set_title(f"{guess} ({proba.max():.0%})", loc="center", color=color, fontsize=10)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(True)
    row[0].set_ylabel(f"true: {y[shown[case]]}")
plt.show()
